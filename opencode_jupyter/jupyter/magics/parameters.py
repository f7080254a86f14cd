"""A tool's parameters by its schema: names, types, order, values from text, and errors about them."""

from __future__ import annotations

import asyncio
import json
import reprlib
import threading
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from ...core.context import InitContext
from ...core.errors import InvalidArgumentsError, ToolError, full_text
from ...core.suggestions import near_names
from ...core.tool import Bound, Tool
from ...core.validation_issues import TYPE_NAMES
from .line_syntax import VARIABLE

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
        """Its type as a text."""
        return type_words(self.schema)

    @property
    def description(self) -> str:
        """Its description."""
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
        """Whether other names are accepted too."""

    @property
    def body(self) -> Field | None:
        """The field that a ``%%tool`` cell's body fills, if the tool declares one."""
        field = self.find(self.tool.body or "body")
        return field if field is not None and (self.tool.body or field.takes("string")) else None

    @property
    def raw(self) -> bool:
        """Whether the rest of the line is the body, verbatim: a command, or code."""
        if self.tool.body in ("command", "code"):
            return True
        # a project's own bash, which takes the place of ours: OpenCode's tool files declare no body
        return self.tool.id == "bash" and self.find("command") is not None

    @property
    def code(self) -> bool:
        """Whether the rest of the line is Python code, where it is `raw`; else it is a shell command."""
        return self.tool.body == "code"

    @property
    def body_name(self) -> str:
        """The name of the field that a body or the rest of the line fills."""
        return self.body.name if self.body is not None else "command"

    @property
    def rest_of_line(self) -> str:
        """A text about the line after the options, where it is `raw`."""
        return f"the rest of the line, {'as Python code' if self.code else 'as in a shell'}"

    @cached_property
    def positional(self) -> list[Field]:
        """Fields in the order of positional arguments: required ones first.

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

    def similar_fields(self, key: str) -> list[str]:
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
    return _cached_spec(tool) if tool.static is not None else Spec(tool, registry.context(agent))


@lru_cache(maxsize=256)
def _cached_spec(tool: Tool) -> Spec:
    return Spec(tool)


def bound_of(tool: Tool, context: InitContext | None = None) -> Bound:
    """A tool's definition, also one that an async function returns.

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
    type_ = schema.get("type")
    types = set(type_) if isinstance(type_, list) else {type_} if isinstance(type_, str) else set()
    return types.union(*(kinds(option) for option in _alternatives(schema)))


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
    return [value for option in _alternatives(schema) for value in choices(option)]


def type_words(schema: dict[str, Any]) -> str:
    """A schema's type as a text: ``integer``, ``list of string``, ``"a" or "b"``."""
    if "enum" in schema or "const" in schema:
        values = [json.dumps(v, ensure_ascii=False, default=str) for v in choices(schema)]
        return " or ".join(values)
    options = _alternatives(schema)
    if options:
        return " or ".join(dict.fromkeys(type_words(option) for option in options))
    type_ = schema.get("type")
    if isinstance(type_, list):
        return " or ".join(type_)
    if type_ == "array":
        items = schema.get("items")
        return f"list of {type_words(items)}" if items else "list"
    if type_ == "string" and "format" in schema:
        return f"string ({schema['format']})"
    return str(type_ or "any")


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, int):
        return "integer"
    return {str: "string", float: "number", list: "array"}.get(type(value), "object")


_SCALARS: dict[str, type[Any]] = {"integer": int, "number": float, "boolean": bool}


def from_text(field: Field, text: str, raw: str) -> Any:
    """Convert a typed word to the field's type; text where the schema's validation will decide.

    Args:
        field: the parameter.
        text: its value with the quotes undone.
        raw: as typed: JSON keeps its own quotes there.
    """
    types = kinds(field.schema)
    if "array" in types or "object" in types:
        for candidate in (raw, text):
            value = _container(candidate)
            if (isinstance(value, list) and "array" in types) or (isinstance(value, dict) and "object" in types):
                return value
        if "array" in types and "string" not in types:
            items = Field(field.name, field.schema.get("items") or {}, False)
            return [from_text(items, text, raw)]
    return text


def check_arguments(spec: Spec, arguments: dict[str, Any], texts: set[str]) -> dict[str, Any]:
    """Check arguments, and convert plain text to numbers and booleans where the schema requires them.

    Args:
        spec: the tool's parameters.
        arguments: by wire name.
        texts: the names whose value was typed as plain text.

    Raises:
        InvalidArgumentsError: a field is missing, has the wrong type or is not allowed; each is named.
    """
    missing = [f for f in spec.fields if f.required and f.name not in arguments]
    if missing:
        raise _invalid(spec, _missing(spec, missing))
    hint = _json_hint(spec, arguments, texts)
    if not spec.attributes:
        if hint:
            raise _invalid(spec, f"{spec.tool.id}: {hint}")
        return {name: _scalar(spec, name, value) if name in texts else value for name, value in arguments.items()}
    try:
        validated = spec.bound.validate(arguments)
    except InvalidArgumentsError as error:
        if spec.bound.definition.format_validation_error is not None:
            raise InvalidArgumentsError(f"{error}\n{hint}".rstrip(), tool=spec.tool.id, cause=error.cause) from error
        text = full_text(error, for_person=True) + _wrong_values(error.cause, arguments)
        raise _invalid(spec, f"{text}\n{hint}".rstrip(), error.cause) from error
    out = dict(arguments)
    for name in texts & out.keys():
        value = getattr(validated, spec.attributes.get(name, name), None)
        items = value if isinstance(value, list) else [value]
        if items and all(isinstance(item, bool | int | float) for item in items):
            out[name] = value
    return out


def usage(spec: Spec) -> str:
    """How the tool is called, in one line."""
    if spec.raw:
        return f"%tool {spec.tool.id} [options] {spec.body_name} ({spec.rest_of_line})"
    pieces = [f.name if f.required else f"[{f.name}={_value_hint(f)}]" for f in spec.positional]
    return " ".join(["%tool", spec.tool.id, "[options]", *pieces])


def _value_hint(field: Field) -> str:
    choices = field.choices
    if choices and len(choices) <= 4:
        return "|".join(c if isinstance(c, str) else json.dumps(c) for c in choices)
    return field.type.replace(" ", "_")


def _invalid(spec: Spec, text: str, cause: BaseException | None = None) -> InvalidArgumentsError:
    more = f"Usage: {usage(spec)}   (%tool {spec.tool.id} --help shows more)"
    return InvalidArgumentsError(f"{text}\n{more}", tool=spec.tool.id, cause=cause)


def _wrong_values(error: Any, arguments: dict[str, Any]) -> str:
    """The values that an error is about, as they were typed."""
    items = error.errors(include_url=False, include_context=False) if isinstance(error, ValidationError) else []
    names = dict.fromkeys(item["loc"][0] for item in items if item["loc"])
    values = [f"{name} is {reprlib.repr(arguments[name])}" for name in names if name in arguments]
    return f" ({', '.join(values)})" if values else ""


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
        types = kinds(field.schema.get("items") or {}) if in_list else kinds(field.schema)
        if text is not None and types and types <= {"array", "object", "null"}:
            sample = "[...]" if field.takes("array") else "{...}"
            example = f"{field.name}:={text if VARIABLE.fullmatch(text) else sample}"
            return f"{field.name}= takes text; := takes JSON or a variable unchanged: {example}"
    return ""


def _scalar(spec: Spec, name: str, value: Any) -> Any:
    """Coercion for a tool whose parameters are a bare JSON schema, which has no model to do it."""
    field = spec.find(name)
    types = kinds(field.schema) if field is not None else set()
    if not isinstance(value, str) or field is None or not types or "string" in types:
        return value
    for type_, python_type in _SCALARS.items():
        if type_ in types:
            from pydantic import TypeAdapter  # here: few values need it

            try:
                return TypeAdapter(python_type).validate_python(value)
            except ValidationError:
                continue
    expected = " or ".join(TYPE_NAMES[{"integer": "int"}.get(type_, type_)] for type_ in sorted(types))
    raise _invalid(spec, f"{spec.tool.id}: {name} must be {expected}, not {value!r}.")


def _missing(spec: Spec, missing: list[Field]) -> str:
    if len(missing) == 1:
        return f"{spec.tool.id}: {_field_description(missing[0], 'is missing')}"
    names = " and ".join(f.name for f in missing)
    return f"{spec.tool.id}: {names} are missing:" + "".join(f"\n  {_field_description(field)}" for field in missing)


def _field_description(field: Field, state: str = "") -> str:
    line = next(iter(field.description.splitlines()), "")
    line = line if len(line) <= 160 else line[:157] + "..."
    return f"{field.name} ({field.type}) {state}".rstrip() + (f": {line}" if line else "")
