"""Interrupting the processes that code started, as the stop button of Jupyter does: it signals the kernel's group."""

from __future__ import annotations

import contextlib
import os
import signal
from glob import glob


def children() -> frozenset[int]:
    """The kernel's child processes by their numbers; empty where the system does not list them at no cost."""
    numbers: set[int] = set()
    for file in glob("/proc/self/task/*/children"):
        with contextlib.suppress(OSError), open(file, encoding="ascii") as text:  # a thread may have ended
            numbers.update(map(int, text.read().split()))
    return frozenset(numbers)


def interrupt_children(others: frozenset[int]) -> None:
    """Send SIGINT to the kernel's descendants that are in its group, without the children in `others`.

    A wait for a child may be one that nothing else ends (``os.system``), and what waits need not end the child. What
    left the group is meant to live on, as are processes that other cells started.
    """
    if os.name != "posix":
        return
    try:
        import psutil  # type: ignore[import-untyped]  # ipykernel brings it
    except ImportError:
        return
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children():
            if child.pid not in others:
                with contextlib.suppress(psutil.Error):
                    for process in (child, *child.children(recursive=True)):
                        _interrupt(process.pid)


def _interrupt(pid: int) -> None:
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == os.getpgrp():
            os.kill(pid, signal.SIGINT)
