"""What counts as read, and as changed since."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import anyio
import pytest

from opencode_jupyter.core.file_tracker import SWITCH, FileChangedError, FileTracker, NotReadError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.txt"
    path.write_text("old")
    return path


def test_must_be_read_first(file: Path) -> None:
    times = FileTracker()
    with pytest.raises(NotReadError) as raised:
        times.check("s", file)
    assert str(raised.value) == f"You must read file {file} before overwriting it. Use the Read tool first"
    times.read("s", file)
    times.check("s", file)
    with pytest.raises(NotReadError):
        times.check("another session", file)


def test_the_message_of_a_change(file: Path) -> None:
    times = FileTracker()
    times.read("s", file)
    os.utime(file, (4102444800.25, 4102444800.25))
    with pytest.raises(FileChangedError) as raised:
        times.check("s", file)
    lines = str(raised.value).split("\n")
    assert lines[0] == f"File {file} has been modified since it was last read."
    assert lines[1] == "Last modification: 2100-01-01T00:00:00.250Z"
    assert lines[2].startswith("Last read: 20") and lines[2].endswith("Z")
    assert lines[3:] == ["", "Please read the file again before modifying it."]


def test_a_change_that_keeps_time_and_size_is_noticed(file: Path) -> None:
    times = FileTracker()
    times.read("s", file)
    stat = file.stat()
    file.write_text("new")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(FileChangedError):
        times.check("s", file)


def test_a_change_within_the_clock_s_slack_is_noticed(file: Path) -> None:
    times = FileTracker()
    times.read("s", file)
    file.write_text("newer")
    with pytest.raises(FileChangedError):
        times.check("s", file)


def test_links_are_the_file_they_lead_to(file: Path) -> None:
    link = file.parent / "link"
    link.symlink_to(file)
    times = FileTracker()
    times.read("s", link)
    times.check("s", file)


def test_the_switch(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "true")
    FileTracker().check("s", file)


@pytest.mark.anyio
async def test_lock_is_held_in_order_and_let_go(file: Path) -> None:
    times = FileTracker()
    steps: list[str] = []

    async def work(name: str, path: Path) -> None:
        async with times.lock(path):
            steps.append(f"{name} in")
            await anyio.sleep(0.02)
            steps.append(f"{name} out")
            if name == "b":
                raise KeyError

    async def guarded(name: str, path: Path) -> None:
        with contextlib.suppress(KeyError):
            await work(name, path)

    link = file.parent / "link"
    link.symlink_to(file)
    async with anyio.create_task_group() as group:
        for name, path in (("a", file), ("b", link), ("c", file)):
            group.start_soon(guarded, name, path)
            await anyio.sleep(0)
    assert steps == ["a in", "a out", "b in", "b out", "c in", "c out"]
    async with times.lock(file), times.lock(file.parent / "other"):
        pass
    assert not any(map(times.held, (file, link, file.parent / "other")))


def test_our_own_change_keeps_a_session_up_to_date(file: Path) -> None:
    times = FileTracker()
    times.read("knows", file)
    times.read("outdated", file)
    file.write_text("newer")
    times.read("knows", file)
    with times.own_change([file]):
        file.write_text("restored")
    times.check("knows", file)
    with pytest.raises(FileChangedError):
        times.check("outdated", file)
    with pytest.raises(NotReadError):
        times.check("never read", file)
    file.write_text("by somebody else")
    with pytest.raises(FileChangedError):
        times.check("knows", file)
