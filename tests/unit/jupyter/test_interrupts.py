"""The processes that a stop interrupts, where the system does not list a process's children at no cost (macOS)."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from opencode_jupyter.jupyter.tools import interrupts


@pytest.fixture
def no_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "glob", lambda pattern: [])


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows sends no SIGINT")


@pytest.mark.usefixtures("no_lists")
def test_others_go_on_where_children_are_not_listed(sleeper: subprocess.Popen[bytes]) -> None:
    existing = interrupts.child_processes()
    assert sleeper.pid in existing
    with subprocess.Popen(["sleep", "601"]) as started:
        interrupts.interrupt_children(existing)
        assert started.wait(5) == -signal.SIGINT
    assert sleeper.poll() is None


def test_both_ways_list_the_same(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    children = interrupts.child_processes()
    monkeypatch.setattr(interrupts, "glob", lambda pattern: [])
    assert sleeper.pid in children
    assert children == interrupts.child_processes()


@pytest.mark.usefixtures("no_lists")
def test_without_psutil_nothing_is_interrupted(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    existing = interrupts.child_processes()
    assert existing == frozenset()
    interrupts.interrupt_children(existing)
    assert sleeper.poll() is None
