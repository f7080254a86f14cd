"""Taking sessions in: everything is kept, nothing is half taken in, and what is wrong is said."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from opencode_jupyter import Workspace
from opencode_jupyter.agent.exchange import SessionFileError, export, import_, import_session
from opencode_jupyter.core.call_state import Completed, Failed
from tests.support.session_files import RECORDED, recorded, sessions
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
async def workspace(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace({})


def at_home(data: dict[str, Any], workspace: Workspace) -> dict[str, Any]:
    """What becomes of a session's folder when it is taken in."""
    made = copy.deepcopy(data)
    made["info"]["directory"] = str(workspace.directory)
    if "path" in made["info"]:
        made["info"]["path"] = os.path.relpath(workspace.directory, workspace.worktree)
    return made


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
async def test_a_session_of_a_real_release_comes_in_whole_and_goes_out_as_it_came(
    open_workspace: OpenWorkspace, workspace: Workspace, file: Path
) -> None:
    data = json.loads(file.read_text())
    session = await import_(workspace, file)
    assert await export(workspace, session) == at_home(data, workspace)
    assert [message.to_wire() for message in session.messages] == data["messages"]
    # And once more out of the store, by another workspace.
    later = await open_workspace({}, directory=workspace.directory, data_dir=workspace.data_dir)
    opened = await later.sessions.open(session.id)
    assert [message.to_wire() for message in opened.messages] == data["messages"]
    assert await export(later, opened.id) == at_home(data, workspace)


async def test_every_kind_of_part_is_there(workspace: Workspace) -> None:
    kinds: set[str] = set()
    states: set[type] = set()
    for file in RECORDED:
        for message in (await import_(workspace, file)).messages:
            kinds |= {part["type"] for part in message.parts if isinstance(part, dict)}
            states |= {type(call.state) for call in message.calls}
    assert kinds == {"text", "reasoning", "file", "step-start", "step-finish", "patch", "compaction"}
    assert states == {Completed, Failed}


@settings(max_examples=60, suppress_health_check=[*settings().suppress_health_check, HealthCheck.differing_executors])
@given(sessions())
def test_generated_sessions_go_in_and_out_unchanged(data: dict[str, Any]) -> None:
    async def in_and_out(workspace: Workspace) -> None:
        session = await import_(workspace, data, replace=True)
        assert await export(workspace, session.id) == at_home(data, workspace)

    with tempfile.TemporaryDirectory() as folder:
        for store in (True, False):
            with Workspace(folder, data_dir=Path(folder, "data"), store=store) as workspace:
                asyncio.run(in_and_out(workspace))


@pytest.mark.parametrize("store", [True, False])
async def test_an_unknown_key_keeps_its_null_and_a_known_one_goes_out_without_it(
    open_workspace: OpenWorkspace, store: bool
) -> None:
    data = recorded("fork")
    known = copy.deepcopy(data)
    (call,) = [part for part in data["messages"][1]["parts"] if part["type"] == "tool"]
    message = data["messages"][1]["info"]
    for record in (data["info"], data["info"]["time"], message, message["time"], call, call["state"]["time"]):
        record["fromLater"] = None
    call["state"] |= {"fromLater": None, "attachments": []}
    workspace = await open_workspace({}, store=store)
    assert await export(workspace, await import_(workspace, data)) == at_home(data, workspace)
    known["messages"][0]["info"]["system"] = known["info"]["parentID"] = None
    (part,) = [part for part in known["messages"][1]["parts"] if part["type"] == "tool"]
    part["metadata"] = part["state"]["time"]["compacted"] = None
    out = await export(workspace, await import_(workspace, known, replace=True))
    assert "null" not in json.dumps(out)


async def test_what_a_later_release_adds_to_a_rule_of_the_session_is_kept(
    open_workspace: OpenWorkspace, workspace: Workspace
) -> None:
    data = recorded("child_of_task")
    data["info"]["permission"][0] |= {"fromLater": {"a": None}, "alsoLater": None}
    assert await export(workspace, await import_(workspace, data)) == at_home(data, workspace)
    later = await open_workspace({}, directory=workspace.directory, data_dir=workspace.data_dir)
    assert await export(later, data["info"]["id"]) == at_home(data, workspace)


async def test_the_same_session_again_is_left_alone_and_a_changed_one_becomes_a_copy(workspace: Workspace) -> None:
    data = recorded("picture_task_files")
    first = await import_session(workspace, data)
    again = await import_session(workspace, data)
    assert (first.how, again.how) == ("new", "same")
    assert again.session is first.session
    data["info"]["title"] = "changed"
    other = await import_session(workspace, data)
    assert other.how == "copy" and other.session.id != first.session.id
    # New ids throughout, and spoken of alike: nothing of the old ones is left but what names other sessions.
    out = await export(workspace, other.session)
    old = {m["info"]["id"] for m in data["messages"]} | {p["id"] for m in data["messages"] for p in m["parts"]}
    assert not [id for id in (*old, first.session.id) if id in json.dumps(out)]
    (parent_id,) = {m["info"]["parentID"] for m in out["messages"][1:]}
    assert parent_id == out["messages"][0]["info"]["id"]
    assert (await export(workspace, first.session))["info"]["title"] == "A fresh title"


async def test_a_changed_session_replaces_the_old_one_if_told(workspace: Workspace) -> None:
    data = recorded("picture_task_files")
    await import_(workspace, data)
    del data["messages"][2:]
    taken = await import_session(workspace, data, replace=True)
    assert taken.how == "replaced" and taken.session.id == data["info"]["id"]
    assert workspace.store is not None
    assert len(await workspace.store.messages(taken.session.id)) == 2
    assert workspace.sessions.get(taken.session.id) is taken.session


async def test_ids_that_belong_to_another_session_are_not_taken_from_it(workspace: Workspace) -> None:
    data = recorded("fork")
    first = await import_(workspace, data)
    before = await export(workspace, first)
    text = json.dumps(data).replace(first.id, "ses_dfd97c064ffeN60du0t3RBXZZZ")
    taken = await import_session(workspace, json.loads(text))
    assert taken.how == "copy"
    assert await export(workspace, first) == before


async def test_a_session_of_another_folder_stays_there_and_a_copy_comes_here(
    open_workspace: OpenWorkspace, workspace: Workspace, tmp_path: Path
) -> None:
    first = await import_(workspace, recorded("fork"))
    (tmp_path / "other").mkdir()
    other = await open_workspace({}, directory=tmp_path / "other", data_dir=workspace.data_dir)
    taken = await import_session(other, recorded("fork"))
    assert taken.how == "copy" and taken.session.id != first.id
    assert workspace.store is not None
    assert [row["info"]["id"] for row in await workspace.store.list_sessions(str(workspace.directory))] == [first.id]


async def test_calls_that_were_at_work_are_ended(workspace: Workspace) -> None:
    data = recorded("fork")
    (part,) = [p for p in data["messages"][1]["parts"] if p["type"] == "tool"]
    for state in (
        {"status": "pending", "input": {}, "raw": ""},
        {"status": "running", "input": {"a": 1}, "time": {"start": 1795336700000}, "metadata": {"output": "half"}},
    ):
        part["state"] = state
        (call,) = (await import_(workspace, data, replace=True)).messages[1].calls
        assert isinstance(call.state, Failed)
        assert call.state.error == "Tool execution aborted"
        assert call.state.input == state["input"] and call.state.metadata == state.get("metadata")
        assert call.state.end >= call.state.start > 0


async def test_a_file_that_was_cut_anywhere_changes_nothing(workspace: Workspace, tmp_path: Path) -> None:
    data = recorded("fork")
    del data["messages"][1:]
    data["messages"][0]["info"].pop("summary")
    data["info"]["title"] = "é漢😀"
    whole = json.dumps(data, ensure_ascii=False).encode()
    assert len(whole) < 1000
    file = tmp_path / "cut.json"
    for end in range(len(whole)):
        file.write_bytes(whole[:end])
        with pytest.raises(SessionFileError) as caught:
            await import_(workspace, file)
        assert str(file) in str(caught.value), end
        assert "cut" in str(caught.value) or "not text at byte" in str(caught.value) or end == 0, (end, caught.value)
    assert workspace.store is not None
    assert await workspace.store.list_sessions() == []
    assert workspace.sessions.list() == []
    file.write_bytes(whole)
    assert (await import_(workspace, file)).title == "é漢😀"


MISTAKES: list[tuple[str, tuple[Any, ...], Any, str]] = [
    ("no id", ("info", "id"), None, "info: id is missing"),
    ("an id of something else", ("info", "id"), "msg_1", "info.id: expected an id that begins with ses"),
    ("a title that is none", ("info", "title"), 5, "info.title: expected a text, not the number 5"),
    ("messages that are none", ("messages",), {}, "messages: expected a list, not an object"),
    ("a message that is none", ("messages", 1), "x", "messages[1]: expected an object, not the text 'x'"),
    ("no role", ("messages", 0, "info", "role"), None, "messages[0].info: role is missing"),
    ("another role", ("messages", 0, "info", "role"), "tool", "messages[0].info.role: expected user or assistant"),
    ("another session", ("messages", 0, "info", "sessionID"), "ses_x", "info.sessionID: expected the session's id"),
    ("an id twice", ("messages", 1, "info", "id"), "msg_202683f9f001yieOXl014Ayepi", "is there twice"),
    ("a part of another message", ("messages", 1, "parts", 0, "messageID"), "msg_x", "messages[1].parts[0].messageID"),
    ("no type", ("messages", 1, "parts", 0, "type"), None, "messages[1].parts[0]: type is missing"),
    ("no text", ("messages", 0, "parts", 0, "text"), None, "messages[0].parts[0]: text is missing"),
    ("another status", ("messages", 1, "parts", 2, "state", "status"), "done", "state.status: expected pending or"),
    ("no output", ("messages", 1, "parts", 2, "state", "output"), None, "parts[2].state: output is missing"),
    ("a time that is none", ("messages", 1, "parts", 2, "state", "time", "end"), -1, "a time in whole milliseconds"),
    ("a huge time", ("info", "time", "created"), 10**30, "info.time.created: expected a time in whole milliseconds"),
]


@pytest.mark.parametrize(("keys", "value", "words"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
async def test_what_is_wrong_is_named_with_its_place(
    workspace: Workspace, keys: tuple[Any, ...], value: Any, words: str
) -> None:
    data = recorded("fork")
    inside = data
    for key in keys[:-1]:
        inside = inside[key]
    if value is None:
        del inside[keys[-1]]
    else:
        inside[keys[-1]] = value
    with pytest.raises(SessionFileError) as caught:
        await import_(workspace, data)
    assert words in str(caught.value) and "Nothing was imported" in str(caught.value)
    assert workspace.sessions.list() == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\0" * 40, "is empty"),
        (b"Exporting session: ses_1\n{}", "invalid JSON at line 1, column 1"),
        (b"[1, 2]", "This is not an OpenCode session"),
        (b'{"cells": [], "metadata": {}, "nbformat": 4}', "it has keys cells, metadata, nbformat"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not text at byte 0"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"info": ' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
async def test_other_files_are_told_from_sessions(
    workspace: Workspace, tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content)
    with pytest.raises(SessionFileError) as caught:
        await import_(workspace, file)
    assert words in str(caught.value) and str(file) in str(caught.value)


async def test_what_is_no_file_is_said(workspace: Workspace, tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none.json", "There is no file"), (tmp_path, "is a folder")):
        with pytest.raises(SessionFileError) as caught:
            await import_(workspace, path)
        assert words in str(caught.value)


async def test_a_file_of_500_mb_is_refused_before_it_is_read(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(500_000_000)
    with pytest.raises(SessionFileError) as caught:
        await import_(workspace, file)
    assert "500 MB" in str(caught.value)


async def test_a_file_in_the_encoding_of_windows_shells_is_read(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "utf16.json"
    file.write_bytes(json.dumps(recorded("fork"), ensure_ascii=False).encode("utf-16"))
    assert len((await import_(workspace, file)).messages) == 3
