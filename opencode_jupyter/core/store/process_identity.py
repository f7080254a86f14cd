"""Which process wrote a row, and whether it still lives.

A process id alone is reused by the system; id and start time together are not.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple


class ProcessIdentity(NamedTuple):
    """A process on a machine."""

    host: str
    pid: int
    started: str
    """Start time in the system's own spelling; empty where it can't be found out."""


def this_process() -> ProcessIdentity:
    """The running process (a forked child is another one)."""
    return _identity(os.getpid())


@cache
def _identity(pid: int) -> ProcessIdentity:
    return ProcessIdentity(socket.gethostname(), pid, start_time(pid) or "")


def start_time(pid: int) -> str | None:
    """The start time of process `pid`, as a string to compare; None if there is no such process, "" on Windows."""
    if sys.platform == "linux":
        return _start_linux(pid)
    elif sys.platform == "win32":  # noqa: RET505  (mypy reads one chain of platforms)
        return ""
    else:
        return start_from_ps(pid)


def is_alive(process: ProcessIdentity) -> bool:
    """Return whether `process`, one of this machine, still runs. Says yes when it can't be found out."""
    try:
        started = start_time(process.pid)
    except (OSError, subprocess.SubprocessError):
        return True
    if started is None:
        return False
    return not process.started or started == process.started


def start_from_ps(pid: int) -> str | None:
    """When a process was started, as ``ps`` reports it; None if there is none."""
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    # the date is written by the locale and the time zone, which differ between kernels
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False, env=environment)
    return done.stdout.strip() or None


def _start_linux(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets and may hold spaces and brackets itself.
    fields = stat.rpartition(")")[2].split()
    if fields[0] == "Z":  # ended, only not yet reaped by its parent
        return None
    # Field 22 counts from boot, so a boot's id must go with it (man 5 proc).
    return f"{_boot_id()}:{fields[19]}"


@cache
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
