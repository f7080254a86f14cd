"""Sessions that were made here, in the form that a real release takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Attachment, ToolError, ToolResult, Workspace
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.exchange import export, export_file, import_
from opencode_jupyter.agent.model import Cost
from opencode_jupyter.core.sessions import Session
from tests.support.agents import project
from tests.support.fake_model import FakeModel, Turn
from tests.support.opencode_release import BINARY, Release
from tests.support.release_form import assert_importable
from tests.support.session_files import RECORDED, recorded
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

TURNS: list[Turn] = [
    {"reasoning": "Hm.", "signature": {"fake": {"signature": "x"}}, "text": "Look.", "calls": [["picture", {}]]},
    {"calls": [["read", {"filePath": "a.txt"}], ["read", {"filePath": "none.txt"}], ["nosuch", {}], ["glob", "{cut"]]},
    {"calls": [["odd", {}], ["write", {"filePath": "b.txt", "content": "é漢😀"}]]},
    {"text": "Done."},
    {"error": ModelError("no such model", "not_found")},
]


async def conversation(workspace: Workspace) -> Session:
    """A session with calls of every kind, an error of the model's, and a picture."""
    from opencode_jupyter import tool

    @tool
    async def picture() -> ToolResult:
        """A picture."""
        return ToolResult("a dot", "here", {}, [Attachment.from_bytes(b"x", "image/png", "dot.png")])

    @tool
    async def odd() -> ToolResult:
        """Metadata that JSON does not know."""
        return ToolResult("odd", "half of a pair: \ud800", {"nan": float("nan"), "path": Path("x"), "set": {1}})

    workspace.registry.register(picture)
    workspace.registry.register(odd)
    model = FakeModel(TURNS, cost=Cost(input=10, output=100))
    answer = await workspace.sessions.prompt("tidy up", model=model, title="Tidying")
    with pytest.raises(ModelError):
        await workspace.sessions.prompt("once more", model=model, session=answer.session)
    return answer.session


async def by_hand(workspace: Workspace) -> Session:
    """The session of calls that no model made."""
    await workspace.call("read", {"filePath": "a.txt"}, by="user")
    with pytest.raises(ToolError):
        await workspace.call("read", {"filePath": "none.txt"}, by="user")
    return workspace.sessions.default


MAKERS = {"conversation": conversation, "by hand": by_hand}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
async def test_a_release_would_take_what_is_exported(open_workspace: OpenWorkspace, maker: Any) -> None:
    workspace = await open_workspace(files={"a.txt": "hello\n"})
    session = await maker(workspace)
    data = await export(workspace, session)
    assert_importable(data)
    text = json.dumps(data, allow_nan=False)
    assert "opencode_jupyter_mode" not in text
    assert data == await export(workspace, session.id), "the same at each time"


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
async def test_what_was_exported_comes_in_again_unchanged(tmp_path: Path, maker: Any) -> None:
    file = tmp_path / "out.json"
    async with project(tmp_path, a_txt="hello\n") as workspace:
        session = await maker(workspace)
        data = await export(workspace, session)
        await export_file(workspace, session, file)
        (tmp_path / "other").mkdir()
        async with project(tmp_path / "other") as other:
            other.data_dir.mkdir(exist_ok=True)
            again = await export(other, await import_(other, file))
    again["info"]["directory"] = data["info"]["directory"]
    assert again == data


async def test_without_a_store_the_same_comes_out(tmp_path: Path) -> None:
    for kept in (True, False):
        folder = tmp_path / str(kept)
        folder.mkdir()
        async with project(folder, a_txt="hello\n", store=kept) as workspace:
            data = await export(workspace, await conversation(workspace))
            assert_importable(data)
            kinds = [[part["type"] for part in message["parts"]] for message in data["messages"]]
            if kept:
                first = kinds
    assert kinds == first


async def test_costs_and_tokens_are_summed(open_workspace: OpenWorkspace) -> None:
    workspace = await open_workspace(files={"a.txt": "hello\n"})
    session = await conversation(workspace)
    info = (await export(workspace, session))["info"]
    answers = [message.info for message in session.messages if message.role == "assistant"]
    assert info["cost"] == pytest.approx(sum(answer["cost"] for answer in answers)) and info["cost"] > 0
    assert info["tokens"]["input"] == 100 + 200 + 300 + 400


async def test_keys_that_an_older_release_left_out_are_filled_in(workspace: Workspace) -> None:
    data = recorded("fork")
    del data["info"]["slug"], data["info"]["version"], data["info"]["tokens"], data["info"]["cost"]
    answer = data["messages"][1]["info"]
    for key in ("parentID", "agent", "path", "cost", "tokens"):
        del answer[key]
    del data["messages"][0]["info"]["model"]
    for part in data["messages"][1]["parts"]:
        if part["type"] == "step-finish":
            del part["tokens"], part["cost"], part["reason"]
        if part["type"] == "tool":
            del part["state"]["title"], part["state"]["metadata"]
            part["state"]["attachments"] = [{"mime": "image/png", "url": "data:image/png;base64,eA=="}]
    assert_importable(await export(workspace, await import_(workspace, data)))


async def test_half_a_surrogate_pair_does_not_spoil_the_file(workspace: Workspace, tmp_path: Path) -> None:
    data = recorded("fork")
    data["messages"][0]["parts"][0]["text"] = "half: \ud83d, whole: 😀"
    session = await import_(workspace, data)
    path = await export_file(workspace, session, tmp_path / "out.json")
    assert "😀" in path.read_text()
    assert json.loads(path.read_bytes())["messages"][0]["parts"] == data["messages"][0]["parts"]
    with pytest.raises(ToolError):
        await export_file(workspace, session, tmp_path)


@pytest.mark.skipif(not BINARY, reason="OPENCODE_BIN names no OpenCode release (tests/support/opencode_release.py)")
async def test_a_real_release_takes_them_all_and_gives_them_back(tmp_path: Path) -> None:
    release = Release(tmp_path / "release")
    async with project(tmp_path, a_txt="hello\n") as workspace:
        sessions = [await import_(workspace, file) for file in RECORDED]
        sessions += [await maker(workspace) for maker in MAKERS.values()]
        for session in sessions:
            data = await export(workspace, session)
            file = await export_file(workspace, session, tmp_path / "out.json")
            assert release.import_(file) == session.id
            back = release.export(session.id)
            for key in ("directory", "path", "projectID"):
                data["info"].pop(key, None)
                back["info"].pop(key, None)
            for message in data["messages"]:
                for part in message["parts"]:
                    if part["type"] == "file":  # the one key that its own import leaves out
                        part.pop("synthetic", None)
            assert back == data
            # And what it made of it opens here.
            (tmp_path / "back").mkdir(exist_ok=True)
            file.write_text(json.dumps({**back, "info": {**back["info"], "projectID": "x", "directory": "/x"}}))
            async with project(tmp_path / "back") as other:
                opened = await import_(other, file)
                assert [message.to_wire() for message in opened.messages] == data["messages"]
    listed = release.run("session", "list").stdout
    assert all(session.id in listed for session in sessions if session.parent_id is None)
