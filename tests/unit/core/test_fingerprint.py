"""What a check for changed files costs, and what it notices all the same."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import pytest

from opencode_jupyter.core import fingerprint
from opencode_jupyter.core.fingerprint import Fingerprint


class Clock:
    """Each check takes a tenth of a millisecond; other time passes by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        self.now += 0.0001
        return self.now

    time = staticmethod(time.time)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fingerprint, "time", clock)
    return clock


@pytest.mark.parametrize("change", ["write", "replace", "delete"])
def test_a_changed_file_is_noticed(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.py"
    path.write_text("1")
    state = Fingerprint([path, tmp_path / "missing"])
    assert state.matches()
    if change == "write":
        path.write_text("12")
    elif change == "replace":
        (tmp_path / "b").write_text("2")
        (tmp_path / "b").replace(path)
    else:
        path.unlink()
    assert not state.matches()


def test_a_file_that_appears_is_noticed(tmp_path: Path) -> None:
    state = Fingerprint([tmp_path / "a" / "b.py"])
    assert state.matches()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").touch()
    assert not state.matches()


def test_a_change_that_keeps_time_size_and_inode_is_noticed_while_the_file_is_fresh(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("one")
    status = path.stat()
    future = time.time_ns() + 60_000_000_000  # however slow the machine is
    os.utime(path, ns=(status.st_atime_ns, future))
    state = Fingerprint([path])
    with path.open("r+") as file:
        file.write("two")
    os.utime(path, ns=(status.st_atime_ns, future))
    assert not state.matches()


def test_a_positive_answer_is_reused_for_a_time_that_grows_with_its_cost(tmp_path: Path, clock: Clock) -> None:
    state = Fingerprint([tmp_path / "plugin"])
    assert state.unchanged(0.02)
    (tmp_path / "plugin").mkdir()
    assert state.unchanged(0.02), "code that calls in a row goes by the last check"
    clock.now += 0.0001 * fingerprint.PAUSE
    assert not state.unchanged(0.02)
    assert not state.unchanged(0.02), "a change stays noticed"


@pytest.mark.parametrize("since", ["now", math.inf])
def test_whoever_needs_a_fresh_answer_gets_one(tmp_path: Path, clock: Clock, since: float | str) -> None:
    state = Fingerprint([tmp_path / "plugin"])
    assert state.unchanged(0.02)
    (tmp_path / "plugin").mkdir()
    assert not state.unchanged(0.02, clock.now if since == "now" else math.inf)


def test_two_fingerprints_are_merged_in_the_state_each_recorded(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("1")
    first, second = Fingerprint([path]), Fingerprint([tmp_path])
    path.write_text("12")
    second.merge(first)
    assert len(second) == 2 and not second.matches()
