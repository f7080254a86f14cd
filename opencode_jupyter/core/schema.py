"""Parameter models, and the JSON schema a model is sent for them (docs/opencode/core.md 5)."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

ParameterSchema = type[BaseModel] | dict[str, Any]
"""The parameters of a tool: a pydantic model or a JSON schema."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Arguments(BaseModel):
    """Base of a built-in tool's parameters: ``filePath`` on the wire, ``file_path`` in Python, both taken.

    Unknown keys are tolerated, as OpenCode's schemas tolerate them.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True, extra="ignore"
    )


class ForPerson(NamedTuple):
    """A parameter's description for people, in its annotation: ``Annotated[str, ForPerson("...")]``.

    The model's schema has the field's own description, which is OpenCode's.
    """

    description: str


def schema_for_person(model: type[BaseModel]) -> dict[str, Any]:
    """`json_schema` with the parameters described for people, as help, forms and completion show them."""
    schema = json_schema(model)
    for name, info in model.model_fields.items():
        for marker in info.metadata:
            if isinstance(marker, ForPerson):
                schema["properties"][info.alias or name]["description"] = marker.description
    return schema


_schemas: WeakKeyDictionary[type[BaseModel], dict[str, Any]] = WeakKeyDictionary()
"""Making a schema takes some 2 ms, and a model is sent those of all tools at each step."""


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a parameter model, in the plain form that providers take.

    ``X | None = None`` becomes an optional ``X``; titles and null defaults are left out; objects refuse other keys.
    The caller may change the returned schema.
    """
    made = _schemas.get(model)
    if made is None:
        made = _schemas[model] = _make(model)
    return copy.deepcopy(made)


def _make(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    plain: dict[str, Any] = _plain(_inline(schema, definitions, ()))
    plain.setdefault("type", "object")
    plain.setdefault("properties", {})
    plain.pop("description", None)
    return {"$schema": DIALECT, **plain}


def _inline(node: Any, definitions: dict[str, Any], path: tuple[str, ...]) -> Any:
    """Put definitions where they are used; a recursive one becomes an open object at its second round."""
    if isinstance(node, list):
        return [_inline(item, definitions, path) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        name = reference.removeprefix("#/$defs/")
        if name in path:
            return {"type": "object"}
        merged = {**definitions[name], **{k: v for k, v in node.items() if k != "$ref"}}
        return _inline(merged, definitions, (*path, name))
    return {key: _inline(value, definitions, path) for key, value in node.items()}


def _plain(node: Any, *, is_map: bool = False) -> Any:
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    if is_map:
        return {key: _plain(value) for key, value in node.items()}
    options = node.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        rest = [o for o in options if o != {"type": "null"}]
        others = {k: v for k, v in node.items() if k not in ("anyOf", "default") or (k == "default" and v is not None)}
        node = {**rest[0], **others} if len(rest) == 1 else {"anyOf": rest, **others}
    out: dict[str, Any] = {}
    for key, value in node.items():
        if (key == "title" and isinstance(value, str)) or (key == "default" and value is None):
            continue
        if key == "discriminator" and isinstance(value, dict):  # OpenAPI's; it points at definitions that are gone
            continue
        if key == "const":
            out["const"] = value
        elif key in ("properties", "patternProperties"):
            out[key] = _plain(value, is_map=True)
        elif key in ("default", "enum", "examples"):
            out[key] = value
        else:
            out[key] = _plain(value)
    if out.get("type") == "object" and "properties" in out:
        out.setdefault("additionalProperties", False)
    return out


_aliases: dict[type[Any], dict[str, str]] = {}


def wire_names(model: type[BaseModel] | dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments with OpenCode's spelling of their names (``filePath`` for ``file_path``), for the record."""
    if isinstance(model, dict):
        return arguments
    aliases = _aliases.get(model)
    if aliases is None:
        if Arguments not in model.__mro__:  # `issubclass` would ask a metaclass, at every call
            return arguments
        aliases = {name: f.alias for name, f in model.model_fields.items() if f.alias and f.alias != name}
        _aliases[model] = aliases
    if not aliases or aliases.keys().isdisjoint(arguments):
        return arguments
    return {aliases.get(name, name): value for name, value in arguments.items()}
