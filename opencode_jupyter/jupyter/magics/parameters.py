"""A tool's parameters by its schema: names, types, order; text made into their values, and the errors about those."""

from __future__ import annotations

import asyncio
import json
import threading
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from ...core.context import InitContext
from ...core.errors import InvalidArgumentsError, ToolError
from ...core.suggestions import near_names
from ...core.tool import Bound, Tool
from .words import VARIABLE

if TYPE_CHECKING:
    from ...core.registry import Registry

INIT_LIMIT = 30.0
"""Seconds a tool may take to describe itself."""
PATH_NAMES = frozenset({"filepath", "path", "workdir", "directory", "dir", "file", "folder"})


class Field(NamedTuple):
    """One parameter of a tool.

    Attributes:
        name: as on the wire (``filePath``).
        schema: its JSON schema.
        required: must be given.
    """

    name: str
    schema: dict[str, Any]
    required: bool

    @property
    def type(self) -> str:
        """Its type in words."""
        return type_words(self.schema)

    @property
    def description(self) -> str:
        """What it is for."""
        return str(self.schema.get("description", "")).strip()

    @property
    def choices(self) -> list[Any]:
        """The values it may have, if they are few and known; those of its items for a list."""
        return choices(self.schema)

    @property
    def is_path(self) -> bool:
        """Whether it names a file or a folder."""
        name = self.name.replace("_", "").lower()
        return self.takes("string") and (name in PATH_NAMES or name.endswith(("path", "file", "dir")))

    def takes(self, kind: str) -> bool:
        """Whether a JSON type (``string``, ``array``, ...) fits."""
        return kind in kinds(self.schema)


class Spec:
    """A tool's parameters.

    Attributes:
        tool: the tool.
        bound: its wrapped definition.
        fields: in the order they are declared.
    """

    def __init__(self, tool: Tool, context: InitContext | None = None) -> None:
        self.tool = tool
        self.bound = bound_of(tool, context)
        schema = self.bound.parameters_for_person
        properties = schema.get("properties") or {}
        # OpenCode's schemas call some fields required that have a default; a person need not type those.
        defaults = {name for name, node in properties.items() if isinstance(node, dict) and "default" in node}
        required = set(schema.get("required") or []) - defaults
        self.fields = [
            Field(name, node if isinstance(node, dict) else {}, name in required) for name, node in properties.items()
        ]
        if self.raw:  # it is made from the command, so a person need not write it
            self.fields = [f._replace(required=f.required and f.name != "description") for f in self.fields]
        more = schema.get("additionalProperties")
        self.open = isinstance(self.bound.definition.parameters, dict) and more not in (None, False)
        """Whether other names than these are taken too."""

    @property
    def body(self) -> Field | None:
        """The field that a ``%%tool`` cell's body fills, if the tool says so."""
        wanted = self.tool.body or "body"
        field = self.find(wanted)
        return field if field is not None and (self.tool.body or field.takes("string")) else None

    @property
    def raw(self) -> bool:
        """Whether the rest of the line is the body as it stands: a command, or code."""
        return self.tool.body in ("command", "code") or (self.tool.id == "bash" and self.find("command") is not None)

    @property
    def code(self) -> bool:
        """Whether the rest of the line is Python code, where it is `raw`; else it is a shell command."""
        return self.tool.body == "code"

    @property
    def rest_of_line(self) -> str:
        """What the line is after the options, where it is `raw`."""
        return f"the rest of the line, {'as Python code' if self.code else 'as in a shell'}"

    @cached_property
    def positional(self) -> list[Field]:
        """Fields in the order that words without a name fill: required ones first.

        A built-in tool's body comes last of its required fields, so that ``write`` takes the path before the content.
        """
        body = self.body if self.tool.builtin else None
        return sorted(self.fields, key=lambda f: (not f.required, f is body))

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Wire name to attribute name of the parameter model; empty for a tool with a bare JSON schema."""
        model = self.bound.definition.parameters
        if isinstance(model, dict) or not issubclass(model, BaseModel):
            return {}
        return {info.alias or name: name for name, info in model.model_fields.items()}

    def find(self, key: str) -> Field | None:
        """The field of this name, in OpenCode's spelling or Python's."""
        by_name = {f.name: f for f in self.fields}
        for name in (key, to_camel(key.replace("-", "_")), to_snake(key)):
            if name in by_name:
                return by_name[name]
        return None

    def near(self, key: str) -> list[str]:
        """Names of fields that look like `key`."""
        lowered = {f.name.replace("_", "").lower(): f.name for f in self.fields}
        plain = key.replace("_", "").replace("-", "").lower()
        close = near_names(plain, lowered)
        close += [k for k in lowered if plain and (k.startswith(plain) or k.endswith(plain)) and k not in close]
        return [lowered[k] for k in close[:3]]


def spec_of(tool: Tool, registry: Registry, agent: str | None = None) -> Spec:
    """A tool's parameters; kept for tools whose definition depends on nothing, since making a schema takes a while.

    Args:
        tool: the tool.
        registry: where it is registered.
        agent: for whom it describes itself; the default agent if left out.

    Raises:
        ToolError: it does not describe itself in time, or there is no such agent.
        Exception: what its `init` raises.
    """
    return _kept(tool) if tool.static is not None else Spec(tool, registry.context(agent))


@lru_cache(maxsize=256)
def _kept(tool: Tool) -> Spec:
    return Spec(tool)


def bound_of(tool: Tool, context: InitContext | None = None) -> Bound:
    """A tool's definition, also when only an async function gives it.

    Raises:
        ToolError: it does not describe itself in time.
    """
    if tool.static is not None:
        return tool.static
    outcome: list[Bound | BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(tool.init(context)))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, name="opencode-describe", daemon=True)
    thread.start()
    thread.join(INIT_LIMIT)
    if not outcome:
        raise ToolError(f"the tool {tool.id} took more than {INIT_LIMIT:g} s to describe its parameters")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def kinds(schema: dict[str, Any]) -> set[str]:
    """The JSON types that fit a schema; empty if it takes anything."""
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return {_kind(value) for value in values}
    given = schema.get("type")
    found = set(given) if isinstance(given, list) else {given} if isinstance(given, str) else set()
    for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= kinds(option)
    return found


def choices(schema: dict[str, Any]) -> list[Any]:
    """The values a schema allows, if it lists them."""
    if "enum" in schema:
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    if schema.get("type") == "boolean":
        return [True, False]
    if schema.get("type") == "array":
        return choices(schema.get("items") or {})
    return [value for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ())) for value in choices(option)]


def type_words(schema: dict[str, Any]) -> str:
    """A schema's type for people: ``integer``, ``list of string``, ``"a" or "b"``."""
    if "enum" in schema or "const" in schema:
        values = [json.dumps(v, ensure_ascii=False, default=str) for v in choices(schema)]
        return " or ".join(values)
    options = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if options:
        return " or ".join(dict.fromkeys(type_words(option) for option in options))
    given = schema.get("type")
    if isinstance(given, list):
        return " or ".join(given)
    if given == "array":
        items = schema.get("items")
        return f"list of {type_words(items)}" if items else "list"
    if given == "string" and "format" in schema:
        return f"string ({schema['format']})"
    return str(given or "any")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, int):
        return "integer"
    return {str: "string", float: "number", list: "array"}.get(type(value), "object")


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
