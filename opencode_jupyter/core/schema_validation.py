"""Checks arguments by a JSON schema, with the messages of a pydantic model's errors (`core.validation_issues`)."""

from __future__ import annotations

import copy
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from .errors import InvalidDefinitionError
from .validation_issues import Issue, as_json, issue, javascript_type, wrong_type

MOST_ISSUES = 10
LONGEST = 300
"""Characters of a message of jsonschema: it quotes the whole value."""
MOST_REFERENCES = 20
"""References that lead to a reference, one after the other."""
KINDS = {
    "minimum": ("greater_than_equal", "ge"),
    "exclusiveMinimum": ("greater_than", "gt"),
    "maximum": ("less_than_equal", "le"),
    "exclusiveMaximum": ("less_than", "lt"),
    "minLength": ("string_too_short", "min_length"),
    "maxLength": ("string_too_long", "max_length"),
    "minItems": ("too_short", "min_length"),
    "maxItems": ("too_long", "max_length"),
    "pattern": ("string_pattern_mismatch", "pattern"),
}
"""Keyword of a JSON schema to pydantic's kind of the same error, and the keyword's name in pydantic's context."""


class SchemaMismatchError(ValueError):
    """Arguments do not fit a JSON schema; the message is the issues as JSON."""

    def __init__(self, issues: list[Issue]) -> None:
        super().__init__(as_json(issues))
        self._issues = issues

    def errors(self) -> list[Issue]:
        """The issues, as a ``format_validation_error`` gets them: each with ``code``, ``path`` and ``message``."""
        return self._issues


def checker(
    schema: dict[str, Any], tool: str, *, fill_defaults: bool = False
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function that returns the arguments if they fit, and raises `SchemaMismatchError` if not.

    The validator is made at the first call.

    Args:
        schema: of the arguments.
        tool: the tool's id, for errors.
        fill_defaults: return the arguments with the defaults that properties of the schema have.
    """
    validator: Any = None

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        nonlocal validator
        if validator is None:
            validator = validator_of(schema, tool)
        issues: list[Issue] = []
        for error in _sorted_errors(validator, arguments):
            issues += [item for item in _issues(error) if item not in issues]
        if issues:
            raise SchemaMismatchError(issues[:MOST_ISSUES])
        filled: dict[str, Any] = _fill_defaults(schema, schema, arguments) if fill_defaults else arguments
        return filled

    return check


def validator_of(schema: dict[str, Any], tool: str) -> Any:
    """The validator for a JSON schema; one for all equal schemas.

    Raises:
        InvalidDefinitionError: it is no JSON schema of an object; the message names the tool.
    """
    try:
        return _validator(json.dumps(schema))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidDefinitionError(
            f"The parameters of the tool {tool} are not a valid JSON schema: {error}"
        ) from None


_importing = threading.Lock()


def load_jsonschema() -> None:
    """Import jsonschema without the grammar of its format "iri", which takes a second or more to compile.

    Where rfc3987_syntax is installed (JupyterLab brings it), jsonschema imports it, and that compiles the grammar. A
    stand-in puts this off until somebody checks an "iri"; nothing here does.
    """
    name = "rfc3987_syntax"
    with _importing:
        if {"jsonschema", name} & sys.modules.keys() or (spec := find_spec(name)) is None:
            return
        stand_in = ModuleType(name)

        def step_aside() -> None:
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]

        def load(attribute: str) -> Any:
            if attribute.startswith("__"):  # what the import looks for
                raise AttributeError(attribute)
            step_aside()
            return getattr(import_module(name), attribute)

        def is_valid_syntax(*arguments: Any) -> Any:
            return load("is_valid_syntax")(*arguments)

        stand_in.__spec__ = spec
        stand_in.__getattr__ = load  # type: ignore[method-assign]
        stand_in.is_valid_syntax = is_valid_syntax  # type: ignore[attr-defined]
        sys.modules[name] = stand_in
        try:
            import_module("jsonschema")
        finally:
            step_aside()


@lru_cache(maxsize=256)
def _validator(text: str) -> Any:
    load_jsonschema()
    from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    schema = json.loads(text)
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise TypeError(f"{_format_path(error.absolute_path)}{_cut(error.message)}") from None
    if schema.get("type", "object") != "object":
        raise TypeError(f"its type must be 'object', not {schema['type']!r}")
    unknown = [key for key, value in schema.items() if isinstance(value, dict) and not key.startswith("$")]
    if unknown and not schema.keys() & kind.VALIDATORS.keys() - {"$ref"} and "$ref" not in schema:
        example = '{"type": "object", "properties": {' + json.dumps(unknown[0]) + ": ...}}"
        raise TypeError(f"it has no 'properties'; write {example}")
    specification = specification_with(kind.META_SCHEMA["$schema"], default=DRAFT202012)
    # A schema that points elsewhere is never fetched: what its references mean must be in itself.
    resolver = Registry().with_resource("", specification.create_resource(schema)).crawl().resolver()
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise TypeError(f"it has no {reference!r}, which a $ref names") from None
    return _accepting_tuples(kind)(schema, registry=Registry())


@cache
def _accepting_tuples(kind: Any) -> Any:
    """The class of validators, with a tuple taken for an array: code that calls a tool may pass one."""
    from jsonschema.validators import extend

    return extend(
        kind, type_checker=kind.TYPE_CHECKER.redefine("array", lambda _, value: isinstance(value, list | tuple))
    )


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _format_path(path: Any) -> str:
    return "".join(f"[{step!r}]" for step in path) + ": " if path else ""


def _cut(message: str) -> str:
    return message if len(message) <= LONGEST else message[: LONGEST - 1] + "…"


def _sorted_errors(validator: Any, arguments: dict[str, Any]) -> list[Any]:
    """Jsonschema's errors, by the arguments' names."""
    return sorted(validator.iter_errors(arguments), key=lambda error: [str(step) for step in error.absolute_path])


def _issues(error: Any) -> Iterator[Issue]:
    """An error of jsonschema as issues."""
    keyword, value, path = error.validator, error.validator_value, list(error.absolute_path)
    properties = error.schema.get("properties") or {} if isinstance(error.schema, dict) else {}
    if keyword == "required":
        for name in value:  # the library has an error for each of them, which differ in their text alone
            if name not in error.instance:
                yield issue({"type": "missing"}, [*path, name], properties.get(name))
    elif keyword == "type":
        yield _wrong_types([value] if isinstance(value, str) else value, error)
    elif keyword in ("enum", "const"):
        yield issue({"type": "enum"}, path, error.schema)
    elif keyword in KINDS:
        exclusive = f"exclusive{keyword.capitalize()}"  # in draft 4 a switch beside the bound
        kind, name = KINDS[exclusive if error.schema.get(exclusive) is True else keyword]
        yield issue({"type": kind, "ctx": {name: value}}, path, error.schema)
    elif keyword == "additionalProperties" and value is False:
        patterns = error.schema.get("patternProperties") or {}
        for name in error.instance:
            if name not in properties and not any(re.search(pattern, name) for pattern in patterns):
                yield issue({"type": "extra_forbidden"}, [*path, name], None)
    elif keyword in ("anyOf", "oneOf") and error.context:
        yield from _union_issues(error)
    else:
        yield issue({"type": keyword, "msg": _cut(error.message), "input": error.instance}, path, None)


def _union_issues(error: Any) -> Iterator[Issue]:
    """Issues of a value that fits none of several schemas: the types it may have, else the likeliest of them."""
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

    if all(inner.validator == "type" and not inner.relative_path for inner in error.context):
        yield _wrong_types([inner.validator_value for inner in error.context], error)
        return
    inner = best_match([error])
    if inner is error:
        inner = error.context[0]
    yield from _issues(inner)


def _wrong_types(types: list[Any], error: Any) -> Issue:
    path = list(error.absolute_path)
    if types == ["integer"] and isinstance(error.instance, float):
        return issue({"type": "int_from_float"}, path, None)
    flat = [name for kind in types for name in ([kind] if isinstance(kind, str) else kind)]
    names = dict.fromkeys("number" if name == "integer" else str(name) for name in flat)
    return wrong_type(" | ".join(names), javascript_type(error.instance), path)


def _fill_defaults(root: Mapping[str, Any], schema: Any, value: Any) -> Any:
    """A value with the defaults of properties that are missing; in nested objects and lists too."""
    schema = _target(root, schema)
    if isinstance(value, list | tuple):
        return [_fill_defaults(root, schema.get("items"), item) for item in value] if schema.get("items") else value
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for name, part in (schema.get("properties") or {}).items():
        if name in filled:
            filled[name] = _fill_defaults(root, part, filled[name])
        elif isinstance(part, dict) and "default" in part:
            filled[name] = copy.deepcopy(part["default"])
    return filled


def _target(root: Mapping[str, Any], schema: Any) -> Mapping[str, Any]:
    """A part of a schema, or what it refers to within the same schema; an empty one if it is none of both."""
    for _ in range(MOST_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for step in reference[2:].split("/"):
            schema = schema.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(schema, Mapping) else None
    return {}
