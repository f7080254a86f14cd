"""Snapshots in trouble: several at once, a killed git, no space, no rights, stops. Never an error in the loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.snapshots import Snapshots, service
from opencode_jupyter.agent.snapshots.git import Git, GitError, StoppedError, TooSlowError
from opencode_jupyter.agent.snapshots.shadow import CLEANED, project_id, remove_abandoned
from opencode_jupyter.core.errors import ToolError
from tests.support.repository import repository
from tests.support.snapshots import patch, restore
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "project")
    (folder / "a").write_text("a")
    return folder


@pytest.fixture
async def snapshots(open_workspace: OpenWorkspace) -> Snapshots:
    ws = await open_workspace({}, store=False)
    return ws.service(Snapshots)


def folder_of(snapshots: Snapshots) -> Path:
    (shadow,) = snapshots.shadows.values()
    return shadow.folder


def slow_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str) -> Path:
    """Put a git before the real one that does something first; the file that says it was there."""
    where = tmp_path / "bin"
    where.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, check=True, text=True).stdout.strip()
    begun = tmp_path / "begun"
    script = where / "git"
    script.write_text(f'#!/bin/sh\ncase "$1" in update-index) touch {begun}; {before};; esac\nexec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{where}:{os.environ['PATH']}")
    return begun


async def wait_for_file(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


def processes(word: str) -> list[str]:
    """Command lines of running processes that contain a word."""
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if word in line:
                    lines.append(line)
    return lines


async def wait_ended(word: str) -> None:
    """Wait until no process has this word: a killed one may be seen for a moment."""
    async with asyncio.timeout(2):
        while processes(word):
            await asyncio.sleep(0.01)


async def test_many_at_once(project: Path, snapshots: Snapshots) -> None:
    for i in range(50):
        (project / f"f{i}").write_text(str(i))
    trees = await asyncio.gather(*(snapshots.track() for _ in range(8)))
    assert len(set(trees)) == 1 and None not in trees


OTHER = """
import asyncio, sys
from pathlib import Path
from opencode_jupyter import Workspace
from opencode_jupyter.agent.snapshots import Snapshots
from tests.support.snapshots import patch, revert

async def main(project, data, name):
    async with Workspace(project, data_dir=data, store=False) as ws:
        snapshots = ws.service(Snapshots)
        for i in range(8):
            Path(project, name).write_text(f"{name}{i}")
            tree = await snapshots.track()
            assert tree is not None, snapshots.problem
            Path(project, name).write_text("changed")
            assert str(Path(project, name)) in await patch(snapshots, tree), (i, tree)
            patches = [{"hash": tree, "files": [str(Path(project, name))]}]
            assert patches[0]["files"] == await revert(snapshots, patches)
            assert Path(project, name).read_text() == f"{name}{i}"
        print("all well")

asyncio.run(main(*sys.argv[1:]))
"""


async def test_several_processes_at_once(project: Path, tmp_path: Path) -> None:
    started = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", OTHER, str(project), str(tmp_path / "data"), name),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for name in ("x", "y", "z")
    ]
    for process in started:
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        assert out.decode().strip().endswith("all well"), out.decode()


async def test_a_lock_that_nobody_holds_is_removed(project: Path, snapshots: Snapshots) -> None:
    first = await snapshots.track()
    (folder_of(snapshots) / "index.lock").write_text("left behind")
    (project / "b").write_text("b")
    assert await snapshots.track() not in (None, first)
    assert not (folder_of(snapshots) / "index.lock").exists()


async def test_a_process_killed_while_it_records(
    project: Path, snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await snapshots.track()
    lock = folder_of(snapshots) / "index.lock"
    begun = slow_git(tmp_path, monkeypatch, f"touch {lock}; sleep 1")
    (project / "x").write_text("new")
    other = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OTHER, str(project), str(tmp_path / "data"), "x"),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    await wait_for_file(begun)
    await wait_for_file(lock)
    other.kill()
    await other.wait()
    monkeypatch.undo()
    assert await snapshots.track()  # waits until the dead process's git has ended, and no longer
    assert not lock.exists()


async def test_a_stop_ends_git_at_once(
    project: Path, snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await snapshots.track()
    begun = slow_git(tmp_path, monkeypatch, "sleep 31.5")
    snapshots.shadows.clear()  # the other git is found
    (project / "b").write_text("b")
    task = asyncio.create_task(snapshots.track())
    await wait_for_file(begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_ended("sleep 31.5")
    monkeypatch.undo()
    snapshots.shadows.clear()
    tree = await snapshots.track()
    assert tree is not None
    assert not (folder_of(snapshots) / "index.lock").exists()
    (project / "b").write_text("c")
    assert await patch(snapshots, tree) == [str(project / "b")]


async def test_closing_ends_git(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = slow_git(tmp_path, monkeypatch, "sleep 32.5")
    async with Workspace(project, data_dir=tmp_path / "data", store=False) as ws:
        task = asyncio.create_task(ws.service(Snapshots).track())
        await wait_for_file(begun)
    assert await asyncio.wait_for(task, 2) is None
    await wait_ended("sleep 32.5")


async def test_an_interrupt_of_the_kernel_does_not_reach_git(
    project: Path, snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = slow_git(tmp_path, monkeypatch, "sleep 0.3")
    task = asyncio.create_task(snapshots.track())
    await wait_for_file(begun)
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        os.killpg(os.getpgid(0), signal.SIGINT) if os.getpgid(0) == os.getpid() else os.kill(os.getpid(), signal.SIGINT)
        assert await task is not None
    finally:
        signal.signal(signal.SIGINT, ignored)


async def test_no_room_is_said_once_and_is_no_error(
    project: Path, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first = await snapshots.track()
    assert first is not None
    real = Git.run

    def full(self: Git, *arguments: str, **options: object) -> bytes:
        if arguments[0] in ("update-index", "write-tree"):
            raise GitError("git update-index failed (128): error: unable to write file: No space left on device")
        return real(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "run", full)
    (project / "a").write_text("b")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert await snapshots.track() is None
            assert await patch(snapshots, first) == []
    assert [record.getMessage() for record in caplog.records if "No space" in record.getMessage()] != []
    assert len(caplog.records) == 1
    assert snapshots.problem is not None and "No space" in snapshots.problem
    with pytest.raises(ToolError, match="No space"):
        await restore(snapshots, first)
    monkeypatch.undo()
    assert await patch(snapshots, first) == [str(project / "a")]
    assert snapshots.problem is None


async def test_a_data_folder_that_can_not_be_written(
    open_workspace: OpenWorkspace, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.mkdir

    def refused(self: Path, *arguments: object, **options: object) -> None:
        if "snapshot" in self.parts:
            raise PermissionError(errno.EROFS, "Read-only file system")
        real(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", refused)
    ws = await open_workspace({}, store=False)
    with caplog.at_level(logging.WARNING):
        assert await ws.service(Snapshots).track() is None
        assert await ws.service(Snapshots).track() is None
    assert len(caplog.records) == 1


async def test_a_project_that_takes_too_long_gets_none(
    open_workspace: OpenWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun = slow_git(tmp_path, monkeypatch, "sleep 33.5")
    monkeypatch.setattr(service, "MAX_SECONDS", 3.0)
    ws = await open_workspace({}, store=False)
    snapshots = ws.service(Snapshots)
    with caplog.at_level(logging.WARNING):
        assert await snapshots.track() is None
    assert begun.exists()
    await wait_ended("sleep 33.5")
    begun.unlink()
    assert await snapshots.track() is None
    assert not begun.exists(), "it is not tried again"
    assert "too large" in (snapshots.why_not() or "")
    assert ".gitignore" in caplog.text


async def test_a_damaged_shadow_is_no_error(project: Path, snapshots: Snapshots) -> None:
    assert await snapshots.track()
    (folder_of(snapshots) / "index").write_bytes(b"no index at all")
    (project / "b").write_text("b")
    assert await snapshots.track() is None
    assert snapshots.problem


async def test_files_that_can_not_be_read_are_left_out(
    project: Path, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "secret").write_text("s")
    os.mkfifo(project / "pipe")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "secret" not in str(path) and real(path, mode))
    tree = await snapshots.track()
    assert tree is not None
    (project / "secret").write_text("changed")
    assert await patch(snapshots, tree) == []


async def test_old_ones_are_cleared_away_once_a_day(
    project: Path, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "CLEAN_AFTER", 0.0)
    first = await snapshots.track()
    (project / "a").write_text("b")
    second = await snapshots.track()
    folder = folder_of(snapshots)
    old = time.time() - 8 * 24 * 3600
    for path in folder.glob("objects/??/*"):
        os.utime(path, (old, old))
    (project / "a").write_text("c")
    third = await snapshots.track()
    os.utime(folder / CLEANED, (old, old))
    assert await snapshots.track() == third
    while (folder / CLEANED).stat().st_mtime == old:
        await asyncio.sleep(0.01)
    assert first is not None and second is not None and third is not None
    with pytest.raises(ToolError, match="7 days"):
        await restore(snapshots, first)
    assert await snapshots.diffs(first, third) == []
    (project / "a").write_text("d")
    await restore(snapshots, third)
    assert (project / "a").read_text() == "c"


async def test_shadows_of_projects_that_are_gone(tmp_path: Path) -> None:
    old = time.time() - 8 * 24 * 3600
    for name in ("gone", "used", "there"):
        folder = repository(tmp_path / name)
        (folder / "a").write_text("a")
        async with Workspace(folder, data_dir=tmp_path / "data", store=False) as ws:
            assert await ws.service(Snapshots).track()
            shadow = folder_of(ws.service(Snapshots))
        if name != "used":
            os.utime(shadow / "index", (old, old))
        if name != "there":
            shutil.rmtree(folder)
    remove_abandoned(tmp_path / "data" / "snapshot")
    kept = [path.name for path in (tmp_path / "data" / "snapshot").iterdir() if path.is_dir()]
    assert sorted(kept) == sorted(project_id(tmp_path / name) for name in ("used", "there"))


def test_git_itself(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    git = Git("git", None, folder, 5)
    assert git.run("rev-parse", "--is-inside-work-tree") == b"true\n"
    with pytest.raises(GitError, match="Not a valid object name"):
        git.run("cat-file", "no-such", "x")
    assert git.run("config", "--get", "nothing.here", ok=(0, 1)) == b""
    with pytest.raises(TooSlowError):
        Git("sleep", None, folder, 0.2).run("5")
    with pytest.raises(GitError, match="can't be started"):
        Git("/nonexistent/git", None, folder, 5).run("x")
    git.stop()
    with pytest.raises(StoppedError):
        git.run("rev-parse")
