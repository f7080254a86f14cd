"""Tools as OpenAI's and Anthropic's APIs take them, and the calls that come back."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter import Attachment, InitContext, Tool, ToolError, ToolResult, UnknownToolError, Workspace, tool
from opencode_jupyter.adapters._model_calls import LONGEST, wire_names
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\nrest"


@tool
def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    if city == "nowhere":
        raise LookupError("no such city")
    return f"{city} {days}"


@tool
def draw(what: str) -> ToolResult:
    """Draw a picture."""
    files = [Attachment.from_bytes(PNG, "image/png"), Attachment.from_bytes(b"%PDF-1", "application/pdf", "a.pdf")]
    return ToolResult("", what, attachments=files)


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    workspace = await open_workspace({}, store=False)
    workspace.registry.register(weather)
    workspace.registry.register(draw)
    return workspace


WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
    "required": ["city"],
    "additionalProperties": False,
}


# ---------------------------------------------------------------------- schemas


async def test_the_forms_of_the_three_apis(ws: Workspace) -> None:
    form = {"name": "weather", "description": "The weather of a city.", "parameters": WEATHER}
    assert ws.tools.for_openai(names=["weather"]) == [{"type": "function", "function": form}]
    assert ws.tools.for_openai(names=["weather"], responses=True) == [{"type": "function", **form, "strict": False}]
    assert ws.tools.for_anthropic(names=["weather"]) == [
        {"name": "weather", "description": "The weather of a city.", "input_schema": WEATHER}
    ]
    json.dumps(ws.tools.for_openai())


async def test_the_tools_that_a_model_and_an_agent_are_offered(open_workspace: OpenWorkspace) -> None:
    config = {"permission": {"webfetch": "deny"}, "agent": {"reader": {"permission": {"edit": "deny"}}}}

    async def init(ctx: InitContext) -> dict[str, Any]:
        assert ctx.agent is not None
        return {"description": ctx.agent.name, "parameters": {"type": "object"}, "execute": lambda a, c: ""}

    ws = await open_workspace(config, store=False)
    ws.registry.register(Tool.define("who", init))

    def names(**which: Any) -> dict[str, str]:
        return {entry["name"]: entry["description"] for entry in ws.tools.for_anthropic(**which)}

    usual = names(model="anthropic:claude")
    assert {"read", "edit", "write", "bash", "who"} <= usual.keys()
    assert not {"webfetch", "invalid", "apply_patch"} & usual.keys()
    patches = names(model="openai:gpt-5")
    assert "apply_patch" in patches and "edit" not in patches
    assert "edit" not in names(agent="reader")
    assert names(agent="plan", names=["who"]) == {"who": "plan"}
    assert list(names(names=["webfetch", "read"])) == ["read"]


async def test_wrong_names_and_agents(ws: Workspace) -> None:
    with pytest.raises(UnknownToolError, match="Did you mean weather"):
        ws.tools.for_openai(names=["wether"])
    with pytest.raises(TypeError, match=r"names= takes a list of tools, such as \['weather'\]"):
        ws.tools.for_openai(names="weather")
    with pytest.raises(ToolError, match="no agent 'nobody'"):
        await ws.tools.afor_openai(agent="nobody")
    with pytest.raises(ToolError, match="no agent 'nobody'"):
        await ws.tools.run_openai([], agent="nobody")


async def test_the_awaited_twins_give_the_same(ws: Workspace) -> None:
    assert await ws.tools.afor_openai() == ws.tools.for_openai()
    assert await ws.tools.afor_openai(responses=True) == ws.tools.for_openai(responses=True)
    assert await ws.tools.afor_anthropic() == ws.tools.for_anthropic()


def test_without_any_loop_and_from_another_thread(tmp_path: Path) -> None:
    with Workspace(tmp_path, data_dir=tmp_path / "d", store=False) as ws:
        ws.registry.register(weather)
        assert len(ws.tools.for_openai(names=["weather"])) == 1

    opened: list[Workspace] = []
    ready, done = threading.Event(), threading.Event()

    def engine() -> None:
        async def live() -> None:
            async with Workspace(tmp_path, data_dir=tmp_path / "d", store=False) as ws:
                ws.registry.register(weather)
                opened.append(ws)
                ready.set()
                await asyncio.to_thread(done.wait, 20)

        asyncio.run(live())

    thread = threading.Thread(target=engine)
    thread.start()
    try:
        assert ready.wait(20)
        ws = opened[0]
        assert len(ws.tools.for_openai(names=["weather"])) == 1
        call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
        [message] = asyncio.run(ws.tools.run_openai([call]))
        assert message["content"] == "Bonn 1"
    finally:
        done.set()
        thread.join(20)


# ---------------------------------------------------------------------- OpenAI's calls


def chat(id: str, name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


async def test_chat_calls_good_and_bad(ws: Workspace) -> None:
    calls = [
        chat("1", "weather", {"city": "Bonn", "days": "2"}),
        chat("2", "weather", {"city": "nowhere"}),
        chat("3", "weather", '{"city": "Bo'),
        chat("4", "wether", {}),
        chat("5", "weather", {"days": 1}),
        chat("6", "Weather", {"city": "Ulm"}),
    ]
    messages = await ws.tools.run_openai(calls)
    assert [m["tool_call_id"] for m in messages] == ["1", "2", "3", "4", "5", "6"]
    assert {m["role"] for m in messages} == {"tool"}
    texts = [m["content"] for m in messages]
    assert texts[0] == "Bonn 2" and texts[5] == "Ulm 1"
    assert texts[1] == "LookupError: no such city"
    assert "JSON parsing failed" in texts[2]
    assert "unavailable tool 'wether'" in texts[3]
    assert '"city"' in texts[4] and "invalid arguments" in texts[4]


def objects(value: Any) -> Any:
    """As OpenAI's and Anthropic's libraries give it."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: item if key == "input" else objects(item) for key, item in value.items()})
    return [objects(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("form", [lambda value: value, objects])
async def test_whole_answers_are_taken_as_they_come(ws: Workspace, form: Any) -> None:
    call = chat("1", "weather", {"city": "Bonn"})
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    expected = [{"role": "tool", "tool_call_id": "1", "content": "Bonn 1"}]
    assert await ws.tools.run_openai(form(message)) == expected
    assert await ws.tools.run_openai(form({"choices": [{"index": 0, "message": message}]})) == expected
    assert await ws.tools.run_openai(form({"role": "assistant", "content": "no calls", "tool_calls": None})) == []
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city": "Ulm"}'}
    output = [{"type": "reasoning", "summary": []}, item, {"type": "message", "content": []}]
    expected = [{"type": "function_call_output", "call_id": "c1", "output": "Ulm 1"}]
    assert await ws.tools.run_openai(form({"output": output})) == expected
    assert await ws.tools.run_openai(form(output)) == expected


@pytest.mark.parametrize("wrong", [3, "text", {"foo": 1}, object()])
async def test_what_is_no_answer(ws: Workspace, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"run_openai\(\) takes a completion"):
        await ws.tools.run_openai(wrong)
    with pytest.raises(TypeError, match=r"run_anthropic\(\) takes a message"):
        await ws.tools.run_anthropic(wrong)


async def test_pictures(ws: Workspace) -> None:
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    messages = await ws.tools.run_openai([chat("1", "draw", {"what": "cat"}), chat("2", "weather", {"city": "Bonn"})])
    assert [m["role"] for m in messages] == ["tool", "tool", "user"]
    assert messages[2]["content"][1] == {"type": "image_url", "image_url": {"url": url}}
    item = {"type": "function_call", "call_id": "c1", "name": "draw", "arguments": '{"what": "cat"}'}
    [answer] = await ws.tools.run_openai([item])
    assert [part["type"] for part in answer["output"]] == ["input_text", "input_image", "input_file"]
    block = {"type": "tool_use", "id": "t", "name": "draw", "input": {"what": "cat"}}
    [answer] = await ws.tools.run_anthropic([block])
    [result] = answer["content"]
    assert [part["type"] for part in result["content"]] == ["text", "image", "document"]
    assert base64.b64decode(result["content"][1]["source"]["data"]) == PNG


# ---------------------------------------------------------------------- Anthropic's calls


@pytest.mark.parametrize("form", [lambda value: value, objects])
async def test_tool_use_blocks(ws: Workspace, form: Any) -> None:
    blocks = [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bonn"}},
        {"type": "tool_use", "id": "t2", "name": "weather", "input": {"city": "nowhere"}},
        {"type": "tool_use", "id": "t3", "name": "weather", "input": {}},
    ]
    [message] = await ws.tools.run_anthropic(form({"role": "assistant", "content": blocks}))
    assert message["role"] == "user"
    first, second, third = message["content"]
    assert first == {"type": "tool_result", "tool_use_id": "t1", "content": "Bonn 1"}
    assert second["is_error"] is True and second["content"] == "LookupError: no such city"
    assert third["is_error"] is True and "invalid arguments" in third["content"]
    assert await ws.tools.run_anthropic(form([{"type": "text", "text": "no calls"}])) == []


# ---------------------------------------------------------------------- the pipeline


async def test_calls_are_a_models_and_the_rules_decide(open_workspace: OpenWorkspace, project: Path) -> None:
    config = {"permission": {"bash": "ask", "read": "deny"}}
    parts: list[Any] = []
    ws = await open_workspace(config, approve=lambda request: "reject", store=False)
    ws.bus.subscribe("message.part.updated", lambda event: parts.append(event))
    blocks = [
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "touch made", "description": "makes"}},
        {"type": "tool_use", "id": "b", "name": "read", "input": {"filePath": "x"}},
    ]
    [message] = await ws.tools.run_anthropic(blocks)
    assert [r["is_error"] for r in message["content"]] == [True, True]
    assert "rejected permission" in message["content"][0]["content"]
    assert not (project / "made").exists()
    assert parts


async def test_only_the_named_tools_can_be_called(ws: Workspace) -> None:
    calls = [chat("1", "draw", {"what": "x"}), chat("2", "weather", {"city": "Bonn"})]
    first, second = await ws.tools.run_openai(calls, names=["weather"])
    assert "unavailable tool 'draw'. Available tools: weather" in first["content"]
    assert second["content"] == "Bonn 1"


async def test_calls_run_side_by_side_and_a_cancel_ends_them(ws: Workspace) -> None:
    started = asyncio.Event()
    events = [asyncio.Event(), asyncio.Event()]
    ended: list[int] = []

    @tool
    async def meet(caller: int) -> str:
        events[caller].set()
        started.set()
        try:
            await events[1 - caller].wait()
        except asyncio.CancelledError:
            ended.append(caller)
            raise
        return "met"

    ws.registry.register(meet)
    messages = await ws.tools.run_openai([chat("1", "meet", {"caller": 0}), chat("2", "meet", {"caller": 1})])
    assert [m["content"] for m in messages] == ["met", "met"]
    events[0].clear()
    events[1].clear()
    started.clear()
    task = asyncio.create_task(ws.tools.run_openai([chat("1", "meet", {"caller": 0})]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [0] and not ws.calls


# ---------------------------------------------------------------------- names


async def test_names_that_providers_do_not_take(ws: Workspace) -> None:
    long = "a" * 80
    for id in ("größe", "my.tool", "my tool", long):
        ws.registry.register(tool(id)(lambda n=1: f"ran {n}"))
    names = [entry["name"] for entry in ws.tools.for_anthropic(names=["größe", "my.tool", "my tool", long])]
    assert names[0] == "gr__e"
    assert len(set(names)) == 4 and all(len(name) <= LONGEST and name.isascii() for name in names)
    messages = await ws.tools.run_openai([chat(str(i), name, {"n": i}) for i, name in enumerate(names)])
    assert [m["content"] for m in messages] == [f"ran {i}" for i in range(4)]


@given(st.lists(st.text(min_size=1, max_size=80), max_size=8, unique=True))
def test_no_two_names_are_the_same(ids: list[str]) -> None:
    names = wire_names(ids)
    assert list(names) == ids
    assert len(set(names.values())) == len(ids)
    for name in names.values():
        assert 0 < len(name) <= LONGEST
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert wire_names(reversed(ids)) == names
