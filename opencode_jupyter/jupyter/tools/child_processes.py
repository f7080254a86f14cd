"""Interrupting the processes that code started, as the stop button of Jupyter does: it signals the kernel's group."""

from __future__ import annotations

import contextlib
import os
import signal
from glob import glob
from typing import Any


def children() -> frozenset[int]:
    """The kernel's child processes by their numbers; empty where `interrupt_children` does nothing."""
    files = glob("/proc/self/task/*/children")
    if not files:  # not Linux, or a Linux that does not list them
        return frozenset(child.pid for child in _children())
    numbers: set[int] = set()
    for file in files:
        with contextlib.suppress(OSError), open(file, encoding="ascii") as text:  # a thread may have ended
            numbers.update(map(int, text.read().split()))
    return frozenset(numbers)


def interrupt_children(others: frozenset[int]) -> None:
    """Send SIGINT to the kernel's descendants that are in its group, without the children in `others`.

    A wait for a child may be one that nothing else ends (``os.system``), and what waits need not end the child. What
    left the group is meant to live on, as are processes that other cells started.
    """
    for child in _children():
        if child.pid not in others:
            for process in (child, *_children(child.pid, recursive=True)):
                _interrupt(process.pid)


def _children(parent: int | None = None, *, recursive: bool = False) -> list[Any]:
    """A process's children (the kernel's) as psutil finds them; none without psutil, or where they get no signal."""
    if os.name != "posix":
        return []
    try:
        import psutil  # type: ignore[import-untyped]  # ipykernel brings it
    except ImportError:
        return []
    try:
        return list(psutil.Process(parent).children(recursive=recursive))
    except psutil.Error:
        return []


def _interrupt(pid: int) -> None:
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == os.getpgrp():
            os.kill(pid, signal.SIGINT)
