"""How a run is used: left early, cancelled, given what it can't take; forms that types of all kinds have."""

from __future__ import annotations

import asyncio
import datetime
import enum
import gc
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict

from opencode_jupyter.agent.structured import Structured
from opencode_jupyter.core.errors import InvalidArgumentsError, ToolAbortedError, ToolError
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


async def test_who_leaves_the_events_may_ask_again_at_once(tmp_path: Path) -> None:
    model = FakeModel([{"text": "words", "hang": "text"}, {"text": "next"}])
    async with project(tmp_path) as workspace:
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
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: said.append(context))
    model = FakeModel([{"text": "words", "hang": "text"}])
    async with project(tmp_path) as workspace:
        run = workspace.sessions.prompt("x", model=model)
        waiter = asyncio.ensure_future(run.__aiter__().__anext__())
        await waiter
        outer = asyncio.ensure_future(run._awaited())
        await model.hanging.wait()
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
        assert run.status == "stopped"
        del run, waiter, outer
    gc.collect()
    await asyncio.sleep(0.05)
    asyncio.get_running_loop().set_exception_handler(None)
    assert said == []


async def test_a_refused_prompt_says_nothing_of_the_session_at_work(tmp_path: Path) -> None:
    model = FakeModel([{"text": "words", "hang": "text"}])
    async with project(tmp_path) as workspace:
        session = workspace.sessions.create()
        busy = session.prompt("x", model=model)
        task = asyncio.ensure_future(busy.run())
        await model.hanging.wait()
        told: list[str] = []
        unsubscribe = workspace.bus.subscribe("*", lambda event: told.append(event["type"]))
        with pytest.raises(ToolError, match="at work"):
            await session.prompt("y", model=model)
        unsubscribe()
        assert not [one for one in told if one.startswith("session.")], "it is not idle"
        busy.abort()
        with pytest.raises(ToolAbortedError):
            await task


async def test_a_new_session_is_said_to_be_busy_and_then_idle(tmp_path: Path) -> None:
    async with project(tmp_path) as workspace:
        run = workspace.sessions.prompt("x", model=FakeModel([{"text": "y"}]))
        states = [e["properties"]["status"]["type"] async for e in run if e["type"] == "session.status"]
    assert states == ["busy", "idle"]


@pytest.mark.parametrize(
    ("wrong", "said"),
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
async def test_what_is_not_of_its_kind_is_refused_at_once(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    async with project(tmp_path) as workspace:
        with pytest.raises(InvalidArgumentsError, match=said):
            workspace.sessions.prompt("x", **wrong)


async def test_a_strict_type(tmp_path: Path) -> None:
    given = {"colour": "red", "day": "2024-01-02", "id": "12345678-1234-5678-1234-567812345678"}
    model = FakeModel([{"calls": [["StructuredOutput", given]]}])
    async with project(tmp_path) as workspace:
        answer = await workspace.sessions.prompt("x", model=model, format=Strict)
    assert answer.value == Strict(colour=Colour.RED, day=datetime.date(2024, 1, 2), id=UUID(given["id"]))


async def test_a_list_of_models_is_kept_as_json(tmp_path: Path) -> None:
    model = FakeModel([{"calls": [["StructuredOutput", {"value": [{"name": "a", "inner": [{"name": "b"}]}]}]]}])
    async with project(tmp_path) as workspace:
        answer = await workspace.sessions.prompt("x", model=model, format=list[Node])
        kept = answer.calls[0].to_wire()["state"]["metadata"]["value"]
    assert answer.value == [Node(name="a", inner=[Node(name="b")])]
    assert kept == [{"name": "a", "inner": [{"name": "b", "inner": []}]}]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (Node, {"name", "inner"}),
        ({"$ref": "#/definitions/A", "definitions": {"A": {"type": "object", "properties": {"a": {}}}}}, {"a"}),
        ({"type": ["object", "null"], "properties": {"a": {}}}, {"value"}),
        ({"properties": {"a": {}}}, {"a"}),
        ({"items": {"$ref": "#/definitions/A"}, "type": "array", "definitions": {"A": {"type": "object"}}}, {"value"}),
    ],
)
def test_there_is_an_object_at_the_top(wanted: Any, names: set[str]) -> None:
    parameters = Structured(wanted).bound.definition.parameters
    assert parameters["properties"].keys() == names
    assert parameters.get("type", "object") == "object"
    assert "definitions" not in parameters["properties"].get("value", {})
    if "$ref" in str(parameters):
        assert "$defs" in parameters or "definitions" in parameters
