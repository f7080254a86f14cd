"""Stopping a run at every point: it ends at once, nothing is left behind, and the session can go on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.run import Run
from opencode_jupyter.agent.turns import CallPiece, ResultPiece
from opencode_jupyter.core.errors import ToolAbortedError
from tests.support.agents import project
from tests.support.fake_model import FakeModel, Turn
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

SLEEPING = f"sleep 4571.{os.getpid()}"
"""A command of this process alone: other test runs on the machine have theirs."""
SLEEP = ["bash", {"command": SLEEPING, "description": "d"}]
WRITE = ["write", {"filePath": "a.txt", "content": "x" * 100}]
POINTS: dict[str, tuple[Turn, Callable[[Run, FakeModel], bool]]] = {
    "request sent": ({"hang": "request"}, lambda run, model: model.hanging.is_set()),
    "text streaming": ({"text": "Half of it", "hang": "text"}, lambda run, model: model.hanging.is_set()),
    "arguments streaming": ({"calls": [WRITE], "hang": "arguments"}, lambda run, model: model.hanging.is_set()),
    "ask pending": ({"calls": [WRITE]}, lambda run, model: bool(run.workspace.permissions.pending())),
    "tool running": ({"text": "Wait.", "calls": [SLEEP]}, lambda run, model: _sleeps()),
    "first of two done": (
        {"calls": [["glob", {"pattern": "*"}], SLEEP]},
        lambda run, model: bool(run.calls) and run.calls[0].part.outcome == "completed" and _sleeps(),
    ),
}


def _sleeps() -> bool:
    return subprocess.run(["pgrep", "-f", SLEEPING], capture_output=True, check=False).returncode == 0


async def _at(run: Run, model: FakeModel, there: Callable[[Run, FakeModel], bool]) -> asyncio.Task[Any]:
    task = asyncio.create_task(run.run())
    async with asyncio.timeout(20):
        while not there(run, model):
            assert not task.done(), task
            await asyncio.sleep(0.01)
    return task


async def _goes_on(workspace: Workspace, run: Run) -> None:
    """The history is one that a provider takes, and the next request works."""
    model = FakeModel([{"text": "Next."}])
    answer = await workspace.sessions.prompt("and now?", session=run.session, model=model)
    assert answer.text.strip() == "Next."
    turns = model.requests[0].turns
    called = [piece.id for turn in turns for piece in turn.pieces if isinstance(piece, CallPiece)]
    answered = [piece.call_id for turn in turns for piece in turn.pieces if isinstance(piece, ResultPiece)]
    assert called == answered
    assert run.session.run is None
    assert not workspace.calls
    assert not workspace.permissions.pending()


def _config(point: str) -> dict[str, Any]:
    return {} if point == "ask pending" else {"permission": {"*": "allow"}}


@pytest.mark.parametrize("point", POINTS)
async def test_stop(open_workspace: OpenWorkspace, point: str) -> None:
    turn, there = POINTS[point]
    model = FakeModel([turn])
    workspace = await open_workspace(_config(point))
    run = workspace.sessions.prompt("x", model=model)
    task = await _at(run, model, there)
    threading.Thread(target=run.abort).start()
    with pytest.raises(ToolAbortedError) as caught:
        await task
    assert caught.value.reason == "stopped"
    assert run.status == "stopped"
    assert not _sleeps()
    last = run.session.messages[-1]
    assert last.info["error"]["name"] == "MessageAbortedError"
    assert last.info["time"]["completed"]
    assert {part.state.status for part in last.calls} <= {"completed", "error"}
    if "streaming" in point or point == "request sent":
        assert model.closed == 1
    if point == "text streaming":
        assert last.text.strip() == "Half of it"
    await _goes_on(workspace, run)
    assert not (workspace.directory / "a.txt").exists()


@pytest.mark.parametrize("point", POINTS)
async def test_whoever_awaits_is_cancelled(open_workspace: OpenWorkspace, point: str) -> None:
    turn, there = POINTS[point]
    model = FakeModel([turn])
    workspace = await open_workspace(_config(point))
    run = workspace.sessions.prompt("x", model=model)

    async def waits() -> None:
        await run

    waiter = asyncio.create_task(waits())
    async with asyncio.timeout(20):
        while not there(run, model):
            await asyncio.sleep(0.01)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert run.status == "stopped"
    assert not _sleeps()
    await _goes_on(workspace, run)


async def test_stop_before_it_begins(workspace: Workspace) -> None:
    model = FakeModel([{"text": "x"}])
    run = workspace.sessions.prompt("x", model=model)
    run.abort()
    with pytest.raises(ToolAbortedError):
        await run
    assert model.requests == []


async def test_stop_while_it_waits_to_ask_again(workspace: Workspace) -> None:
    from opencode_jupyter.agent.errors import ModelError

    limited = ModelError("slow down", "rate_limit", status=429, retry_after=300)
    model = FakeModel([{"error": limited}])
    run = workspace.sessions.prompt("x", model=model)
    task = await _at(run, model, lambda run, model: run.status == "retrying")
    assert run.retry is not None
    run.abort()
    with pytest.raises(ToolAbortedError):
        await task
    await _goes_on(workspace, run)


async def test_a_stopped_call_does_not_stop_the_run(workspace: Workspace) -> None:
    model = FakeModel([{"calls": [SLEEP]}, {"text": "Then not."}])
    run = workspace.sessions.prompt("x", model=model)
    task = await _at(run, model, lambda run, model: _sleeps())
    run.calls[0].abort("stopped")
    answer = await task
    assert answer.text.strip() == "Then not."
    assert run.calls[0].part.outcome == "stopped"


async def test_a_workspace_that_closes_ends_its_runs(tmp_path: Path) -> None:
    model = FakeModel([{"text": "Half", "hang": "text"}])
    async with project(tmp_path) as workspace:
        run = workspace.sessions.prompt("x", model=model)
        task = await _at(run, model, lambda run, model: model.hanging.is_set())
    with pytest.raises(ToolAbortedError) as caught:
        await task
    assert caught.value.reason == "closed"
