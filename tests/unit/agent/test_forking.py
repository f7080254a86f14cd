"""Forking: copies under new ids, which speak of each other as the old ones did."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import InvalidArgumentsError, Workspace
from opencode_jupyter.agent.exchange import export, import_
from opencode_jupyter.agent.forking import fork, forked_title
from opencode_jupyter.core.call_state import Failed
from tests.support.agents import project
from tests.support.fake_model import FakeModel, Turn
from tests.support.release_form import assert_importable
from tests.support.session_files import recorded
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


def without_ids(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages whose ids are replaced by their order of appearance."""
    text = json.dumps(messages)
    numbers: dict[str, str] = {}

    def name(id: str) -> str:
        return numbers.setdefault(id, f"id{len(numbers)}")

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        return name(value) if isinstance(value, str) and value[:4] in ("ses_", "msg_", "prt_") else value

    walked: list[dict[str, Any]] = walk(json.loads(text))
    return walked


async def test_a_whole_fork_says_the_same_under_other_ids(tmp_path: Path) -> None:
    async with project(tmp_path) as workspace:
        for name in ("picture_task_files", "compacted_stopped_reverted"):
            session = await import_(workspace, recorded(name))
            before = await export(workspace, session)
            made = await fork(workspace, session)
            after = await export(workspace, made)
            assert_importable(after)
            assert without_ids(after["messages"]) == without_ids(before["messages"])
            old = {m["info"]["id"] for m in before["messages"]} | {
                p["id"] for m in before["messages"] for p in m["parts"]
            }
            assert not [id for id in (*old, session.id) if id in json.dumps(after)]
            assert await export(workspace, session) == before
            # It is stored: another workspace opens it.
            async with project(tmp_path) as later:
                assert len((await later.sessions.open(made.id)).messages) == len(session.messages)
        assert "revert" not in after["info"]


async def test_a_fork_ends_before_a_message(workspace: Workspace) -> None:
    session = await import_(workspace, recorded("picture_task_files"))
    third = session.messages[2]
    for at, count in ((third.id, 2), (third, 2), (2, 2), (0, 0), (-1, 4), (5, 5), (None, 5)):
        made = await session.fork(at)
        assert [m.text for m in made.messages] == [m.text for m in session.messages[:count]]
        assert made.parent_id is None
    for at in ("msg_none", 6, -6):
        with pytest.raises(InvalidArgumentsError):
            await session.fork(at)


async def test_costs_are_those_of_what_was_copied(workspace: Workspace) -> None:
    session = await import_(workspace, recorded("picture_task_files"))
    info = (await export(workspace, await session.fork(2)))["info"]
    assert info["cost"] == pytest.approx(0.00013)
    assert info["tokens"]["input"] == 90


async def test_both_go_on_by_themselves(open_workspace: OpenWorkspace) -> None:
    workspace = await open_workspace(files={"a.txt": "hello\n"})
    turns: list[Turn] = [
        {"calls": [["read", {"filePath": "a.txt"}]]},
        {"text": "First."},
        {"text": "Other."},
        {"text": "Own."},
    ]
    model = FakeModel(turns)
    session = (await workspace.sessions.prompt("read it", model=model, title="Reading")).session
    made = await session.fork()
    assert (made.title, made.agent, made.model) == ("Reading (fork #1)", session.agent, session.model)
    before = copy.deepcopy(await export(workspace, session))
    await made.prompt("what else?", model=model)
    assert await export(workspace, session) == before
    await session.prompt("and you?", model=model)
    assert [m.text.strip() for m in made.messages][-1] == "Other."
    assert [m.text.strip() for m in session.messages][-1] == "Own."
    sent = model.requests[2].turns
    assert [turn.role for turn in sent] == ["user", "assistant", "tool", "assistant", "user"]


async def test_calls_at_work_are_not_at_work_in_the_fork(workspace: Workspace) -> None:
    session = await import_(workspace, recorded("fork"))
    assert workspace.store is not None
    (part,) = [part for part in await workspace.store.parts(session.id) if part["type"] == "tool"]
    part["state"] = {
        "status": "running",
        "input": {"a": 1},
        "time": {"start": 1000},
        "metadata": {"output": "half"},
    }
    workspace.store.put_part(part)
    (call,) = (await fork(workspace, session)).messages[1].calls
    assert isinstance(call.state, Failed)
    assert (call.state.error, call.state.metadata) == ("Tool execution aborted", {"output": "half"})


def test_titles_count_forks() -> None:
    assert forked_title("A") == "A (fork #1)"
    assert forked_title("A (fork #1)") == "A (fork #2)"
    assert forked_title("A (fork #9) b") == "A (fork #9) b (fork #1)"
