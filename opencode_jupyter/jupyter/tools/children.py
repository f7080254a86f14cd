"""Interrupting the processes that code started, as the stop button of Jupyter does: it signals the kernel's group."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from glob import glob

GRAIN = 0.02
"""Seconds by which the time of a process's start may be off."""


@dataclass(frozen=True, slots=True)
class Before:
    """What was there when code began.

    Attributes:
        time: then (`time.time`).
        children: the kernel's children by their numbers; None where the system does not tell them at no cost.
    """

    time: float
    children: frozenset[int] | None


def before() -> Before:
    """What is there now."""
    lists = glob("/proc/self/task/*/children")
    found: set[int] = set()
    for file in lists:
        with contextlib.suppress(OSError), open(file, encoding="ascii") as text:  # a thread may have ended
            found.update(map(int, text.read().split()))
    return Before(time.time(), frozenset(found) if lists else None)


def interrupt_children(then: Before) -> None:
    """Send SIGINT to the kernel's descendants that began after `then` and are in its group.

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
        since = then.time - GRAIN
        if hasattr(time, "CLOCK_BOOTTIME"):  # Linux tells the boot's time in whole seconds only
            since -= time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - psutil.boot_time()
        for child in psutil.Process().children():
            if then.children is not None and child.pid in then.children:
                continue
            with contextlib.suppress(psutil.Error):
                for one in (child, *child.children(recursive=True)):
                    if then.children is not None or one.create_time() >= since:
                        _interrupt(one.pid)


def _interrupt(pid: int) -> None:
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == os.getpgrp():
            os.kill(pid, signal.SIGINT)
