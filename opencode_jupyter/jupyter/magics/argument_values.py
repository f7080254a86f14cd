"""Text to values by a parameter's type, and the check of a whole set of arguments, in words a person can act on."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from ...core.errors import InvalidArgumentsError
from .parameters import Field, Spec, kinds
from .words import VARIABLE

_SCALARS: dict[str, type[Any]] = {"integer": int, "number": float, "boolean": bool}
_WRONG_TYPE = ("_type", "_parsing", "enum", "literal_error")
"""How pydantic's names end for errors that say no more than the wanted type does."""


def from_text(field: Field, text: str, raw: str) -> Any:
    """A typed word as the field's kind of value; text where the schema's own check will decide.

    Args:
        field: what it is for.
        text: its value with the quotes undone.
        raw: as typed: JSON keeps its own quotes there.
    """
    wanted = kinds(field.schema)
    if "array" in wanted or "object" in wanted:
        for candidate in (raw, text):
            value = _container(candidate)
            if (isinstance(value, list) and "array" in wanted) or (isinstance(value, dict) and "object" in wanted):
                return value
        if "array" in wanted and "string" not in wanted:
            items = Field(field.name, field.schema.get("items") or {}, False)
            return [from_text(items, text, raw)]
    return text


def checked(spec: Spec, arguments: dict[str, Any], texts: set[str]) -> dict[str, Any]:
    """The arguments, plain text made into numbers and booleans where the schema wants them.

    Args:
        spec: the tool's parameters.
        arguments: by wire name.
        texts: the names whose value was typed as plain text.

    Raises:
        InvalidArgumentsError: something is missing, has the wrong type or is not allowed; each field is named.
    """
    missing = [f for f in spec.fields if f.required and f.name not in arguments]
    if missing:
        raise InvalidArgumentsError(_missing(spec, missing), tool=spec.tool.id)
    hint = _json_hint(spec, arguments, texts)
    if not spec.attributes:
        if hint:
            raise InvalidArgumentsError(f"{spec.tool.id}: {hint}\n{usage(spec)}", tool=spec.tool.id)
        return {name: _scalar(spec, name, value) if name in texts else value for name, value in arguments.items()}
    try:
        validated = spec.bound.validate(arguments)
    except InvalidArgumentsError as error:
        said = str(error)
        if isinstance(error.cause, ValidationError) and spec.bound.definition.format_validation_error is None:
            said = _problems(spec, error.cause)
        elif not hint:
            raise
        more = f"\n{hint}" if hint else ""
        raise InvalidArgumentsError(said + more, tool=spec.tool.id, cause=error.cause) from error
    out = dict(arguments)
    for name in texts & out.keys():
        value = getattr(validated, spec.attributes.get(name, name), None)
        items = value if isinstance(value, list) else [value]
        if items and all(isinstance(item, bool | int | float) for item in items):
            out[name] = value
    return out


def _container(text: str) -> Any:
    stripped = text.strip()
    if not stripped.startswith(("[", "{")):
        return None
    try:
        return json.loads(stripped)
    except (json.JSONDecodeError, RecursionError):
        return None


def _json_hint(spec: Spec, arguments: dict[str, Any], texts: set[str]) -> str:
    """How the first value is written that was typed as text where only JSON fits; "" if none was."""
    for field in (f for f in spec.fields if f.name in texts):
        value = arguments[field.name]
        in_list = isinstance(value, list)
        text = next((item for item in (value if in_list else [value]) if isinstance(item, str)), None)
        wanted = kinds(field.schema.get("items") or {}) if in_list else kinds(field.schema)
        if text is not None and wanted and wanted <= {"array", "object", "null"}:
            sample = "[...]" if field.takes("array") else "{...}"
            example = f"{field.name}:={text if VARIABLE.fullmatch(text) else sample}"
            return f"{field.name}= takes text; := takes JSON or a variable unchanged: {example}"
    return ""


def _scalar(spec: Spec, name: str, value: Any) -> Any:
    """Coercion for a tool whose parameters are a bare JSON schema, which has no model to do it."""
    found = spec.find(name)
    wanted = kinds(found.schema) if found is not None else set()
    if not isinstance(value, str) or found is None or not wanted or "string" in wanted:
        return value
    for kind, plain in _SCALARS.items():
        if kind in wanted:
            from pydantic import TypeAdapter  # here: few values need it

            try:
                return TypeAdapter(plain).validate_python(value)
            except ValidationError:
                continue
    said = f"{spec.tool.id}: {name} needs {a_type(found)}, not {_shown(value)}\n{usage(spec)}"
    raise InvalidArgumentsError(said, tool=spec.tool.id)


def _missing(spec: Spec, missing: list[Field]) -> str:
    lines = []
    for field in missing:
        about = f": {_first_line(field.description)}" if field.description else ""
        lines.append((f"{field.name} ({field.type})", about))
    if len(lines) == 1:
        return f"{spec.tool.id}: {lines[0][0]} is missing{lines[0][1]}\n{usage(spec)}"
    names = " and ".join(f.name for f in missing)
    listed = "".join(f"\n  {name}{about}" for name, about in lines)
    return f"{spec.tool.id}: {names} are missing:{listed}\n{usage(spec)}"


def _problems(spec: Spec, error: ValidationError) -> str:
    lines = []
    names = {attribute: wire for wire, attribute in spec.attributes.items()}
    for item in error.errors(include_url=False, include_context=False)[:10]:
        place = [names.get(str(item["loc"][0]), str(item["loc"][0])), *map(str, item["loc"][1:])] if item["loc"] else []
        field = spec.find(place[0]) if place else None
        where = ".".join(place)
        if item["type"] == "missing":
            lines.append(f"{where} is missing")
        elif field is not None and len(place) == 1 and item["type"].endswith(_WRONG_TYPE):
            lines.append(f"{where} needs {a_type(field)}, not {_shown(item['input'])}")
        else:
            lines.append(f"{where + ': ' if where else ''}{item['msg']} (it is {_shown(item['input'])})")
    unique = list(dict.fromkeys(lines))
    body = f" {unique[0]}" if len(unique) == 1 else "".join(f"\n  {line}" for line in unique)
    return f"{spec.tool.id}:{body}\n{usage(spec)}"


def usage(spec: Spec) -> str:
    """The line that shows how the tool is called."""
    if spec.raw:
        body = spec.body.name if spec.body else "command"
        words = f"{spec.tool.id} [options] {body}: {spec.rest_of_line}"
        return f"Usage: %tool {words}   (%tool {spec.tool.id} --help shows more)"
    pieces = [f.name if f.required else f"[{f.name}=...]" for f in spec.positional]
    return f"Usage: %tool {' '.join([spec.tool.id, *pieces])}   (%tool {spec.tool.id} --help shows more)"


def a_type(field: Field) -> str:
    """A field's type as the object of "wants"."""
    words = {"boolean": "true or false", "integer": "a whole number", "number": "a number", "string": "text"}
    words |= {"object": "an object (name:={...})", "list": "a list"}
    return words.get(field.type, "a " + field.type if field.type.startswith("list of") else field.type)


def _first_line(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 160 else line[:157] + "..."


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
