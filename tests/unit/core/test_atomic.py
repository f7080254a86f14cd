"""A file is written whole or stays as it was."""

from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from opencode_jupyter.core import atomic, temporary_files
from opencode_jupyter.core.atomic import Write, write_all
from opencode_jupyter.core.errors import ToolError


def test_new_file_and_folders(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        atomic.write(tmp_path / "a" / "b" / "c.txt", b"x")
    finally:
        os.umask(before)
    path = tmp_path / "a" / "b" / "c.txt"
    assert path.read_bytes() == b"x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(path.parent) == ["c.txt"]


def test_mode_stays(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("old")
    path.chmod(0o750)
    atomic.write(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("made")
    assert atomic.write(tmp_path / "link", b"new") == (tmp_path / "target").resolve()
    atomic.write(tmp_path / "dangling", b"1")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "new"
    assert (tmp_path / "dangling").is_symlink() and (tmp_path / "made").read_text() == "1"


def test_odd_and_longest_names(tmp_path: Path) -> None:
    for name in ("sp ace", "new\nline", "{}'\"", "-rf", "ü" * 127, os.fsdecode(b"\xff\xfe")):
        atomic.write(tmp_path / name, b"x")
        assert (tmp_path / name).read_bytes() == b"x"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    real_open = os.open
    monkeypatch.setattr(
        os, "open", lambda p, flags, *a, **k: _full(real_open, p, flags, *a, **k) if str(p).endswith(".tmp") else
        real_open(p, flags, *a, **k)
    )  # fmt: skip
    with pytest.raises(ToolError, match=r"No space left .* The file is unchanged"):
        atomic.write(path, b"new" * 1000)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_full_disk_leaves_no_empty_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept").mkdir()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic, "fill", full)
    with pytest.raises(ToolError, match=r"No space left .* Nothing was written; free some space"):
        atomic.write(tmp_path / "kept" / "new" / "er" / "f", b"x")
    assert os.listdir(tmp_path) == ["kept"]
    assert os.listdir(tmp_path / "kept") == []


def _full(real_open, path, flags, *arguments, **keywords):
    """A new file whose every write meets a full disk."""
    os.close(real_open(path, flags, *arguments, **keywords))
    return real_open("/dev/full", os.O_WRONLY)


def test_an_error_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # the real thing: writing stops half-way
    try:
        with pytest.raises(ToolError, match="Can't write"):
            atomic.write(path, b"x" * 50_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "Path is a directory, not a file"),
        ("pipe", "Not a regular file"),
        ("file/x", "a part of its path is a file, not a folder"),
        ("loop", "symbolic links go in a circle"),
        ("n" * 300, "too long"),
    ],
)
def test_errors_say_what_is_wrong(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ToolError, match=message):
        atomic.write(tmp_path / name, b"x")


def test_read_only_means_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(0o444)
    if os.geteuid() == 0:  # root may write anything: let the system say what it says to everyone else
        monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
    with pytest.raises(ToolError, match="No permission to write"):
        atomic.write(path, b"new")
    assert path.read_text() == "old"


@pytest.mark.parametrize("many", [False, True])
def test_extended_attributes_stay(tmp_path: Path, many: bool) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    try:
        os.setxattr(path, "user.tag", b"blue")
    except OSError:
        pytest.skip("no extended attributes here")
    if many:
        write_all([Write(path, b"new")])
    else:
        atomic.write(path, b"new")
    assert (path.read_bytes(), os.getxattr(path, "user.tag")) == (b"new", b"blue")


KILLED = """
import os, signal, sys
from pathlib import Path
from opencode_jupyter.core import atomic, temporary_files
data, folder = map(Path, sys.argv[1:3])
temporary_files.use(data)
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[3] == "write":
    os.fdopen = die
    atomic.write(folder / "a.txt", b"new")
else:
    def step(done):
        if done == 2:
            die()
    atomic.write_all(
        [atomic.Write(folder / "a.txt", b"new"), atomic.Write(folder / "b.txt", None),
         atomic.Write(folder / "c.txt", None)], step)
"""


@pytest.mark.parametrize("kind", ["write", "patch"])
def test_what_a_killed_process_left_is_removed_at_the_next_start(tmp_path: Path, kind: str) -> None:
    folder, data = tmp_path / "project", tmp_path / "data"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(name)
    killed = subprocess.run([sys.executable, "-c", KILLED, data, folder, kind], check=False)
    assert killed.returncode == -9
    leftovers = [name for name in os.listdir(folder) if name.endswith(".tmp")]
    assert leftovers
    temporary_files.use(tmp_path / "other")  # other data: not of that process
    assert set(leftovers) <= set(os.listdir(folder))
    with temporary_files.journaled():
        temporary_files.use(data)
        mine = temporary_files.name(folder)
        mine.write_text("")
        temporary_files.sweep(data / "temporaries")  # this process lives
        assert set(os.listdir(folder)) == {"a.txt", "b.txt", "c.txt", mine.name}
    assert (folder / "b.txt").read_text() == "b"  # moved away, and the patch never ended
    temporary_files.use(tmp_path / "other")


def test_folders_as_deep_as_a_path_can_be_are_made(tmp_path: Path) -> None:
    path = tmp_path.joinpath(*"x" * 1_500, "f")
    atomic.write(path, b"x")
    assert path.read_bytes() == b"x"
    while path != tmp_path:  # `shutil.rmtree` recurses
        path.rmdir() if path.is_dir() else path.unlink()
        path = path.parent
