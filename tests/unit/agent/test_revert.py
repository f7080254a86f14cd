"""Messages are taken back with their changes of files, and both come back as long as no prompt came after."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.agent.answer import Answer
from opencode_jupyter.agent.revert import cleanup, last_change, revert, unrevert, visible
from opencode_jupyter.core.errors import InvalidArgumentsError, ToolError
from opencode_jupyter.core.messages import part_id
from opencode_jupyter.core.sessions import Session
from tests.support.fake_model import FakeModel
from tests.support.repository import git, repository
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
ALLOW = {"permission": {"*": "allow"}, "formatter": False}


@pytest.fixture(autouse=True)
def _unread_files_may_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_DISABLE_FILETIME_CHECK", "1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "project")
    (folder / "a.txt").write_text("one\n")
    (folder / "mine.txt").write_text("mine\n")
    return folder


@pytest.fixture
async def ws(open_workspace: OpenWorkspace) -> Workspace:
    return await open_workspace(ALLOW)


def write(name: str, content: str) -> list[Any]:
    return ["write", {"filePath": name, "content": content}]


def bash(command: str) -> list[Any]:
    return ["bash", {"command": command, "description": "Change files"}]


async def ask(ws: Workspace, session: Session | None, *turns: list[list[Any]]) -> Answer:
    """One prompt; each turn of the model is its calls, and at the end it says that it is done."""
    answers: list[dict[str, Any]] = [{"text": "I go on.", "calls": calls} for calls in turns]
    return await ws.sessions.prompt("do it", model=FakeModel([*answers, {"text": "done"}]), session=session)


def files(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


async def test_the_last_prompt_with_changes_and_back(ws: Workspace, project: Path) -> None:
    before = files(project)
    first = await ask(
        ws, None, [["read", {"filePath": "a.txt"}]], [bash("echo two > a.txt; mkdir d; echo n > d/new; rm mine.txt")]
    )
    session, after = first.session, files(project)
    await ask(ws, session)  # changes nothing
    assert last_change(ws, session) is first.messages[0]

    done = await revert(ws, session)
    assert files(project) == before
    assert not (project / "d").exists()
    assert done.messages == len(session.messages)
    assert sorted(Path(name).name for name in done.files) == ["a.txt", "mine.txt", "new"]
    assert done.kept == {} and "-two" in done.diff and str(done).startswith("6 messages, 3 files")
    assert visible(session) == [] and len(session.messages) == 6
    mark = session.to_wire()["revert"]
    assert set(mark) == {"messageID", "snapshot", "diff"} and mark["messageID"] == first.messages[0].id

    shown = await session.unrevert()
    assert files(project) == after
    assert shown.messages == 6 and len(shown.files) == 3
    assert "revert" not in session.to_wire() and len(visible(session)) == 6
    with pytest.raises(ToolError, match="Nothing was reverted"):
        await session.unrevert()


@pytest.mark.parametrize("to", [None, True, 1.5, {}])
async def test_what_is_taken_back_has_to_be_named(ws: Workspace, to: Any) -> None:
    session = (await ask(ws, None, [write("a.txt", "x\n")])).session
    with pytest.raises(InvalidArgumentsError, match="itself, its id or its index"):
        await session.revert(to)
    assert visible(session) == session.messages


async def test_undo_again_and_again_goes_further_back(ws: Workspace, project: Path) -> None:
    states = [files(project)]
    session: Session | None = None
    for n in range(3):
        session = (await ask(ws, session, [write("a.txt", f"{n}\n")])).session
        states.append(files(project))
        await ask(ws, session)
    assert session is not None
    for n in (2, 1, 0):
        await revert(ws, session)
        assert files(project) == states[n]
    with pytest.raises(ToolError, match="No message"):
        await revert(ws, session)
    await unrevert(ws, session)
    assert files(project) == states[3]


async def test_going_forward_again(ws: Workspace, project: Path) -> None:
    session = (await ask(ws, None, [write("a.txt", "1")])).session
    await ask(ws, session, [write("a.txt", "2"), write("b.txt", "2")])
    await ask(ws, session, [write("c.txt", "3")])
    prompts = [message for message in session.messages if message.role == "user"]
    await session.revert(prompts[0])
    assert files(project) == {"a.txt": "one\n", "mine.txt": "mine\n"}
    await session.revert(prompts[2])  # the first two hold again
    assert files(project) == {"a.txt": "2", "b.txt": "2", "mine.txt": "mine\n"}
    assert visible(session)[-1] is session.messages[session.messages.index(prompts[2]) - 1]
    await session.unrevert()
    assert files(project) == {"a.txt": "2", "b.txt": "2", "c.txt": "3", "mine.txt": "mine\n"}


async def test_what_somebody_else_changed_is_kept_and_told(ws: Workspace, project: Path) -> None:
    session = (
        await ask(ws, None, [write("a.txt", "agent"), write("new.txt", "agent"), write("b.txt", "agent")])
    ).session
    (project / "a.txt").write_text("agent, and I")
    (project / "mine.txt").write_text("only mine")
    (project / "b.txt").unlink()
    done = await session.revert(0)
    assert done.kept == {str(project / "a.txt"): "somebody else changed it since"}
    assert files(project) == {"a.txt": "agent, and I", "mine.txt": "only mine"}
    assert [Path(name).name for name in done.files] == ["new.txt"]
    await session.unrevert()
    assert files(project) == {"a.txt": "agent, and I", "mine.txt": "only mine", "new.txt": "agent"}
    done = await session.revert(0, force=True)
    assert files(project) == {"a.txt": "one\n", "mine.txt": "only mine"}
    await session.unrevert()
    assert files(project)["a.txt"] == "agent, and I"  # what force replaced is not lost


async def test_what_somebody_else_changed_between_two_steps(ws: Workspace, project: Path) -> None:
    session = (await ask(ws, None, [write("a.txt", "1")])).session
    (project / "a.txt").write_text("my words")
    await ask(
        ws,
        session,
        [["read", {"filePath": "a.txt"}]],
        [["edit", {"filePath": "a.txt", "oldString": "my", "newString": "our"}]],
    )
    assert (project / "a.txt").read_text() == "our words"
    done = await session.revert(0)
    assert done.kept == {str(project / "a.txt"): "somebody else changed it between two steps"}
    assert (project / "a.txt").read_text() == "our words"
    await session.unrevert()
    prompts = [message for message in session.messages if message.role == "user"]
    assert not (await session.revert(prompts[1])).kept  # the second alone had one author
    assert (project / "a.txt").read_text() == "my words"


async def test_bringing_back_keeps_what_was_changed_meanwhile(ws: Workspace, project: Path) -> None:
    session = (await ask(ws, None, [write("a.txt", "agent")])).session
    await session.revert(0)
    (project / "a.txt").write_text("I went another way")
    done = await session.unrevert()
    assert list(done.kept) == [str(project / "a.txt")]
    assert (project / "a.txt").read_text() == "I went another way"


async def test_to_a_message_in_the_middle_and_to_a_part(ws: Workspace, project: Path) -> None:
    answer = await ask(ws, None, [write("a.txt", "1")], [write("a.txt", "2")], [write("a.txt", "3")])
    session, messages = answer.session, answer.messages
    await session.revert(messages[2].id)
    assert (project / "a.txt").read_text() == "1" and visible(session) == messages[:2]
    await session.revert(messages[1])  # the first answer goes with its question
    assert (project / "a.txt").read_text() == "one\n" and visible(session) == []
    call = next(part for part in messages[3].calls)
    await session.revert(call.id)
    assert (project / "a.txt").read_text() == "2"
    assert [part_id(part) for part in visible(session)[-1].parts] == [part_id(part) for part in messages[3].parts[:2]]
    assert session.to_wire()["revert"]["partID"] == call.id
    removed = await cleanup(ws, session)
    assert call.id in removed and messages[4].id in removed
    assert session.messages == messages[:4]
    assert [part for part in messages[3].parts if part_id(part) in removed] == []
    step_start = messages[2].parts[0]
    await session.revert(part_id(step_start))  # nothing of its message stays: the whole goes
    assert "partID" not in session.to_wire()["revert"]
    assert (project / "a.txt").read_text() == "1"


@pytest.mark.parametrize("to", [7, -8, "msg_nothing", "prt_nothing"])
async def test_a_point_that_is_not_there(ws: Workspace, to: Any) -> None:
    session = (await ask(ws, None, [write("a.txt", "1")])).session
    with pytest.raises(ToolError, match="there is no message"):
        await session.revert(to)
    assert "revert" not in session.to_wire()


async def test_not_while_it_is_at_work(ws: Workspace) -> None:
    session = (await ask(ws, None, [write("a.txt", "1")])).session
    model = FakeModel([{"hang": "request"}])
    run = session.prompt("more", model=model)
    task = asyncio.create_task(run.run())
    await model.hanging.wait()
    for change in (session.revert(0), session.unrevert()):
        with pytest.raises(ToolError, match="is running"):
            await change
    run.abort()
    with pytest.raises(ToolError):
        await task


async def test_the_next_prompt_removes_what_was_taken_back(ws: Workspace, project: Path) -> None:
    first = await ask(ws, None, [write("a.txt", "1")])
    session = first.session
    second = await ask(ws, session, [write("b.txt", "2")])
    removed: list[str] = []
    ws.bus.subscribe("message.removed", lambda event: removed.append(event["properties"]["messageID"]))
    await session.revert(second.messages[0])
    third = await ask(ws, session, [write("c.txt", "3")])
    assert session.messages == [*first.messages, *third.messages]
    assert removed == [message.id for message in second.messages]
    assert "revert" not in session.to_wire()
    assert ws.store is not None
    assert [m["id"] for m in await ws.store.messages(session.id)] == [m.id for m in session.messages]
    parts = {part["messageID"] for part in await ws.store.parts(session.id)}
    assert parts == {message.id for message in session.messages}
    assert sorted(files(project)) == ["a.txt", "c.txt", "mine.txt"]
    await session.revert(0)
    assert sorted(files(project)) == ["a.txt", "mine.txt"]


async def test_after_the_session_was_opened_again(project: Path, tmp_path: Path) -> None:
    before = files(project)
    async with Workspace(project, ALLOW, data_dir=tmp_path / "data") as ws:
        id = (await ask(ws, None, [write("a.txt", "1")], [bash("rm mine.txt; echo x > x")])).session.id
    after = files(project)
    async with Workspace(project, ALLOW, data_dir=tmp_path / "data") as ws:
        session = await ws.sessions.open(id)
        done = await session.revert(0)
        assert done.kept == {} and files(project) == before
    async with Workspace(project, ALLOW, data_dir=tmp_path / "data") as ws:
        session = await ws.sessions.open(id)
        assert visible(session) == []
        await session.unrevert()
        assert files(project) == after


async def test_a_child_sessions_changes_belong_to_the_task(ws: Workspace, project: Path) -> None:
    def say(request: Any) -> dict[str, Any]:
        results = sum(turn.role == "tool" for turn in request.turns)
        if request.agent == "general":
            return {"text": "done"} if results else {"calls": [write("child.txt", "c")]}
        arguments = {"description": "d", "prompt": "p", "subagent_type": "general"}
        return {"text": "done"} if results else {"calls": [["task", arguments]]}

    answer = await ws.sessions.prompt("go", model=FakeModel(say))
    assert (project / "child.txt").exists()
    await answer.session.revert(0)
    assert not (project / "child.txt").exists()


async def test_only_the_messages(ws: Workspace, project: Path) -> None:
    session = (await ask(ws, None, [write("a.txt", "1")])).session
    done = await session.revert(0, files=False)
    assert (project / "a.txt").read_text() == "1" and visible(session) == [] and done.files == []


async def test_a_snapshot_that_is_gone_changes_nothing(ws: Workspace, project: Path) -> None:
    session = (await ask(ws, None, [write("a.txt", "1")])).session
    for message in session.messages:
        for part in message.of_type("patch"):
            part["hash"] = "0" * 40
    with pytest.raises(ToolError, match=r"7 days.*files=False"):
        await session.revert(0)
    assert "revert" not in session.to_wire() and (project / "a.txt").read_text() == "1"


async def test_an_ignored_file_that_stands_there_is_not_overwritten(ws: Workspace, project: Path) -> None:
    session = (await ask(ws, None, [bash("rm mine.txt")])).session
    (project / ".gitignore").write_text("mine.txt\n")
    (project / "mine.txt").write_text("a new one of mine")
    done = await session.revert(0, force=True)
    assert list(done.kept) == [str(project / "mine.txt")]
    assert (project / "mine.txt").read_text() == "a new one of mine"


async def test_without_git_what_tools_wrote_comes_back(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    (folder / "b.txt").write_text("one")
    ws = await open_workspace(ALLOW, directory=folder)
    read = [["read", {"filePath": name}] for name in ("a.txt", "b.txt")]
    session = (await ask(ws, None, read, [write("a.txt", "2"), write("b.txt", "2"), write("new/c.txt", "2")])).session
    await ask(ws, session, [write("a.txt", "3"), bash("echo s > shell.txt")])
    (folder / "b.txt").write_text("I")
    done = await session.revert(0)
    assert files(folder) == {"a.txt": "one", "b.txt": "I", "shell.txt": "s\n"}
    assert list(done.kept) == [str(folder / "b.txt")] and "git init" in done.note
    done = await session.unrevert()
    assert files(folder) == {"a.txt": "3", "b.txt": "I", "new/c.txt": "2", "shell.txt": "s\n"}


async def test_words_alone_need_no_git(open_workspace: OpenWorkspace, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    ws = await open_workspace(ALLOW, directory=tmp_path / "plain")
    session = (await ask(ws, None)).session
    done = await session.revert(0)
    assert (done.messages, done.note) == (2, "")
    await session.unrevert()
    assert len(visible(session)) == 2


NAMES = ["a.txt", "d/x", "d/y", "d", "new\nline", "mine.txt"]


def command(seed: int) -> str:
    """One random change, as a shell command."""
    chance = random.Random(seed)
    name = chance.choice(NAMES)
    quoted = "'" + name + "'"
    return chance.choice(
        [
            f"rm -rf {quoted}",
            f'test -d {quoted} || {{ test -f d && rm d; mkdir -p "$(dirname {quoted})"; echo {seed} > {quoted}; }}',
            f"test -f {quoted} && chmod +x {quoted}; true",
            f'rm -rf {quoted}; test -d d || rm -f d; mkdir -p "$(dirname {quoted})"; ln -s nowhere{seed} {quoted}',
        ]
    )


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prompts=st.lists(st.lists(st.integers(0, 10**6), max_size=4), min_size=1, max_size=4), order=st.randoms())
async def test_any_way_through_the_messages(
    tmp_path_factory: pytest.TempPathFactory, prompts: list[list[int]], order: random.Random
) -> None:
    folder = repository(tmp_path_factory.mktemp("project"))
    (folder / "a.txt").write_text("one")

    def state() -> str:
        return git(folder, "-c", "core.excludesFile=", "ls-files", "-o", "-s") + "".join(
            f"{path.relative_to(folder)} {path.is_symlink() and path.readlink()} "
            f"{not path.is_symlink() and path.is_file() and (path.read_text(), path.stat().st_mode)}\n"
            for path in sorted(folder.rglob("*"))
            if ".git" not in path.parts and (path.is_symlink() or path.is_file())
        )

    async with Workspace(folder, ALLOW, data_dir=tmp_path_factory.mktemp("data"), store=False) as ws:
        states, questions = [state()], []
        session: Session | None = None
        for seeds in prompts:
            answer = await ask(ws, session, *([bash(command(seed))] for seed in seeds))
            session = answer.session
            questions.append(answer.messages[0])
            states.append(state())
        assert session is not None
        ways = [*range(len(questions)), *range(len(questions))]
        order.shuffle(ways)
        for n in ways:
            done = await session.revert(questions[n])
            assert done.kept == {}
            assert state() == states[n]
        await session.unrevert()
        assert state() == states[-1]


@pytest.mark.parametrize("with_git", [True, False])
async def test_a_session_can_edit_after_revert_and_unrevert(
    open_workspace: OpenWorkspace, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_git: bool
) -> None:
    monkeypatch.delenv("OPENCODE_DISABLE_FILETIME_CHECK")
    folder = project if with_git else tmp_path / "plain"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("one\n")
    edit = ["edit", {"filePath": "a.txt", "oldString": "one", "newString": "two"}]
    back = ["edit", {"filePath": "a.txt", "oldString": "two", "newString": "three"}]
    workspace = await open_workspace(ALLOW, directory=folder)
    first = await ask(workspace, None, [["read", {"filePath": "a.txt"}]], [edit])
    await revert(workspace, first.session)
    assert (folder / "a.txt").read_text() == "one\n"
    await workspace.call("edit", edit[1], session=first.session)
    workspace.changes.undo()
    await unrevert(workspace, first.session)
    assert (folder / "a.txt").read_text() == "two\n"
    await workspace.call("edit", back[1], session=first.session)
    assert (folder / "a.txt").read_text() == "three\n"
