"""bash: output, limits, notes, ends."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from opencode_jupyter import PermissionRequest, Rule
from opencode_jupyter.core.call_state import ToolPart, failure_of
from opencode_jupyter.core.errors import (
    InvalidArgumentsError,
    PermissionRejectedError,
    ToolAbortedError,
    ToolError,
    ToolTimeoutError,
)
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.tools import _bash_approval
from opencode_jupyter.workspace import Workspace

pytestmark = pytest.mark.anyio


async def bash(workspace: Workspace, command: str, **options: Any) -> ToolResult:
    return await workspace.call("bash", {"command": command, "description": "does it", **options})


async def has_ended(marker: str, seconds: float = 1.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        process = await asyncio.create_subprocess_exec("pgrep", "-f", marker, stdout=asyncio.subprocess.DEVNULL)
        if await process.wait():
            return True
        await anyio.sleep(0.02)
    return False


async def test_a_result(workspace: Workspace) -> None:
    result = await bash(workspace, "echo hi; echo there >&2; exit 3")
    assert (result.title, result.output) == ("does it", "hi\nthere\n")
    assert result.metadata == {"output": "hi\nthere\n", "exit": 3, "description": "does it", "truncated": False}


async def test_no_output_says_so(workspace: Workspace) -> None:
    assert (await bash(workspace, "true")).output == "(no output)"
    assert (await bash(workspace, "cat")).output == "(no output)"


async def test_bytes_that_are_no_text(workspace: Workspace) -> None:
    assert (await bash(workspace, r"printf '\377\376a\0b'")).output == "\ufffd\ufffda\0b"


async def test_a_signal_is_named(workspace: Workspace) -> None:
    result = await bash(workspace, "echo a; kill -SEGV $$")
    assert result.output == ("a\n\n\n<bash_metadata>\nbash tool command was ended by signal SIGSEGV\n</bash_metadata>")
    assert (result.metadata["exit"], result.metadata["signal"]) == (None, "SIGSEGV")


async def test_the_time_limit(workspace: Workspace) -> None:
    result = await bash(workspace, "echo start; sleep 41.5; echo end", timeout=300)
    assert result.output == (
        "start\n\n\n<bash_metadata>\nbash tool terminated command after exceeding timeout 300 ms\n</bash_metadata>"
    )
    assert result.metadata["exit"] is None
    assert failure_of("bash", result.metadata) == "ended early"
    assert await has_ended("sleep 41.5")


async def test_bad_arguments(workspace: Workspace, project: Path) -> None:
    with pytest.raises(ToolError, match=r"Invalid timeout value: -1\. Timeout must be a positive number\."):
        await bash(workspace, "true", timeout=-1)
    with pytest.raises(ToolError, match=r"^NotFound: FileSystem.access \(.*/none\)\nThis folder does not exist\."):
        await bash(workspace, "true", workdir="none")
    (project / "f").touch()
    with pytest.raises(ToolError, match="workdir is not a folder"):
        await bash(workspace, "true", workdir="f")
    with pytest.raises(ToolError, match="NUL"):
        await bash(workspace, "echo a\0b")
    with pytest.raises(ToolError, match="too long for the system"):
        await bash(workspace, "true " + "x" * 200_000)
    with pytest.raises(InvalidArgumentsError, match="description"):
        await workspace.call("bash", {"command": "ls"})


async def test_a_workdir_without_permission_is_named(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = workspace.directory / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0)
    if os.geteuid() == 0:  # root may enter any folder: let the system say what it says to everyone else
        real_stat, real_access = os.stat, os.access

        def refuse(path: Any, *rest: Any, **keywords: Any) -> os.stat_result:
            if str(path).startswith(f"{closed}/"):
                raise PermissionError(13, "Permission denied")
            return real_stat(path, *rest, **keywords)

        monkeypatch.setattr(os, "stat", refuse)
        monkeypatch.setattr(os, "access", lambda path, *rest: path != closed and real_access(path, *rest))
    try:
        with pytest.raises(ToolError, match=f"^No permission to read {closed}/inner"):
            await bash(workspace, "true", workdir="closed/inner")
        with pytest.raises(ToolError, match=f"^No permission to run anything in {closed}"):
            await bash(workspace, "true", workdir="closed")
    finally:
        closed.chmod(0o700)


async def test_workdir(workspace: Workspace, project: Path) -> None:
    (project / "a b").mkdir()
    assert (await bash(workspace, "pwd", workdir="a b")).output == f"{project}/a b\n"
    assert (await bash(workspace, "pwd", workdir=str(project / "a b"))).output == f"{project}/a b\n"
    assert (await bash(workspace, "pwd", workdir="")).output == f"{project}\n"


async def test_a_long_output_is_cut_and_kept_whole(workspace: Workspace) -> None:
    result = await bash(workspace, "seq 1 30000; exit 2")
    whole = "".join(f"{i}\n" for i in range(1, 30001))
    assert result.output.startswith("1\n2\n3\n")
    assert result.output.endswith("\n29999\n30000\n")
    assert "...28001 lines truncated..." in result.output
    assert result.truncated
    assert result.output_path is not None
    assert Path(result.output_path).read_text() == whole
    assert result.output_path in result.output
    assert result.metadata["exit"] == 2
    assert result.metadata["lines"] == 30_000
    assert result.metadata["bytes"] == len(whole)
    assert result.metadata["cutLine"] == 1001
    assert len(result.metadata["output"]) <= 30_010


async def test_a_note_comes_after_a_cut_output(workspace: Workspace) -> None:
    result = await bash(workspace, "seq 1 5000; sleep 42.5", timeout=400)
    assert result.truncated
    assert result.output.endswith("exceeding timeout 400 ms\n</bash_metadata>")


async def test_the_environment(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv("DATABASE_URL", "postgres://me:secret@db")
    monkeypatch.setenv("LC_TIME", "C")
    workspace.rules.append(Rule("bash", "*", "allow"))

    async def variables(by: Any) -> str:
        arguments = {"command": "env", "description": "Lists the environment"}
        return (await workspace.call("bash", arguments, by=by)).output

    assert "SOME_TOKEN=secret" in await variables("user") and "SOME_TOKEN=secret" in await variables("python")
    of_model = await variables("model")
    assert "secret" not in of_model
    assert "LC_TIME=C" in of_model and "GIT_TERMINAL_PROMPT=0" in of_model
    workspace.config.data["experimental"] = {"shell_env_keep": ["SOME_*"]}
    assert "SOME_TOKEN=secret" in await variables("model")


async def test_the_environment_hook(workspace: Workspace, project: Path) -> None:
    def add(arguments: dict[str, Any], output: dict[str, Any]) -> None:
        output["env"]["SEEN"] = arguments["cwd"]

    workspace.hooks.add("shell.env", add)
    assert (await bash(workspace, "echo $SEEN")).output == f"{project}\n"


async def test_what_is_shown_while_it_runs(workspace: Workspace) -> None:
    outputs: list[tuple[float, str]] = []

    def note(part: ToolPart) -> None:
        metadata = getattr(part.state, "metadata", None)
        if part.state.status == "running" and metadata:
            outputs.append((time.monotonic(), metadata["output"]))

    arguments = {"command": "for i in $(seq 100); do echo $i; sleep 0.01; done", "description": "counts"}
    await workspace.start("bash", arguments, on_update=note).run()
    texts = [text for _, text in outputs]
    assert texts[0] == ""
    assert len(texts) > 3
    for earlier, later in pairwise(texts):
        assert later.startswith(earlier)
    assert len(outputs) <= 20 * (outputs[-1][0] - outputs[0][0]) + 2


async def test_stopping_ends_everything_and_keeps_what_came(workspace: Workspace) -> None:
    arguments = {
        "command": "echo so far; (setsid sleep 43.5 &); trap '' TERM; sleep 43.5; sleep 43.5",
        "description": "d",
    }
    call = workspace.start("bash", arguments)
    task = asyncio.ensure_future(call.run())
    while "so far" not in str((getattr(call.part.state, "metadata", None) or {}).get("output")):
        await anyio.sleep(0.01)
    call.abort("stopped")
    with pytest.raises(ToolAbortedError):
        await task
    assert await has_ended("sleep 43.5", 0.3)
    assert call.part.state.metadata is not None  # type: ignore[union-attr]
    kept = call.part.state.metadata["output"]  # type: ignore[union-attr]
    assert kept == "so far\n\n\n<bash_metadata>\nUser aborted the command\n</bash_metadata>"


async def test_the_calls_own_limit_and_a_cancelled_caller(workspace: Workspace) -> None:
    with pytest.raises(ToolTimeoutError):
        await workspace.call("bash", {"command": "sleep 44.5", "description": "d"}, timeout=0.3)
    assert await has_ended("sleep 44.5", 0.3)
    task = asyncio.ensure_future(bash(workspace, "sleep 44.6"))
    await anyio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await has_ended("sleep 44.6", 0.3)


async def test_the_background_ends_with_the_workspace(workspace: Workspace) -> None:
    result = await bash(workspace, "sleep 45.5 & echo started")
    assert result.output == "started\n"
    (left,) = result.metadata["background"]
    assert left["command"] == "sleep 45.5"
    await bash(workspace, "sleep 0.3")
    os.kill(left["pid"], 0)
    await workspace.aclose()
    assert await has_ended("sleep 45.5")


async def test_the_background_ends_if_the_workspace_is_closed_on_another_loop(project: Path, tmp_path: Path) -> None:
    opened = threading.Event()
    done = threading.Event()
    workspaces: list[Workspace] = []

    async def work() -> None:
        workspaces.append(await Workspace(project, data_dir=tmp_path / "other", store=False).__aenter__())
        await bash(workspaces[0], "sleep 45.7 & echo started")
        opened.set()
        await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(work(),))
    thread.start()
    await asyncio.to_thread(opened.wait)
    assert not await has_ended("sleep 45.7", 0.1)
    await workspaces[0].aclose()
    assert await has_ended("sleep 45.7")
    done.set()
    await asyncio.to_thread(thread.join)


async def test_a_dry_run_runs_nothing(workspace: Workspace, project: Path) -> None:
    decisions = await workspace.dry_run("bash", {"command": "touch made", "description": "d"})
    assert [(d.permission, d.patterns) for d in decisions] == [("bash", ["touch made"])]
    assert not (project / "made").exists()


async def test_a_program_that_needs_a_terminal_ends_at_once(workspace: Workspace, project: Path) -> None:
    (project / "a.txt").write_text("x\n")
    for command in ("vi a.txt", "cd . && /usr/bin/vim -R a.txt", "watch ls", "env A=1 vi a.txt", "sh -c 'vi a.txt'"):
        with pytest.raises(ToolError, match="needs a terminal"):
            await workspace.call("bash", {"command": command, "description": "x", "timeout": 5000})
    for command in ("vi --version | head -1", "echo vi a.txt", "cat view.txt", "vim -es -c ':q' a.txt"):
        await workspace.call("bash", {"command": command, "description": "x", "timeout": 5000})


async def test_a_fault_of_the_analysis_requests_approval(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **options: Any) -> None:
        raise ValueError("a fault")

    requests: list[PermissionRequest] = []
    replies = iter(["once", "once", "once", "reject"])

    def approve(request: PermissionRequest) -> Any:
        requests.append(request)
        return next(replies)

    config = {"permission": {"bash": {"*": "allow", "rm *": "deny"}}}
    async with Workspace(project, config, tmp_path / "data", approve=approve) as ws:
        monkeypatch.setattr(_bash_approval, "analyse", fails)
        assert (await bash(ws, "echo hi")).output == "hi\n"
        assert {reason for request in requests for reason in request.metadata["reasons"]} == {"its analysis failed"}
        with pytest.raises(PermissionRejectedError):
            await bash(ws, "echo hi")
