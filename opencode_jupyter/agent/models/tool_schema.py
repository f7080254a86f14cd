"""Tool schemas in the form that a provider takes (docs/opencode/core.md 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..model import ModelInfo

COMBINERS = ("anyOf", "oneOf", "allOf")
INTENT = frozenset(
    {
        *COMBINERS,
        *("type", "properties", "items", "prefixItems", "enum", "const", "$ref", "additionalProperties"),
        *("patternProperties", "required", "not", "if", "then", "else"),
    }
)
"""Keys of which one is enough for a schema to mean something."""
CACHE_SIZE = 500
"""Schemas whose outcome is kept. A tool's schema is the same object as long as the tool is."""
_adapted: dict[tuple[int, str], tuple[dict[str, Any], dict[str, Any]]] = {}


def adapt_schema(info: ModelInfo, schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as it is sent to a model; the given one is never changed.

    Gemini gets texts for all values of ``enum``, no names in ``required`` that are no properties, ``items`` with a
    type for every array, references put in place; Moonshot's models no siblings of ``$ref`` and a single schema for
    ``items``. Others get it as it is, but for a missing ``type: object``.
    """
    kind = _kind(info)
    cached = _adapted.get((id(schema), kind))
    if cached is not None and cached[0] is schema:
        return cached[1]
    out = schema
    if kind == "gemini":
        out = gemini(inline_references(schema))
    elif kind == "moonshot":
        out = moonshot(schema)
    if isinstance(out, dict) and "type" not in out:
        out = {"type": "object", "properties": {}, **out}  # every provider wants an object at the top
    if len(_adapted) >= CACHE_SIZE:
        _adapted.clear()
    _adapted[(id(schema), kind)] = (schema, out)  # the schema is held, so that its id means it
    return out


def _kind(info: ModelInfo) -> str:
    api = (info.api_id or info.model).lower()
    if info.provider == "google" or "gemini" in api:
        return "gemini"
    if "moonshot" in info.provider or "kimi" in api or "moonshot" in api:
        return "moonshot"
    return ""


def gemini(node: Any) -> Any:
    """The rewrite for Gemini, from the leaves up."""
    if isinstance(node, list):
        return [gemini(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key == "enum" and isinstance(value, list):
            out[key] = [_text(item) for item in value]
            if out.get("type") in ("integer", "number"):
                out["type"] = "string"
        else:
            out[key] = gemini(value)
    if "enum" in out and isinstance(out["enum"], list) and out.get("type") in ("integer", "number"):
        out["type"] = "string"  # also if the type comes after the enum: texts are no integers
    combined = any(isinstance(out.get(key), list) for key in COMBINERS)
    kind = out.get("type")
    if kind == "object" and isinstance(out.get("properties"), dict) and isinstance(out.get("required"), list):
        out["required"] = [name for name in out["required"] if name in out["properties"]]
    if kind == "array" and not combined:
        if out.get("items") is None:
            out["items"] = {}
        items = out["items"]
        if isinstance(items, dict) and not INTENT & items.keys():
            out["items"] = {**items, "type": "string"}
    if isinstance(kind, str) and kind != "object" and not combined:
        out.pop("properties", None)
        out.pop("required", None)
    return out


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def moonshot(node: Any) -> Any:
    """The rewrite for Moonshot's models."""
    if isinstance(node, list):
        return [moonshot(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    if isinstance(node.get("$ref"), str):
        return {"$ref": node["$ref"]}
    out = {key: moonshot(value) for key, value in node.items()}
    if isinstance(out.get("items"), list):
        out["items"] = out["items"][0] if out["items"] else {}
    return out


def inline_references(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with its references into itself put in place; one that goes in circles ends as an open object."""

    def walk(node: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [walk(item, inside) for item in node]
        if not isinstance(node, Mapping):
            return node
        target = node.get("$ref")
        if isinstance(target, str):
            rest = {key: walk(value, inside) for key, value in node.items() if key != "$ref"}
            definition = _resolve_pointer(schema, target)
            if definition is None or target in inside:
                return {"type": "object", **rest}
            put = walk(definition, (*inside, target))
            return {**put, **rest} if isinstance(put, dict) else rest
        # the names under `properties` are a tool's own: one may be called $defs
        return {
            key: {name: walk(item, inside) for name, item in value.items()}
            if key == "properties" and isinstance(value, Mapping)
            else walk(value, inside)
            for key, value in node.items()
            if key not in ("$defs", "definitions", "$schema", "$id")
        }

    out = walk(schema, ())
    assert isinstance(out, dict)
    return out


def _resolve_pointer(schema: Any, target: str) -> Any:
    if target == "#":
        return schema
    if not target.startswith("#/"):
        return None
    node = schema
    for step in target[2:].split("/"):
        name = re.sub(r"~1", "/", step).replace("~0", "~")
        if isinstance(node, Mapping) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node
