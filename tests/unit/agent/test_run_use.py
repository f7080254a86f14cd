"""How a run is used: left early, cancelled, given what it can't take; forms that types of all kinds have."""

from __future__ import annotations

import asyncio
import datetime
import enum
import gc
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict

from opencode_jupyter import Workspace
from opencode_jupyter.agent.structured import StructuredOutput
from opencode_jupyter.core.errors import InvalidArgumentsError, ToolAbortedError, ToolError
from opencode_jupyter.tools.web.sse import events
from tests.support.agents import project
from tests.support.fake_model import FakeModel

pytestmark = pytest.mark.anyio


class Colour(enum.Enum):
    RED = "red"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    colour: Colour
    day: datetime.date
    id: UUID


class Node(BaseModel):
    name: str
    inner: list[Node] = []


async def test_who_leaves_the_events_may_ask_again_at_once(workspace: Workspace) -> None:
    model = FakeModel([{"text": "words", "hang": "text"}, {"text": "next"}])
    session = workspace.sessions.create()
    run = session.prompt("x", model=model)
    async for event in run:
        if event["type"] == "message.part.delta":
            break
    assert (await session.prompt("y", model=model)).text.strip() == "next"
    assert run.status == "stopped"
    with pytest.raises(ToolAbortedError):
        await run


async def test_a_cancelled_wait_leaves_no_complaint(tmp_path: Path) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    model = FakeModel([{"text": "words", "hang": "text"}])
    async with project(tmp_path) as workspace:
        run = workspace.sessions.prompt("x", model=model)
        waiter = asyncio.ensure_future(run.__aiter__().__anext__())
        await waiter
        outer = asyncio.ensure_future(run.execution.wait())
        await model.hanging.wait()
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
        assert run.status == "stopped"
        del run, waiter, outer
    gc.collect()
    await asyncio.sleep(0.05)
    asyncio.get_running_loop().set_exception_handler(None)
    assert complaints == []


async def test_a_refused_prompt_says_nothing_of_the_session_at_work(workspace: Workspace) -> None:
    model = FakeModel([{"text": "words", "hang": "text"}])
    session = workspace.sessions.create()
    busy = session.prompt("x", model=model)
    task = asyncio.ensure_future(busy.run())
    await model.hanging.wait()
    types: list[str] = []
    unsubscribe = workspace.bus.subscribe("*", lambda event: types.append(event["type"]))
    with pytest.raises(ToolError, match="is running"):
        await session.prompt("y", model=model)
    unsubscribe()
    assert not [type_name for type_name in types if type_name.startswith("session.")], "it is not idle"
    busy.abort()
    with pytest.raises(ToolAbortedError):
        await task


async def test_a_new_session_is_said_to_be_busy_and_then_idle(tmp_path: Path) -> None:
    async with project(tmp_path) as workspace:
        run = workspace.sessions.prompt("x", model=FakeModel([{"text": "y"}]))
        states = [e["properties"]["status"]["type"] async for e in run if e["type"] == "session.status"]
    assert states == ["busy", "idle"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": 5}, "model must be"),
        ({"agent": 5}, "agent must be a text"),
        ({"system": 5}, "system must be a text"),
        ({"title": 5}, "title must be a text"),
        ({"session": 5}, "session must be"),
        ({"record": 5}, "record must be a path"),
        ({"files": "a.txt"}, "list of paths"),
        ({"files": 5}, "list of paths"),
        ({"tools": 5}, "list of names"),
        ({"max_steps": True}, "whole number"),
    ],
)
async def test_what_is_not_of_its_kind_is_refused_at_once(
    workspace: Workspace, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentsError, match=message):
        workspace.sessions.prompt("x", **wrong)


async def test_a_strict_type(workspace: Workspace) -> None:
    fields = {"colour": "red", "day": "2024-01-02", "id": "12345678-1234-5678-1234-567812345678"}
    model = FakeModel([{"calls": [["StructuredOutput", fields]]}])
    answer = await workspace.sessions.prompt("x", model=model, format=Strict)
    assert answer.value == Strict(colour=Colour.RED, day=datetime.date(2024, 1, 2), id=UUID(fields["id"]))


async def test_a_list_of_models_is_kept_as_json(workspace: Workspace) -> None:
    model = FakeModel([{"calls": [["StructuredOutput", {"value": [{"name": "a", "inner": [{"name": "b"}]}]}]]}])
    answer = await workspace.sessions.prompt("x", model=model, format=list[Node])
    kept = answer.calls[0].to_wire()["state"]["metadata"]["value"]
    assert answer.value == [Node(name="a", inner=[Node(name="b")])]
    assert kept == [{"name": "a", "inner": [{"name": "b", "inner": []}]}]


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (Node, {"name", "inner"}),
        ({"$ref": "#/definitions/A", "definitions": {"A": {"type": "object", "properties": {"a": {}}}}}, {"a"}),
        ({"type": ["object", "null"], "properties": {"a": {}}}, {"value"}),
        ({"properties": {"a": {}}}, {"a"}),
        ({"items": {"$ref": "#/definitions/A"}, "type": "array", "definitions": {"A": {"type": "object"}}}, {"value"}),
    ],
)
def test_there_is_an_object_at_the_top(schema: Any, names: set[str]) -> None:
    parameters: Any = StructuredOutput(schema).bound.definition.parameters
    assert parameters["properties"].keys() == names
    assert parameters.get("type", "object") == "object"
    assert "definitions" not in parameters["properties"].get("value", {})
    if "$ref" in str(parameters):
        assert "$defs" in parameters or "definitions" in parameters


async def test_a_stopped_run_leaves_no_connection(tmp_path: Path) -> None:
    """Not even one that only waits for the next request: here a call is at work, and the answer before it is whole."""
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = {
            "index": 0,
            "id": "c",
            "function": {"name": "bash", "arguments": '{"command":"sleep 30","description":"d"}'},
        }
        chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
        body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        await writer.drain()
        if await reader.read() == b"":
            closed.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    config = {"permission": {"*": "allow"}, "provider": {"mine": {"options": {"baseURL": address, "apiKey": "key"}}}}
    async with server, project(tmp_path, config=config) as workspace:
        run = workspace.sessions.prompt("x", model="mine:m")
        task = asyncio.ensure_future(run.run())
        async with asyncio.timeout(20):
            while not (run.calls and run.calls[0].part.state.status == "running"):
                await asyncio.sleep(0.01)
        assert not closed.is_set()
        run.abort()
        with pytest.raises(ToolAbortedError):
            await task
        await asyncio.wait_for(closed.wait(), 2)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
async def test_events_with_any_line_end_in_any_pieces(end: bytes, size: int) -> None:
    raw = end.join(
        [b": hello", b"event: x", b'data: {"a":', b'data: "1\\r"}', b"", b"data:two", b"", b"data: three", b"", b""]
    )

    async def body() -> AsyncIterator[bytes]:
        for at in range(0, len(raw), size):
            yield raw[at : at + size]

    assert [event async for event in events(body())] == [b'{"a":\n"1\\r"}', b"two", b"three"]
