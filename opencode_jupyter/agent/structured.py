"""Answers in a given form: a tool whose arguments are the answer (docs/opencode/core.md 6.7)."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ..core.context import ToolContext
from ..core.errors import InvalidArgumentsError
from ..core.result import ToolResult
from ..core.schema_validation import load_jsonschema
from ..core.tool import Bound, Definition, Manifest, Tool

NAME = "StructuredOutput"
DESCRIPTION = (
    "Give your final answer in the form that the user requested. Call this once, after all other work; "
    "it ends the conversation."
)
NUDGE = f"Your answer must be given by calling the {NAME} tool. Call it now."
DEFINITIONS = ("$defs", "definitions")
"""Keys of a schema's definitions, which stay at the top because references start there."""
NUDGES = 2
"""Times that a model that answers in text is asked to use the tool, before the run fails."""


class StructuredOutput:
    """The form that an answer has to have.

    Args:
        form: a JSON schema (dict), a pydantic model, or any type that pydantic can check (``list[int]``).

    Attributes:
        value: the answer, validated; only meaningful with `has_value`.
        has_value: whether there is one.

    Raises:
        InvalidArgumentsError: `form` is none of these.
    """

    def __init__(self, form: Any) -> None:
        self.value: Any = None
        self.has_value = False
        self._adapter: TypeAdapter[Any] | None = None
        self._schema_checker: Any = None
        if isinstance(form, dict):
            schema = _root_schema(form)
            self._schema_checker = _schema_checker(schema)
        else:
            try:
                self._adapter = TypeAdapter(form)
                schema = _root_schema(self._adapter.json_schema())
            except Exception as error:
                raise InvalidArgumentsError(
                    f"the form of the answer must be a JSON schema (a dict) or a type that pydantic knows: {error}"
                ) from error
        self.schema = schema
        kind = schema.get("type")
        self._wrapped = kind != "object" and not (kind is None and "properties" in schema)
        if self._wrapped:  # a call's arguments are always an object
            inner = {key: value for key, value in schema.items() if key not in (*DEFINITIONS, "$schema")}
            schema = {"type": "object", "properties": {"value": inner}, "required": ["value"]}
            schema |= {key: self.schema[key] for key in DEFINITIONS if key in self.schema}
        parameters = {key: value for key, value in schema.items() if key != "$schema"}
        definition = Definition(DESCRIPTION, parameters, self._accept, check=self._check)
        self.tool = Tool(
            NAME, definition, manifest=Manifest(builtin=True, effect="notes"), source="the form of the answer"
        )
        self.bound = Bound(NAME, DESCRIPTION, definition)

    def _check(self, arguments: dict[str, Any]) -> Any:
        value = arguments.get("value") if self._wrapped and set(arguments) == {"value"} else arguments
        if self._adapter is not None:
            return _validate(self._adapter, value)
        problem = next(iter(self._schema_checker.iter_errors(value)), None)
        if problem is not None:
            location = "".join(f"[{step!r}]" for step in problem.absolute_path)
            raise ValueError(f"{location or 'the answer'}: {problem.message}")
        return value

    async def _accept(self, value: Any, ctx: ToolContext) -> ToolResult:
        self.value, self.has_value = value, True
        shown = value if self._adapter is None else self._adapter.dump_python(value, mode="json")
        return ToolResult(
            "Structured Output", "Structured output captured successfully.", {"valid": True, "value": shown}
        )


def _root_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that is a reference to one of its own definitions (a type that holds itself) with that one in its place.

    Providers want to see an object at the top, and some leave out what has no properties there.
    """
    _, _, path = str(schema.get("$ref", "")).partition("#/")
    section, _, name = path.partition("/")
    definition = schema.get(section, {}).get(name) if section in DEFINITIONS else None
    if not isinstance(definition, dict):
        return schema
    return {**definition, **{key: value for key, value in schema.items() if key != "$ref"}}


def _validate(adapter: TypeAdapter[Any], value: Any) -> Any:
    """The answer as the requested type.

    Raises:
        ValidationError: it does not fit.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        try:  # a strict type takes a date or an enum's value as a text only where it comes out of JSON
            return adapter.validate_json(json.dumps(value))
        except (TypeError, ValueError):
            raise error from None


def _schema_checker(schema: dict[str, Any]) -> Any:
    load_jsonschema()
    from jsonschema import exceptions, validators  # type: ignore[import-untyped]

    kind = validators.validator_for(schema)
    try:
        kind.check_schema(schema)
    except exceptions.SchemaError as error:
        raise InvalidArgumentsError(f"the JSON schema of the answer is not valid: {error.message}") from error
    return kind(schema)
