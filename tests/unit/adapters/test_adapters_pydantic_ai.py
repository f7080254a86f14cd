"""pydantic-ai's tools as ours, and ours in its agents, with pydantic-ai itself."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, FunctionToolset, ModelRetry, RunContext, ToolReturn
from pydantic_ai import Tool as PydanticTool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from opencode_jupyter import Attachment, InvalidArgumentsError, ToolError, ToolResult, Workspace, tool
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({}, store=False)


@dataclass
class Deps:
    prefix: str


def add(a: int, b: int = 1) -> int:
    """Add numbers.

    Args:
        a: the first one
        b: the second one
    """
    return a + b


async def say(ctx: RunContext[Deps], text: str) -> str:
    """Say something."""
    return f"{ctx.deps.prefix} {text} {ctx.tool_name}"


async def test_a_tool_with_its_validator_and_descriptions(ws: Workspace) -> None:
    registered = ws.registry.register(PydanticTool(add))
    assert (registered.id, registered.source) == ("add", "pydantic-ai")
    assert registered.static is not None
    assert registered.static.parameters["properties"]["a"]["description"] == "the first one"
    assert (await ws.call("add", {"a": "2"})).output == "3"
    with pytest.raises(InvalidArgumentsError, match='"a"'):
        await ws.call("add", {"a": "many"})


async def test_deps(ws: Workspace) -> None:
    ws.registry.register(PydanticTool(say))
    with pytest.raises(ToolError, match=r"uses ctx\.deps\.prefix.*deps=\.\.\."):
        await ws.call("say", {"text": "hi"})
    ws.registry.register(PydanticTool(say), deps=Deps(">"))
    assert (await ws.call("say", {"text": "hi"})).output == "> hi say"


async def test_toolsets_of_several_kinds(ws: Workspace) -> None:
    toolset: FunctionToolset[Any] = FunctionToolset([add, say])
    registered = ws.registry.register(toolset.prefixed("my").filtered(lambda ctx, form: form.name != "my_say"))
    assert [entry.id for entry in registered] == ["my_add"]
    assert (await ws.call("my_add", {"a": 1})).output == "2"
    with pytest.raises(TypeError, match="kind external"):
        ws.registry.register(ExternalToolset([ToolDefinition(name="far")]))


async def test_what_tools_return(ws: Workspace) -> None:
    def rows() -> list[dict[str, int]]:
        return [{"a": 1}, {"a": 2}]

    def picture() -> list[Any]:
        return ["look", BinaryContent(PNG, media_type="image/png")]

    def rich() -> ToolReturn:
        return ToolReturn(
            "value", content=["for the user", BinaryContent(PNG, media_type="image/png")], metadata={"k": 1}
        )

    def nothing() -> None:
        return None

    ws.registry.register(FunctionToolset([rows, picture, rich, nothing]))
    result = await ws.call("rows")
    assert (result.output, list(result.df["a"])) == ('[{"a":1},{"a":2}]', [1, 2])
    result = await ws.call("picture")
    assert (result.output, result.attachments[0].data) == ("look", PNG)
    result = await ws.call("rich")
    assert (result.output, result.metadata["artifact"], len(result.attachments)) == (
        "value\n\nfor the user",
        {"k": 1},
        1,
    )
    assert (await ws.call("nothing")).output == ""


async def test_errors_meant_for_the_model(ws: Workspace) -> None:
    def retry(n: int) -> str:
        raise ModelRetry("another number, please")

    def breaks() -> str:
        raise LookupError("gone")

    ws.registry.register(FunctionToolset([retry, breaks]))
    with pytest.raises(ToolError, match="another number, please"):
        await ws.call("retry", {"n": 1})
    with pytest.raises(LookupError, match="gone"):
        await ws.call("breaks")


async def test_an_own_validator_is_called(ws: Workspace) -> None:
    def small(ctx: RunContext[None], n: int) -> None:
        if n > 9:
            raise ModelRetry("too large")

    def show(n: int) -> str:
        return str(n)

    ws.registry.register(PydanticTool(show, args_validator=small))
    assert (await ws.call("show", {"n": 9})).output == "9"
    with pytest.raises(ToolError, match="too large"):
        await ws.call("show", {"n": 10})


# ---------------------------------------------------------------------- ours in pydantic-ai's agents


@tool
def weather(city: str, days: int = 1) -> ToolResult:
    """The weather of a city."""
    if city == "nowhere":
        raise LookupError("no such city")
    return ToolResult("", f"{city} {days}", {"unit": "c"}, [Attachment.from_bytes(PNG, "image/png")])


@tool
def secret() -> str:
    """Never to be called."""
    raise AssertionError


def scripted(*turns: list[Any]) -> FunctionModel:
    left = list(turns)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=left.pop(0))

    return FunctionModel(answer)


def returns(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


async def test_an_agent_calls_live_tools(ws: Workspace) -> None:
    ws.registry.register(weather)
    live = ws.tools.for_pydantic_ai(names=["weather"])
    calls = [ToolCallPart("weather", {"city": c}, tool_call_id=c) for c in ("Bonn", "nowhere")]
    agent = Agent(scripted(calls, [TextPart("done")]), tools=live)
    run = await agent.run("go")
    assert run.output == "done"
    good, bad = returns(run.all_messages())
    assert good.content[0] == "Bonn 1" and good.content[1].data == PNG
    assert good.metadata["unit"] == "c"
    assert "no such city" in str(bad.content) and bad.outcome == "failed"


async def test_the_schema_reaches_the_model(ws: Workspace) -> None:
    ws.registry.register(weather)
    model = TestModel(call_tools=[])
    await Agent(model, tools=ws.tools.for_pydantic_ai(names=["weather", "read"])).run("go")
    assert model.last_model_request_parameters is not None
    forms = {form.name: form for form in model.last_model_request_parameters.function_tools}
    assert forms["weather"].description == "The weather of a city."
    assert forms["weather"].parameters_json_schema["required"] == ["city"]
    assert "filePath" in forms["read"].parameters_json_schema["properties"]


async def test_rules_decide_and_the_agent_goes_on(open_workspace: OpenWorkspace, project: Path) -> None:
    config = {"permission": {"bash": "ask"}}
    ws = await open_workspace(config, approve=lambda request: ("reject", "not now"), store=False)
    call = ToolCallPart("bash", {"command": "touch made", "description": "makes a file"})
    live = await ws.tools.afor_pydantic_ai(names=["bash"])
    run = await Agent(scripted([call], [TextPart("ok")]), tools=live).run("go")
    assert run.output == "ok"
    [refused] = returns(run.all_messages())
    assert "not now" in str(refused.content)
    assert not (project / "made").exists()


async def test_tools_that_rules_deny_are_left_out(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({"permission": {"secret": "deny"}}, store=False)
    ws.registry.register(secret)
    ws.registry.register(weather)
    names = {entry.name for entry in ws.tools.for_pydantic_ai()}
    assert "weather" in names and not {"secret", "invalid"} & names


async def test_a_round_trip(open_workspace: OpenWorkspace, ws: Workspace) -> None:
    ws.registry.register(weather)
    live = ws.tools.for_pydantic_ai(names=["weather"])
    second = await open_workspace({}, directory=ws.directory, data_dir=ws.data_dir / "second", store=False)
    second.registry.register(live)
    result = await second.call("weather", {"city": "Bonn", "days": 3})
    assert result.output == "Bonn 3"
    assert base64.b64encode(result.attachments[0].data) == base64.b64encode(PNG)
