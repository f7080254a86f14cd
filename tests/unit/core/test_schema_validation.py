"""Tools whose parameters are a JSON schema: what is checked when they are defined, and when they are called."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel, Field

from opencode_jupyter import Definition, InitContext, Tool, ToolContext, ToolError, Workspace, tool
from opencode_jupyter.core.errors import InvalidArgumentsError, InvalidDefinitionError
from opencode_jupyter.core.schema_validation import SchemaMismatchError, checker
from opencode_jupyter.core.tool import Bound
from tests.support.workspaces import OpenWorkspace

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
        "unit": {"enum": ["c", "f"], "default": "c"},
        "places": {"type": "array", "items": {"type": "number"}, "maxItems": 2},
        "view": {"type": "object", "properties": {"wide": {"type": "boolean", "default": True}}},
        "when": {"type": ["string", "null"], "pattern": "^[0-9]+$"},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
}


class SameAsModel(BaseModel):
    """A model whose errors the schema's must be like."""

    city: str = Field(min_length=2)
    days: int = Field(3, ge=1, le=14)
    places: list[float] = Field([], max_length=2)


def echo(arguments: dict[str, Any], ctx: ToolContext) -> str:
    return json.dumps(arguments)


async def defined_later(ctx: InitContext) -> Definition:
    return Definition("Weather.", SCHEMA, echo)


def definitions() -> list[tuple[str, Tool]]:
    """The ways to define a tool with a JSON schema."""

    @tool("weather", parameters=SCHEMA)
    def decorated(arguments: dict[str, Any]) -> str:
        """Weather."""
        return json.dumps(arguments)

    fields: Any = {"description": "Weather.", "parameters": SCHEMA, "execute": echo}

    async def fields_later(ctx: InitContext) -> Any:
        return fields

    return [
        ("dict", Tool.define("weather", fields)),
        ("Definition", Tool.define("weather", Definition("Weather.", SCHEMA, echo))),
        ("async", Tool.define("weather", defined_later)),
        ("async dict", Tool.define("weather", fields_later)),
        ("decorator", decorated),
    ]


WAYS = ["dict", "Definition", "async", "async dict", "decorator"]


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({}, store=False)


@pytest.mark.anyio
@pytest.mark.parametrize("way", WAYS)
async def test_every_way_of_definition_is_validated(ws: Workspace, way: str) -> None:
    ws.registry.register(dict(definitions())[way])
    with pytest.raises(InvalidArgumentsError) as caught:
        await ws.call("weather", {"city": 5, "days": "many"})
    assert caught.value.tool == "weather"
    text = str(caught.value)
    assert text.startswith("The weather tool was called with invalid arguments: [")
    assert text.endswith("Please rewrite the input so it satisfies the expected schema.")
    assert issues_of(caught.value) == [
        (["city"], "Invalid input: expected string, received number"),
        (["days"], "Invalid input: expected number, received string"),
    ]
    result = await ws.call("weather", {"city": "Rome"})
    assert json.loads(result.output) == {"city": "Rome", "days": 3, "unit": "c"}, "defaults are filled in"
    arguments = {"city": "Rome", "view": {}, "places": (1, 2.5)}
    result = await ws.call("weather", arguments)
    assert json.loads(result.output)["view"] == {"wide": True}
    assert arguments["view"] == {}, "the caller's arguments stay as they were"


@pytest.mark.anyio
async def test_a_model_is_told_and_the_record_keeps_what_came(ws: Workspace) -> None:
    ran = []

    @tool("count", parameters=SCHEMA)
    def count(arguments: dict[str, Any]) -> str:
        """Count."""
        ran.append(arguments)
        return "ok"

    ws.registry.register(count)
    result = await ws.call("count", {"days": 3}, by="model")
    assert "expected string, received undefined" in result.output
    assert not ran
    call = ws.start("count", {"city": "Rome"}, by="model")
    await call.run()
    assert call.part.state.input == {"city": "Rome"}
    assert ran == [{"city": "Rome", "days": 3, "unit": "c"}]
    with pytest.raises(InvalidArgumentsError, match='"city"'):
        await ws.dry_run("count", {})


@pytest.mark.parametrize(
    ("arguments", "path", "message"),
    [
        ({}, ["city"], "Invalid input: expected string, received undefined"),
        ({"city": None}, ["city"], "Invalid input: expected string, received null"),
        ({"city": "x"}, ["city"], "Too small: expected string to have >=2 characters"),
        ({"city": "Rome", "days": 0}, ["days"], "Too small: expected number to be >=1"),
        ({"city": "Rome", "days": 99}, ["days"], "Too big: expected number to be <=14"),
        ({"city": "Rome", "days": 1.5}, ["days"], "Invalid input: expected int, received number"),
        ({"city": "Rome", "days": True}, ["days"], "Invalid input: expected number, received boolean"),
        ({"city": "Rome", "unit": "k"}, ["unit"], 'Invalid option: expected one of "c"|"f"'),
        ({"city": "Rome", "places": [1, "x"]}, ["places", 1], "Invalid input: expected number, received string"),
        ({"city": "Rome", "places": [1, 2, 3]}, ["places"], "Too big: expected array to have <=2 items"),
        ({"city": "Rome", "view": {"wide": 1}}, ["view", "wide"], "Invalid input: expected boolean, received number"),
        ({"city": "Rome", "when": "now"}, ["when"], "Invalid string: must match pattern /^[0-9]+$/"),
        ({"city": "Rome", "when": 5}, ["when"], "Invalid input: expected string | null, received number"),
        ({"city": "Rome", "limit": []}, ["limit"], "Invalid input: expected number | string, received array"),
        ({"city": "Rome", "town": 1}, [], 'Unrecognized key: "town"'),
    ],
)
def test_what_is_said_of_wrong_arguments(arguments: dict[str, Any], path: list[Any], message: str) -> None:
    bound = Bound("weather", "", Definition("", SCHEMA, echo))
    with pytest.raises(InvalidArgumentsError) as caught:
        bound.validate(arguments)
    assert issues_of(caught.value) == [(path, message)]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"city": 5},
        {"city": "x"},
        {"city": "Rome", "days": 0},
        {"city": "Rome", "days": 1.5},
        {"city": "Rome", "places": 1},
    ],
)
def test_the_message_is_the_one_of_a_pydantic_model(arguments: dict[str, Any]) -> None:
    messages = []
    for parameters in (SCHEMA, SameAsModel):
        with pytest.raises(InvalidArgumentsError) as caught:
            Bound("weather", "", Definition("", parameters, echo)).validate(arguments)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_formatter_gets_the_issues() -> None:
    bound = Bound("w", "", Definition("", SCHEMA, echo, lambda error: f"wrong: {[e['path'] for e in error.errors()]}"))
    with pytest.raises(InvalidArgumentsError, match=re.escape("wrong: [['city']]")):
        bound.validate({})


def test_an_own_check_goes_before_the_schema() -> None:
    bound = Bound("w", "", Definition("", SCHEMA, echo, check=lambda arguments: {"mine": arguments}))
    assert bound.validate({"any": 1}) == {"mine": {"any": 1}}


def test_references_within_a_schema_are_followed() -> None:
    schema = {
        "properties": {"tree": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "n": {"type": "number"}}}
        },
    }
    bound = Bound("w", "", Definition("", schema, echo)).check_definition()
    assert bound.validate({"tree": {"next": {"n": 1}}})
    with pytest.raises(InvalidArgumentsError, match="expected number, received string"):
        bound.validate({"tree": {"next": {"n": "x"}}})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "string"}, "type must be 'object', not 'string'"),
        ({"type": "objct"}, "['type']: 'objct' is not"),
        ({"properties": {"a": {"type": "strng"}}}, "['properties']['a']['type']: 'strng' is not"),
        ({"properties": {"a": {"pattern": "("}}}, "['properties']['a']['pattern']: '(' is not a 'regex'"),
        ({"properties": ["a"]}, "['properties']: ['a'] is not of type 'object'"),
        ({"type": "object", "required": "a"}, "['required']: 'a' is not of type 'array'"),
        (
            {"city": {"type": "string"}},
            'it has no \'properties\'; write {"type": "object", "properties": {"city": ...}}',
        ),
        ({"properties": {"a": {"$ref": "#/$defs/None"}}}, "it has no '#/$defs/None', which a $ref names"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}, "it has no 'http://127.0.0.1:9/x.json'"),
        ({"properties": {"a": {"default": object}}}, "not JSON serializable"),
    ],
)
def test_a_wrong_schema_is_refused_when_it_is_defined(schema: Any, message: str) -> None:
    with pytest.raises(InvalidDefinitionError, match=re.escape(message)) as caught:
        Tool.define("weather", {"description": "Weather.", "parameters": schema, "execute": echo})
    assert "the tool weather" in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ToolError)
    with pytest.raises(InvalidDefinitionError, match=re.escape(message)):
        tool("weather", parameters=schema)(lambda arguments: "x")


@pytest.mark.anyio
async def test_a_wrong_schema_of_a_tool_that_is_defined_later(ws: Workspace) -> None:
    async def later(ctx: InitContext) -> Definition:
        return Definition("Weather.", {"type": "strng"}, echo)

    ws.registry.register(Tool.define("weather", later))
    with pytest.raises(InvalidDefinitionError, match="the tool weather are not a valid JSON schema"):
        await ws.call("weather", {})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"properties": {}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"items": {"type": "string"}}},
    ],
)
def test_a_right_schema_is_accepted(schema: Any) -> None:
    defined = Tool.define("weather", {"description": "Weather.", "parameters": schema, "execute": echo})
    assert defined.static is not None
    assert defined.static.validate({}) == {}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"description": "W", "execute": echo}, "the tool weather lacks parameters. A tool without parameters has"),
        ({"parameters": {}, "execute": echo}, "the tool weather lacks description"),
        ({"description": "W", "parameters": {}}, "the tool weather lacks execute"),
        ({}, "the tool weather lacks description and parameters and execute"),
        ({"descripton": "W", "parameters": {}, "execute": echo}, "no field 'descripton'. Did you mean description?"),
        ({"description": 5, "parameters": {}, "execute": echo}, "The description of the tool weather must be a string"),
        ({"description": "W", "parameters": {}, "execute": "echo"}, "execute of the tool weather must be a function"),
        ({"description": "W", "parameters": None, "execute": echo}, "The parameters of the tool weather must be"),
        ({"description": "W", "parameters": [1], "execute": echo}, "The parameters of the tool weather must be"),
        ("weather", "The tool weather must be a definition, a dict or a function"),
        (None, "The tool weather must be a definition, a dict or a function"),
    ],
)
def test_a_wrong_definition_is_refused_by_field(fields: Any, message: str) -> None:
    with pytest.raises(InvalidDefinitionError, match=re.escape(message)):
        Tool.define("weather", fields)


def test_a_tool_needs_an_id() -> None:
    with pytest.raises(InvalidDefinitionError, match="id of a tool must be a string"):
        Tool.define("", {"description": "W", "parameters": {}, "execute": echo})


@pytest.mark.anyio
@pytest.mark.parametrize("fields", [{"description": "W", "execute": echo}, 5, None])
async def test_a_wrong_definition_of_a_later_one(ws: Workspace, fields: Any) -> None:
    ws.registry.register(Tool.define("weather", lambda ctx: fields))
    with pytest.raises(InvalidDefinitionError, match="the tool weather"):
        await ws.call("weather", {})


def issues_of(error: InvalidArgumentsError) -> list[tuple[list[Any], str]]:
    """Path and message of each issue that an error lists."""
    text = str(error)
    issues = json.loads(text[text.index("[") : text.rindex("]") + 1])
    return [(issue["path"], issue["message"]) for issue in issues]


def test_defaults_are_filled_in_through_references_and_in_lists() -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer", "default": 1}, "in": {"$ref": "#/$defs/P"}}}
    schema = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/P"}, "l": {"type": "array", "items": {"$ref": "#/$defs/P"}}},
        "$defs": {"P": point},
    }
    fill = checker(schema, "t", fill_defaults=True)
    assert fill({"p": {"in": {}}, "l": [{}, {"x": 2}]}) == {"p": {"x": 1, "in": {"x": 1}}, "l": [{"x": 1}, {"x": 2}]}
    assert fill({}) == {}


def test_an_exclusive_bound_of_draft_4() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
    }
    with pytest.raises(SchemaMismatchError) as caught:
        checker(schema, "t")({"a": 0})
    assert caught.value.errors()[0]["message"] == "Too small: expected number to be >0"


def test_the_first_schema_does_not_compile_the_grammar_of_iri() -> None:
    code = (
        "import sys\n"
        "from opencode_jupyter.core.schema_validation import checker\n"
        "checker({'type': 'object'}, 't')({})\n"
        "print('lark' in sys.modules)\n"
        "from jsonschema import Draft202012Validator\n"
        "print([Draft202012Validator.FORMAT_CHECKER.conforms(text, 'iri') for text in ('http://a/b', '::')])\n"
        "print('lark' in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == ["False", "[True, False]", "True"], result.stderr
