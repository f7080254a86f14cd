"""Runs in copies of the project, in git worktrees, and whose asks are put to a person in a notebook."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.model import Request
from opencode_jupyter.core.call import Call
from opencode_jupyter.core.errors import PermissionRejectedError, ToolError
from opencode_jupyter.core.result import ToolResult
from tests.support.saying import Saying, prompt_of, results_of
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path) -> Workspace:
    (project / "src").mkdir()
    (project / "src" / "a.txt").write_text("as it was\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    (project / "later.txt").write_text("not committed\n")
    (project / "link").symlink_to("src")
    return await open_workspace({"permission": "allow", "snapshot": False}, directory=project / "src")


def edits(request: Request) -> Any:
    done = len(results_of(request))
    if done == 0:
        return [("read", {"filePath": "a.txt"})]  # a file that is there is not written unread
    if done == 1:
        return [("write", {"filePath": "a.txt", "content": prompt_of(request)})]
    return "done"


async def test_each_in_a_copy(ws: Workspace) -> None:
    events: list[str] = []
    ws.bus.subscribe("message.updated", lambda event: events.append(event["properties"]["info"]["sessionID"]))
    results = await ws.map(["one", "two"], model=Saying(edits), isolate="copy")
    assert not results.errors
    assert (ws.directory / "a.txt").read_text() == "as it was\n"
    for outcome, text in zip(results, ("one", "two"), strict=True):
        folder = Path(outcome.directory)
        assert folder.name == "src"
        assert (folder / "a.txt").read_text() == text
        assert (folder.parent / "later.txt").exists(), "as the folder is, not as it was committed"
        assert (folder.parent / "link").is_symlink()
        session = ws.sessions.get(outcome.session)
        assert session.directory == outcome.directory
        assert len(session.messages) == 4
        assert outcome.session in events
    assert ws.store is not None
    assert len(await ws.store.parts(results[0].session)) > 3
    assert await ws.store.session(results[1].session) is not None
    copies = {Path(outcome.extra["copied"]) for outcome in results}
    await asyncio.to_thread(results.discard)
    assert not any(copy.exists() for copy in copies)


async def test_each_in_a_worktree(ws: Workspace) -> None:
    results = await ws.map(["one", "two", "three"], model=Saying(edits), isolate="worktree")
    assert not results.errors
    folder = Path(results[0].directory)
    assert (folder / "a.txt").read_text() == "one"
    assert not (folder.parent / "later.txt").exists(), "as it was committed"
    assert len(git(ws.worktree, "worktree", "list").splitlines()) == 4
    await asyncio.to_thread(results.discard)
    assert len(git(ws.worktree, "worktree", "list").splitlines()) == 1
    assert not folder.exists()


async def test_no_worktree_without_a_commit(open_workspace: OpenWorkspace) -> None:
    ws = await open_workspace({})
    with pytest.raises(ToolError, match="needs a git repository with a commit"):
        await ws.map(["a"], model=Saying(edits), isolate="worktree")


async def test_registered_tools_and_rules_are_there_in_a_copy(ws: Workspace) -> None:
    def twice(n: int) -> str:
        return str(2 * n)

    ws.registry.register(twice)
    results = await ws.map([("twice", {"n": 4})], isolate="copy")
    assert results.texts == ["8"]


async def test_a_run_in_a_copy_asks_through_the_workspace(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    requests: list[Any] = []

    def approve(request: Any) -> str:
        requests.append(request)
        return "always"

    config = {"permission": {"edit": "ask"}, "snapshot": False}
    folder = tmp_path / "p"
    folder.mkdir()
    ws = await open_workspace(config, directory=folder, approve=approve)
    results = await ws.map(["one", "two"], model=Saying(edits), isolate="copy", concurrency=1)
    assert not results.errors
    assert [request.session_id for request in requests] == [results[0].session], "allowed for the session: of all"
    await ws.call("write", {"filePath": "x.txt", "content": "x"})
    assert not ws.permissions.pending()


class Shown:
    """Stands in for the notebook that shows calls in cards: runs them, and keeps what it showed."""

    def __init__(self, workspace: Workspace, reply: Any) -> None:
        self.calls: list[Call] = []
        self._workspace = workspace
        self._reply = reply

    async def run(self, id: str, make: Callable[[], Call]) -> ToolResult:
        call = make()
        self.calls.append(call)
        task = asyncio.ensure_future(call.run())
        while not task.done():
            for request in self._workspace.permissions.pending():
                if request.tool is not None and request.tool["callID"] == call.part.call_id:
                    self._workspace.permissions.reply(request.id, self._reply)
            await asyncio.sleep(0.01)
        return task.result()

    def run_sync(self, id: str, make: Callable[[], Call]) -> ToolResult:
        raise NotImplementedError


@pytest.mark.parametrize(("reply", "status"), [("once", "completed"), (("reject", "not so"), "error")])
async def test_in_a_notebook_an_ask_is_a_card_of_the_cell_that_waits(
    open_workspace: OpenWorkspace, reply: Any, status: str
) -> None:
    config = {"permission": {"edit": "ask"}, "snapshot": False}
    ws = await open_workspace(config)
    shown = Shown(ws, reply)
    ws.present = shown
    results = await ws.map(["one"], model=Saying(edits))
    assert [call.part.tool for call in shown.calls] == ["ask"]
    assert shown.calls[0].part.state.input["permission"] == "edit"
    assert shown.calls[0].part.state.input["run"] == "one"
    part = results[0].answer.calls[1]
    assert part.state.status == status
    if status == "error":
        assert "not so" in part.state.error


async def test_why_nobody_could_be_asked_is_said_to_the_run(open_workspace: OpenWorkspace) -> None:
    class Policy(Shown):
        async def run(self, id: str, make: Callable[[], Call]) -> ToolResult:
            call = make()
            task = asyncio.ensure_future(call.run())
            while not self._workspace.permissions.pending():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            for request in self._workspace.permissions.pending():
                if request.tool is not None and request.tool["callID"] == call.part.call_id:
                    error = PermissionRejectedError("nobody is here")
                    self._workspace.permissions.reply(request.id, "reject", by="policy", error=error)
            return await task

    config = {"permission": {"edit": "ask"}, "snapshot": False}
    ws = await open_workspace(config)
    ws.present = Policy(ws, None)
    results = await ws.map(["one"], model=Saying(edits))
    part = results[0].answer.calls[1]
    assert part.outcome == "denied by policy"
    assert "nobody is here" in part.state.error
    assert results[0].ended == "rejected"
