"""todowrite and todoread: a list for each session, kept by the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import InvalidArgumentsError, PermissionDeniedError, Workspace
from opencode_jupyter.tools.todowrite import Todos
from tests.support.workspaces import OpenWorkspace

from .conftest import Approver

pytestmark = pytest.mark.anyio

LIST = [
    {"content": "import math", "status": "in_progress", "priority": "high"},
    {"content": "naïve ✓", "status": "completed", "priority": "low"},
    {"content": "add a test", "status": "cancelled", "priority": "medium"},
]


async def test_half_a_character_is_written_as_javascript_does(workspace: Workspace) -> None:
    todo = {"content": "\ud800 é", "status": "pending", "priority": "low"}
    written = await workspace.call("todowrite", {"todos": [todo]})
    assert '"content": "\\ud800 é"' in written.output and json.loads(written.output) == [todo]
    assert (await workspace.call("todoread")).output == written.output


async def test_writes_and_reads_the_whole_list(workspace: Workspace, approver: Approver) -> None:
    written = await workspace.call("todowrite", {"todos": LIST})
    assert written.title == "2 todos"
    assert written.output == json.dumps(LIST, indent=2, ensure_ascii=False)
    assert written.metadata == {"todos": LIST, "truncated": False}
    assert written.records == LIST
    read = await workspace.call("todoread")
    assert (read.title, read.output, read.metadata) == (written.title, written.output, written.metadata)
    assert list(read.df["status"]) == ["in_progress", "completed", "cancelled"]
    assert [(a.permission, a.patterns, a.always, a.metadata) for a in approver.asks] == [
        ("todowrite", ["*"], ["*"], {}),
        ("todoread", ["*"], ["*"], {}),
    ]
    emptied = await workspace.call("todowrite", {"todos": []})
    assert (emptied.title, emptied.output) == ("0 todos", "[]")
    assert (await workspace.call("todoread")).output == "[]"


@pytest.mark.parametrize("store", [True, False])
async def test_each_session_has_its_own(open_workspace: OpenWorkspace, store: bool) -> None:
    ws = await open_workspace({}, store=store)
    other = ws.sessions.create("other")
    await ws.call("todowrite", {"todos": LIST})
    await ws.call("todowrite", {"todos": LIST[:1]}, session=other)
    assert (await ws.call("todoread")).metadata["todos"] == LIST
    assert (await ws.call("todoread", session=other)).metadata["todos"] == LIST[:1]
    fresh = await ws.call("todoread", session=ws.sessions.create("fresh"))
    assert (fresh.title, fresh.output) == ("0 todos", "[]")
    assert (await ws.service(Todos).get("ses_unknown")) == []


async def test_the_store_keeps_it(project: Path, tmp_path: Path) -> None:
    async with Workspace(project, data_dir=tmp_path / "data") as ws:
        session = ws.sessions.default.id
        await ws.call("todowrite", {"todos": LIST})
    async with Workspace(project, data_dir=tmp_path / "data") as ws:
        assert await ws.service(Todos).get(session) == LIST


@pytest.mark.parametrize("store", [True, False])
async def test_what_was_given_stays_as_it_was(open_workspace: OpenWorkspace, store: bool) -> None:
    ws = await open_workspace({}, store=store)
    result = await ws.call("todowrite", {"todos": LIST})
    result.metadata["todos"][0]["status"] = "completed"
    assert result.records is not None
    result.records.clear()
    assert (await ws.call("todoread")).metadata["todos"] == LIST


async def test_publishes_the_list(workspace: Workspace) -> None:
    published: list[Any] = []
    workspace.bus.subscribe("todo.updated", lambda event: published.append(event["properties"]))
    await workspace.call("todowrite", {"todos": LIST})
    await workspace.call("todoread")
    assert published == [{"sessionID": workspace.sessions.default.id, "todos": LIST}]


async def test_an_id_is_kept_where_it_stood_and_unknown_keys_are_not(workspace: Workspace) -> None:
    item = {"id": "1", "priority": "urgent", "content": "a", "note": "x", "status": "someday"}
    result = await workspace.call("todowrite", {"todos": [item]})
    assert result.title == "1 todos"
    kept = {key: value for key, value in item.items() if key != "note"}
    assert result.output == json.dumps([kept], indent=2)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"todos": None},
        {"todos": "a"},
        {"todos": '[{"content": "a", "status": "pending", "priority": "low"}]'},
        {"todos": {"content": "a"}},
        {"todos": ["a"]},
        {"todos": [{"content": "a"}]},
        {"todos": [{"content": "a", "status": "pending"}]},
        {"todos": [{"content": 5, "status": "pending", "priority": "low"}]},
        {"todos": [{"content": "a", "status": None, "priority": "low"}]},
        {"todos": [{"content": "a", "status": "pending", "priority": "low", "id": 7}]},
        {"todos": [LIST[0], []]},
    ],
)
async def test_other_shapes_are_refused_and_the_list_stays(workspace: Workspace, arguments: dict[str, Any]) -> None:
    await workspace.call("todowrite", {"todos": LIST})
    with pytest.raises(InvalidArgumentsError, match="The todowrite tool was called with invalid arguments"):
        await workspace.call("todowrite", arguments)
    assert (await workspace.call("todoread")).metadata["todos"] == LIST


async def test_a_dry_run_changes_nothing(workspace: Workspace) -> None:
    decisions = await workspace.dry_run("todowrite", {"todos": LIST})
    assert [d.permission for d in decisions] == ["todowrite"]
    assert (await workspace.call("todoread")).output == "[]"


async def test_agents_that_are_denied_it(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({}, store=False)
    for name, arguments in (("todowrite", {"todos": LIST}), ("todoread", {})):
        with pytest.raises(PermissionDeniedError):
            await ws.call(name, arguments, agent="general")


async def test_ten_thousand_items_are_cut_for_the_model_only(workspace: Workspace) -> None:
    many = [{"content": f"item {i}", "status": "pending", "priority": "low"} for i in range(10_000)]
    result = await workspace.call("todowrite", {"todos": many})
    assert result.title == "10000 todos"
    assert result.truncated
    assert len((await workspace.call("todoread")).metadata["todos"]) == 10_000
