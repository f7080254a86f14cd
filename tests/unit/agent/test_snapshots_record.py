"""Snapshots record the project's files: which ones, exactly, quickly, and without touching the project's repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.snapshots import Snapshots
from opencode_jupyter.agent.snapshots.shadow import MOST_BYTES, NEW_BYTES
from tests.support.repository import git, repository
from tests.support.snapshots import diff, patch, restore, revert
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio
ODD = [
    "a b.txt",
    'quote".txt',
    "tab\there",
    "line\nbreak.txt",
    "häßlich.txt",
    "-dash",
    ":(top)x",
    "*",
    "back\\slash",
    "é",
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return repository(tmp_path / "project")


@pytest.fixture
async def snapshots(open_workspace: OpenWorkspace) -> Snapshots:
    ws = await open_workspace({}, store=False)
    return ws.service(Snapshots)


def tree_of(snapshots: Snapshots, tree: str) -> list[str]:
    (shadow,) = snapshots.shadows.values()
    listed = subprocess.run(
        ["git", "--git-dir", str(shadow.folder), "ls-tree", "-r", "-z", "--name-only", tree],
        check=True,
        capture_output=True,
    ).stdout
    return sorted(os.fsdecode(listed).split("\0")[:-1])


async def tracked(snapshots: Snapshots) -> list[str]:
    tree = await snapshots.track()
    assert tree is not None, snapshots.problem
    return tree_of(snapshots, tree)


async def test_same_files_same_tree(project: Path, snapshots: Snapshots) -> None:
    (project / "a.txt").write_text("one\n")
    first = await snapshots.track()
    assert first is not None
    assert await snapshots.track() == first
    assert await patch(snapshots, first) == []
    (project / "a.txt").write_text("two\n")
    (project / "new").mkdir()
    (project / "new" / "b.txt").write_text("b")
    assert sorted(await patch(snapshots, first)) == [str(project / "a.txt"), str(project / "new" / "b.txt")]
    (project / "a.txt").unlink()
    (project / "new" / "b.txt").unlink()
    assert await patch(snapshots, first) == [str(project / "a.txt")]
    (project / "a.txt").write_text("one\n")
    assert await snapshots.track() == first


async def test_a_change_in_the_same_instant_and_of_the_same_size_is_seen(project: Path, snapshots: Snapshots) -> None:
    path = project / "a.txt"
    snapshot_ids = set()
    for i in range(10, 40):
        path.write_text(str(i))
        snapshot_ids.add(await snapshots.track())
    assert len(snapshot_ids) == 30


async def test_odd_names(project: Path, snapshots: Snapshots) -> None:
    names = [*ODD, os.fsdecode(b"not utf-8 \xff")]
    for name in names:
        (project / name).write_text(name, "utf-8", "surrogateescape")
    first = await snapshots.track()
    assert first is not None
    assert tree_of(snapshots, first) == sorted(names)
    for name in names:
        (project / name).write_text("changed")
    assert sorted(await patch(snapshots, first)) == sorted(str(project / name) for name in names)
    second = await snapshots.track()
    assert second is not None
    rows = await snapshots.diffs(first, second)
    assert sorted(row["file"] for row in rows) == sorted(names)
    assert {row["status"] for row in rows} == {"modified"}
    await revert(snapshots, [{"hash": first, "files": [str(project / name) for name in names]}])
    assert await snapshots.track() == first
    assert (project / "line\nbreak.txt").read_text() == "line\nbreak.txt"


async def test_what_is_ignored_stays_out(project: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    everywhere = tmp_path / "everywhere"
    everywhere.write_text("*.swp\n")
    (tmp_path / "home" / ".gitconfig").write_text(f"[core]\n\texcludesFile = {everywhere}\n")
    (project / ".gitignore").write_text("build/\n*.log\n")
    (project / ".git" / "info").mkdir(exist_ok=True)
    (project / ".git" / "info" / "exclude").write_text("private.txt\n")
    for name in (
        "build/x",
        "a.log",
        "private.txt",
        "x.swp",
        "__pycache__/m.pyc",
        ".ipynb_checkpoints/n.ipynb",
        "kept.py",
    ):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x")
    (project / "tracked.log").write_text("x")
    git(project, "add", "-f", "tracked.log")
    assert await tracked(snapshots) == [".gitignore", "kept.py", "tracked.log"]
    (project / "tracked.log").write_text("y")
    first = await snapshots.track()
    (project / "tracked.log").unlink()
    assert first is not None
    assert await patch(snapshots, first) == [str(project / "tracked.log")]


async def test_data_in_the_project_is_not_recorded(open_workspace: OpenWorkspace, project: Path) -> None:
    ws = await open_workspace({}, data_dir=project / ".data", store=False)
    snapshots = ws.service(Snapshots)
    (project / "a").write_text("a")
    assert await tracked(snapshots) == ["a"]


async def test_large_files_stay_out_unless_the_project_tracks_them(project: Path, snapshots: Snapshots) -> None:
    def sized(name: str, size: int) -> None:
        with (project / name).open("wb") as file:
            file.truncate(size)

    sized("new.bin", NEW_BYTES + 1)
    sized("just.bin", NEW_BYTES)
    sized("tracked.bin", NEW_BYTES + 1)
    git(project, "add", "tracked.bin")
    first = await snapshots.track()
    assert first is not None
    assert tree_of(snapshots, first) == ["just.bin", "tracked.bin"]
    sized("just.bin", NEW_BYTES + 5)  # a known file may grow
    assert await patch(snapshots, first) == [str(project / "just.bin")]
    second = await snapshots.track()
    sized("just.bin", MOST_BYTES + 1)
    assert await snapshots.track() == second
    (project / "just.bin").unlink()
    assert await patch(snapshots, first) == [str(project / "just.bin")]


async def test_bytes_are_kept_whatever_attributes_and_settings_say(
    project: Path, snapshots: Snapshots, tmp_path: Path
) -> None:
    (tmp_path / "home" / ".gitconfig").write_text(
        '[core]\n\tautocrlf = input\n\tfsmonitor = false\n[filter "wipe"]\n\tclean = true\n\trequired = true\n'
    )
    (project / ".gitattributes").write_text(
        "* text=auto eol=lf\n*.ipynb filter=wipe\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n"
    )
    contents = {"a.txt": b"x\r\ny\r\n", "n.ipynb": b"{}", "v.id": b"$Id: 1 $", "t.u16": b"\xff\xfea\0"}
    for name, content in contents.items():
        (project / name).write_bytes(content)
    first = await snapshots.track()
    assert first is not None
    for name in contents:
        (project / name).write_bytes(b"other")
    await restore(snapshots, first)
    assert {name: (project / name).read_bytes() for name in contents} == contents


async def test_repositories_inside_are_left_alone(project: Path, snapshots: Snapshots) -> None:
    for name in ("empty", "full"):
        (project / name).mkdir()
        git(project / name, "init", "-q")
        (project / name / "f").write_text("f")
    git(project / "full", "add", "f")
    git(project / "full", "commit", "-q", "-m", "x")
    (project / "mine").write_text("m")
    assert await tracked(snapshots) == ["mine"]


async def test_a_submodule_is_left_alone(project: Path, snapshots: Snapshots, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "f").write_text("f")
    git(other, "add", "f")
    git(other, "commit", "-q", "-m", "x")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    first = await snapshots.track()
    assert first is not None
    assert tree_of(snapshots, first) == [".gitmodules"]
    (project / "sub" / "f").write_text("changed")
    assert await patch(snapshots, first) == []


async def test_links_and_modes(project: Path, snapshots: Snapshots) -> None:
    (project / "run.sh").write_text("x")
    (project / "broken").symlink_to("nowhere")
    (project / "outside").symlink_to("/etc")
    first = await snapshots.track()
    assert first is not None
    assert tree_of(snapshots, first) == ["broken", "outside", "run.sh"]
    (project / "run.sh").chmod(0o755)
    assert await patch(snapshots, first) == [str(project / "run.sh")]


async def test_the_projects_own_repository_is_not_touched(project: Path, snapshots: Snapshots) -> None:
    (project / "a").write_text("a")
    git(project, "add", "a")
    git(project, "commit", "-q", "-m", "x")
    hook = project / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {project}/hook-ran\n")
    hook.chmod(0o755)

    def state() -> dict[str, tuple[int, bytes]]:
        files = (path for path in (project / ".git").rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    (project / "a").write_text("b")
    (project / "c").write_text("c")
    first = await snapshots.track()
    assert first is not None
    await restore(snapshots, first)
    assert state() == before
    assert not (project / "hook-ran").exists()


async def test_variables_of_git_lead_nowhere_else(
    project: Path, snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    (project / "a").write_text("a")
    tree = await snapshots.track()
    monkeypatch.undo()
    assert tree is not None
    assert tree_of(snapshots, tree) == ["a"]
    assert not (tmp_path / "elsewhere").exists()


async def test_a_folder_below_the_worktree_records_all_of_it(open_workspace: OpenWorkspace, project: Path) -> None:
    (project / "sub").mkdir()
    (project / "top").write_text("t")
    ws = await open_workspace({}, directory=project / "sub", store=False)
    snapshots = ws.service(Snapshots)
    (project / "sub" / "x").write_text("x")
    assert await tracked(snapshots) == ["sub/x", "top"]


async def test_differences(project: Path, snapshots: Snapshots) -> None:
    (project / "a.txt").write_text("one\ntwo\n")
    (project / "gone").write_text("g\n")
    (project / "b.bin").write_bytes(b"\0\1")
    first = await snapshots.track()
    (project / "a.txt").write_text("one\n2\n3\n")
    (project / "gone").unlink()
    (project / "b.bin").write_bytes(b"\0\2")
    (project / "new").write_text("n\n")
    (project / "large").write_text("row\n" * 400_000)
    second = await snapshots.track()
    assert first is not None
    assert second is not None
    rows = {row["file"]: row for row in await snapshots.diffs(first, second)}
    counts = {name: (row["status"], row["additions"], row["deletions"]) for name, row in rows.items()}
    assert counts == {
        "a.txt": ("modified", 2, 1),
        "b.bin": ("modified", 0, 0),
        "gone": ("deleted", 0, 1),
        "large": ("added", 400_000, 0),
        "new": ("added", 1, 0),
    }
    assert "+2\n+3\n" in rows["a.txt"]["patch"]
    text = await diff(snapshots, first)
    assert "-two\n+2\n+3\n" in text and "deleted file" in text
    assert await diff(snapshots, second) == ""
    assert sorted(await snapshots.changed(first, second)) == [str(project / name) for name in sorted(rows)]


async def test_files_that_were_touched_only_cost_nothing_for_long(project: Path, snapshots: Snapshots) -> None:
    for i in range(300):
        (project / f"f{i}").write_text("x" * 1000)
    first = await snapshots.track()
    for i in range(300):
        os.utime(project / f"f{i}")
    assert await snapshots.track() == first
    assert first is not None
    assert await patch(snapshots, first) == []


async def _none(make: Callable[[], Any]) -> None:
    async with make() as ws:
        snapshots = ws.service(Snapshots)
        assert await snapshots.track() is None
        assert await patch(snapshots, "0" * 40) == []
        assert snapshots.why_not()


async def test_switched_off(project: Path, tmp_path: Path) -> None:
    await _none(lambda: Workspace(project, {"snapshot": False}, data_dir=tmp_path / "data", store=False))
    assert not (tmp_path / "data" / "snapshot").exists()


async def test_no_repository(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    await _none(lambda: Workspace(tmp_path / "plain", data_dir=tmp_path / "data", store=False))


async def test_no_git(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    await _none(lambda: Workspace(project, data_dir=tmp_path / "data", store=False))
