"""Defining tools: from functions, from definitions, per agent; what counts as arguments and as a result."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ValidationError

from opencode_jupyter.core.context import InitContext, ToolContext
from opencode_jupyter.core.errors import InvalidArgumentsError
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.core.tool import Definition, Manifest, Tool, as_result, tool


def test_function_becomes_a_tool() -> None:
    @tool
    async def weather(city: str, days: int = 1, *, ctx: ToolContext) -> str:
        """The weather of a city."""
        return city * days

    assert weather.id == "weather"
    bound = weather.static
    assert bound is not None
    assert bound.description == "The weather of a city."
    assert bound.parameters == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
        "additionalProperties": False,
    }


def test_explicit_definition_of_a_function() -> None:
    class Args(BaseModel):
        unit: Literal["c", "f"] | None = None

    @tool("temp", description="Temperature", parameters=Args, body="unit")
    def anything(args: Args) -> str:
        return args.unit or "k"

    assert (anything.id, anything.body) == ("temp", "unit")
    assert anything.static is not None
    assert anything.static.parameters["properties"] == {"unit": {"enum": ["c", "f"], "type": "string"}}


@pytest.mark.parametrize("signature", ["*args", "**kwargs"])
def test_parameters_need_names(signature: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def f({signature}): ...", namespace)
    with pytest.raises(TypeError, match="give each one a name"):
        tool(namespace["f"])


def test_invalid_arguments_name_the_field_and_keep_the_cause() -> None:
    @tool
    def f(a: int, b: str) -> str:
        return b * a

    bound = f.static
    assert bound is not None
    with pytest.raises(InvalidArgumentsError, match="invalid arguments") as caught:
        bound.validate({"a": "many"})
    text = str(caught.value)
    assert text.startswith("The f tool was called with invalid arguments: [")
    assert [
        (issue["path"], issue["message"]) for issue in json.loads(text[text.index("[") : text.rindex("]") + 1])
    ] == [
        (["a"], "Invalid input: expected number, received string"),
        (["b"], "Invalid input: expected string, received undefined"),
    ]
    assert text.endswith("Please rewrite the input so it satisfies the expected schema.")
    assert isinstance(caught.value.cause, ValidationError)


def test_own_words_for_invalid_arguments() -> None:
    @tool(format_validation_error=lambda error: f"no: {error.error_count()}")
    def f(a: int) -> str:
        return str(a)

    assert f.static is not None
    with pytest.raises(InvalidArgumentsError, match=r"^no: 1$"):
        f.static.validate({})


@pytest.mark.anyio
async def test_init_per_agent_gives_a_fresh_definition_each_time() -> None:
    class Args(BaseModel):
        x: int = 1

    async def init(ctx: InitContext) -> Definition:
        return Definition(f"for {ctx.agent}", Args, lambda args, ctx: str(args.x))

    defined = Tool.define("dynamic", init)
    assert defined.static is None
    first, second = await defined.init(InitContext()), await defined.init(InitContext())
    assert first.definition is not second.definition
    assert first.description == "for None"


def test_define_takes_opencodes_dict() -> None:
    class Args(BaseModel):
        x: int = 1

    fields = {"description": "d", "parameters": Args, "execute": lambda a, c: "", "formatValidationError": str}
    defined = Tool.define("t", fields)
    assert defined.static is not None and defined.static.definition.format_validation_error is str
    with pytest.raises(TypeError, match="no field 'excute'"):
        Tool.define("t", {"description": "d", "parameters": Args, "excute": None})


def test_results() -> None:
    assert as_result("t", "text").output == "text"
    result = as_result("t", {"title": "a", "output": "b", "metadata": {"k": 1}})
    assert (result.title, result.output, result.metadata) == ("a", "b", {"k": 1})
    original = ToolResult(output="x")
    assert as_result("t", original) is original
    data = {"output": "b", "score": 1}
    assert as_result("t", data).value is data, "a dict with keys that are not OpenCode's is data"
    for wrong in (object(), lambda: 1, ToolResult(output=3), ToolResult(metadata=[])):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="The t tool"):
            as_result("t", wrong)


def test_records_as_rows_and_as_a_frame() -> None:
    result = ToolResult(records=[{"a": 1}, {"a": 2}])
    assert list(result.df["a"]) == [1, 2]
    with pytest.raises(ValueError, match=r"not a table"):
        _ = ToolResult(output="x").df


def test_what_is_declared_of_a_tool_is_an_attribute_too() -> None:
    defined = Tool.define(
        "x", Definition("X.", {}, print), effect="reads", group="files", manifest=Manifest(example="%tool x")
    )
    assert (defined.effect, defined.group, defined.example) == ("reads", "files", "%tool x")  # type: ignore[attr-defined]
    assert (defined.permission, defined.builtin) == ("x", False)
    with pytest.raises(AttributeError, match="has no attribute 'grup'"):
        _ = defined.grup  # type: ignore[attr-defined]
