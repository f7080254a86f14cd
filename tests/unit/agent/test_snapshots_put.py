"""Snapshots put files back: contents, links, execute bits, folders in the place of files; all or nothing."""

from __future__ import annotations

import os
import random
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.agent.snapshots import Snapshots
from opencode_jupyter.core.errors import ToolError
from tests.support.repository import repository
from tests.support.snapshots import patch, restore, revert
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return repository(tmp_path / "project")


@pytest.fixture
async def snapshots(open_workspace: OpenWorkspace) -> Snapshots:
    ws = await open_workspace({}, store=False)
    return ws.service(Snapshots)


def contents(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Every file below a folder: what it is and what it holds."""
    entries: dict[str, tuple[str, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.split(os.sep)[0] == ".git":
            continue
        if path.is_symlink():
            entries[name] = ("link", os.fsencode(path.readlink()))
        elif path.is_file():
            entries[name] = ("run" if path.stat().st_mode & stat.S_IXUSR else "file", path.read_bytes())
    return entries


async def track(snapshots: Snapshots) -> str:
    tree = await snapshots.track()
    assert tree is not None, snapshots.problem
    return tree


async def test_restore_brings_all_back(project: Path, snapshots: Snapshots) -> None:
    (project / "sub").mkdir()
    for name in ("a", "sub/b", "c"):
        (project / name).write_text(name)
    (project / "l").symlink_to("a")
    (project / "c").chmod(0o755)
    before = contents(project)
    tree = await track(snapshots)
    (project / "a").write_text("other")
    shutil.rmtree(project / "sub")
    (project / "c").chmod(0o644)
    (project / "l").unlink()
    (project / "l").symlink_to("c")
    (project / "new" / "deep").mkdir(parents=True)
    (project / "new" / "deep" / "n").write_text("n")
    done = await restore(snapshots, tree)
    assert contents(project) == before
    assert {Path(path).name for path in done} == {"a", "b", "c", "l", "n"}
    assert not (project / "new").exists()  # left empty
    assert await track(snapshots) == tree
    assert await restore(snapshots, tree) == []


async def test_revert_takes_the_first_of_several_patches(project: Path, snapshots: Snapshots) -> None:
    (project / "a").write_text("1")
    (project / "b").write_text("1")
    first = await track(snapshots)
    (project / "a").write_text("2")
    second = await track(snapshots)
    (project / "a").write_text("3")
    (project / "new").write_text("n")
    (project / "b").write_text("mine")
    patches = [
        {"hash": first, "files": [str(project / "a")]},
        {"hash": second, "files": [str(project / "a"), str(project / "new"), "/etc/passwd"]},
    ]
    done = await revert(snapshots, patches)
    assert sorted(done) == [str(project / "a"), str(project / "new")]
    assert contents(project) == {"a": ("file", b"1"), "b": ("file", b"mine")}


async def test_permissions_stay(project: Path, snapshots: Snapshots) -> None:
    secret = project / "secret"
    secret.write_text("1")
    secret.chmod(0o600)
    tree = await track(snapshots)
    secret.write_text("2")
    await restore(snapshots, tree)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    secret.chmod(0o700)
    await restore(snapshots, tree)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


@pytest.mark.parametrize("forth", [True, False])
async def test_a_file_and_a_folder_of_one_name(project: Path, snapshots: Snapshots, forth: bool) -> None:
    def as_file() -> None:
        shutil.rmtree(project / "x", ignore_errors=True)
        (project / "x").write_text("file")

    def as_folder() -> None:
        (project / "x").unlink(missing_ok=True)
        (project / "x" / "y").mkdir(parents=True)
        (project / "x" / "y" / "z").write_text("inside")

    first, then = (as_file, as_folder) if forth else (as_folder, as_file)
    first()
    before = contents(project)
    tree = await track(snapshots)
    then()
    await restore(snapshots, tree)
    assert contents(project) == before


async def test_nothing_is_written_through_a_link_that_leads_away(
    project: Path, snapshots: Snapshots, tmp_path: Path
) -> None:
    (project / "x").mkdir()
    (project / "x" / "y").write_text("mine")
    tree = await track(snapshots)
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(project / "x")
    (project / "x").symlink_to(outside)
    # The whole tree comes back by taking the link away; one file alone would be written through it.
    with pytest.raises(ToolError, match="symbolic link"):
        await revert(snapshots, [{"hash": tree, "files": [str(project / "x" / "y")]}])
    assert list(outside.iterdir()) == []
    await restore(snapshots, tree)
    assert (project / "x" / "y").read_text() == "mine"
    assert list(outside.iterdir()) == []


async def test_all_or_nothing(project: Path, snapshots: Snapshots) -> None:
    (project / "a").write_text("1")
    (project / "b").write_text("1")
    tree = await track(snapshots)
    (project / "a").write_text("2")
    (project / "b").unlink()
    (project / "b").mkdir()
    (project / "b" / ".git").mkdir()  # no file of ours, so it stays
    with pytest.raises(ToolError, match=r"folder|directory"):
        await revert(snapshots, [{"hash": tree, "files": [str(project / "a"), str(project / "b")]}])
    assert (project / "a").read_text() == "2"


async def test_a_snapshot_that_is_gone(project: Path, snapshots: Snapshots) -> None:
    (project / "a").write_text("1")
    await track(snapshots)
    for missing in ("0" * 40, "nonsense", "--help"):
        with pytest.raises(ToolError, match=r"no longer exists|can't be used"):
            await restore(snapshots, missing)
        with pytest.raises(ToolError, match=r"no longer exists|can't be used"):
            await revert(snapshots, [{"hash": missing, "files": [str(project / "a")]}])


NAMES = ["a", "b.txt", "d/x", "d/y", "d/e/z", "d", "link", "sp ace", "new\nline", "big"]


def change(folder: Path, seed: int) -> None:
    """One random change, as agents and people make them."""
    chance = random.Random(seed)
    path = folder / chance.choice(NAMES)
    for parent in reversed(path.parents):
        if len(parent.parts) > len(folder.parts) and (parent.is_symlink() or parent.is_file()):
            parent.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    what = chance.randrange(6)
    if what == 0 and os.path.lexists(path):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    if what == 1:
        path.unlink(missing_ok=True)
        path.symlink_to(chance.choice(["a", "d", "nowhere"]))
        return
    if path.is_symlink():
        path.unlink()
    path.write_bytes(chance.randbytes(chance.choice([0, 1, 100, 70_000])))
    if what == 2:
        path.chmod(0o755)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.lists(st.integers(0, 10**6), min_size=0, max_size=6), min_size=1, max_size=5))
async def test_random_changes_and_all_is_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[int]]
) -> None:
    folder = repository(tmp_path_factory.mktemp("project"))
    async with Workspace(folder, data_dir=tmp_path_factory.mktemp("data"), store=False) as ws:
        snapshots = ws.service(Snapshots)
        states, patches = [], []
        for seeds in steps:
            states.append((await track(snapshots), contents(folder)))
            for seed in seeds:
                change(folder, seed)
            hash = states[-1][0]
            patches.append({"hash": hash, "files": await patch(snapshots, hash)})
        end = await track(snapshots), contents(folder)
        for at in reversed(range(len(steps))):
            await revert(snapshots, patches[at:])
            assert contents(folder) == states[at][1]
        await restore(snapshots, end[0])
        assert contents(folder) == end[1]
