"""Several files change together or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from opencode_jupyter.core import atomic, temporary_files
from opencode_jupyter.core.atomic import Write, write_all
from opencode_jupyter.core.errors import ToolAbortedError, ToolError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of several kinds."""
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "a").chmod(0o750)
    os.utime(tmp_path / "a", ns=(10**18, 10**18))
    (tmp_path / "gone").write_bytes(b"gone")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "e").write_bytes(b"e")
    return tmp_path


def state(folder: Path) -> dict[str, object]:
    """All there is: names, contents, modes, times, links."""
    out: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        content: object = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        times = 0 if path.is_dir() else info.st_mtime_ns
        out[str(path.relative_to(folder))] = (info.st_mode, times, content)
    return out


def writes(folder: Path) -> list[Write]:
    return [
        Write(folder / "a", b"new a", b"a"),
        Write(folder / "x/y/z", b"z", mode=0o700),
        Write(folder / "link", None),
        Write(folder / "gone", None, b"gone"),
        Write(folder / "gone/now", b"a folder"),
        Write(folder / "d/e", b"new e", b"e"),
    ]


def test_all_is_done(folder: Path) -> None:
    created = write_all(writes(folder))
    assert created == [folder / "x", folder / "x/y", folder / "gone"]
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert files == {"a": b"new a", "x/y/z": b"z", "gone/now": b"a folder", "d/e": b"new e"}
    assert (folder / "a").stat().st_mode & 0o777 == 0o750
    assert (folder / "x/y/z").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("when", range(12))
def test_a_stop_at_any_moment_puts_everything_back(folder: Path, when: int) -> None:
    before = state(folder)
    calls = 0

    def step(_: int) -> None:
        nonlocal calls
        calls += 1
        if calls > when:
            raise ToolAbortedError(reason="stopped")

    with pytest.raises(ToolAbortedError):
        write_all(writes(folder), step)
    assert state(folder) == before


@pytest.mark.parametrize("when", range(9))
@pytest.mark.parametrize("links", [True, False])
def test_an_error_at_any_rename_puts_everything_back(
    folder: Path, when: int, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(folder)
    calls = 0
    with temporary_files.journaled():
        temporary_files.name(folder)  # another test's workspace may have set a journal, which is opened now

    def failing(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls == when + 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments)

        return call

    monkeypatch.setattr(Path, "replace", failing(Path.replace))
    monkeypatch.setattr(Path, "rename", failing(Path.rename))
    monkeypatch.setattr(Path, "mkdir", failing(Path.mkdir))
    if not links:

        def no_link(*_: object, **__: object) -> None:
            raise OSError(errno.EPERM, "no hard links here")

        monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(ToolError, match=r"No space left on the disk .*(Nothing is changed|nothing is changed)\.$"):
        write_all(writes(folder))
    assert state(folder) == before


@pytest.mark.parametrize("when", range(4))
def test_a_full_disk_is_found_before_anything_is_touched(
    folder: Path, when: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(folder)
    calls = 0
    fill = atomic.fill

    def full(temporary: Path, data: bytes, mode: int, existing: os.stat_result | None) -> None:
        nonlocal calls
        calls += 1
        fill(temporary, data[: len(data) // 2], mode, existing)
        if calls > when:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic, "fill", full)
    with pytest.raises(ToolError, match=r"No space left .* Nothing is changed"):
        write_all(writes(folder))
    assert state(folder) == before


def test_a_folder_that_vanishes_meanwhile(folder: Path) -> None:
    before = state(folder)

    def step(count: int) -> None:
        if count == 3:  # "a", "x/y/z" and what makes room for "gone/now" are done
            shutil.rmtree(folder / "d")
            (folder / "d").write_bytes(b"in the way")

    with pytest.raises(ToolError, match="Everything already written was put back"):
        write_all(writes(folder), step)
    after = state(folder)
    assert after.pop("d") is not None
    assert after == {name: entry for name, entry in before.items() if not name.startswith("d")}


def test_a_changed_file_whose_folder_vanishes_is_made_again(folder: Path) -> None:
    def step(count: int) -> None:
        if count == 1:
            shutil.rmtree(folder / "d")
            raise ToolAbortedError(reason="stopped")

    with pytest.raises(ToolAbortedError):
        write_all([Write(folder / "d/e", b"new", b"e"), Write(folder / "a", b"new")], step)
    assert (folder / "d/e").read_bytes() == b"e"


@pytest.mark.parametrize(
    ("path", "after", "message"),
    [
        ("d", b"x", "directory, not a file"),
        ("d", None, "directory, not a file"),
        ("none", None, "no longer exists"),
        ("a/b", b"x", "a part of its path is a file"),
        ("pipe", b"x", "Not a regular file"),
    ],
)
def test_what_can_not_be_written(folder: Path, path: str, after: bytes | None, message: str) -> None:
    os.mkfifo(folder / "pipe")
    before = state(folder)
    with pytest.raises(ToolError, match=message):
        write_all([Write(folder / "d/e", b"new e"), Write(folder / path, after)])
    assert state(folder) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(folder: Path) -> None:
    (folder / "d").chmod(0o500)
    before = state(folder)
    try:
        with pytest.raises(ToolError, match="No permission"):
            write_all([Write(folder / "a", b"new"), Write(folder / "d/e", None)])
        assert state(folder) == before
    finally:
        (folder / "d").chmod(0o700)


def test_a_folder_that_takes_names_and_lets_none_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Append-only (chattr +a): the file keeps its place, and nobody is told that it was lost."""
    before = state(folder)

    def refusing(real: Callable[..., object]) -> Callable[..., object]:
        def act(path: Path, *arguments: object, **options: object) -> object:
            if path.parent == folder / "d":
                raise PermissionError(errno.EPERM, "append-only")
            return real(path, *arguments, **options)

        return act

    for name in ("replace", "rename", "unlink"):
        monkeypatch.setattr(Path, name, refusing(getattr(Path, name)))
    with pytest.raises(ToolError, match=r"No permission .*d/e.* put back \(4 files\); nothing is changed"):
        write_all(writes(folder))
    monkeypatch.undo()
    after = state(folder)
    assert {name: entry for name, entry in after.items() if name in before} == before
    assert all(name.startswith("d/.opencode-") for name in after.keys() - before.keys())
