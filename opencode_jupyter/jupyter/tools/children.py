"""Interrupting the processes that code started, as the stop button of Jupyter does: it signals the kernel's group."""

from __future__ import annotations

import contextlib
import os
import signal
import time

GRAIN = 0.02
"""Seconds by which the time of a process's start may be off."""


def interrupt_children(since: float) -> None:
    """Send SIGINT to the kernel's descendants that began at `since` (`time.time`) or later and are in its group.

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
        if hasattr(time, "CLOCK_BOOTTIME"):  # Linux tells the boot's time in whole seconds only
            since -= time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - psutil.boot_time()
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                if child.create_time() >= since - GRAIN and os.getpgid(child.pid) == os.getpgrp():
                    child.send_signal(signal.SIGINT)
