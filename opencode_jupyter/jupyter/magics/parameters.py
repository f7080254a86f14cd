"""A tool's parameters as the magics need them: names, types in words, order, the body field."""

from __future__ import annotations

import asyncio
import json
import threading
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel
from pydantic.alias_generators import to_camel, to_snake

from ...core.context import InitContext
from ...core.errors import ToolError
from ...core.suggestions import near_names
from ...core.tool import Bound, Tool

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
