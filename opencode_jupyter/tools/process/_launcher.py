"""The kernel's end of the supervisor program: one per process, started when the first command runs."""

from __future__ import annotations

import atexit
import contextlib
import marshal
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from ...sandbox.confine import Confined

_PROGRAM = Path(__file__).with_name("_supervisor.py")
_lock = threading.Lock()


class Program:
    """The running supervisor program, if there is one."""

    control: socket.socket | None = None
    process: subprocess.Popen[bytes] | None = None
    owner = 0
    """The process that started it."""


def available() -> bool:
    """Return whether commands can be supervised here: Linux with pidfds (5.3 and later)."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open") and bool(sys.executable)


def request(
    program: Confined,
    *,
    cwd: str,
    output: int,
    drain: int,
    own: tuple[int, int] | None = None,
) -> socket.socket:
    """Have a command started under a supervisor of its own.

    Args:
        program: its absolute path and arguments, its environment and its sandbox.
        cwd: where it runs.
        output: writing end of the pipe for stdout and stderr.
        drain: reading end of the same pipe; the supervisor reads there once the rest may run on.
        own: its stdin and its stderr; without them there is no stdin, and stderr goes to `output`.

    Returns:
        The socket of that command; its protocol is described in ``_supervisor.py``.

    Raises:
        OSError: the supervisor program can't be started or reached.
    """
    body = marshal.dumps(
        {
            "argv": [os.fsencode(word) for word in program.argv],
            "env": {os.fsencode(name): os.fsencode(value) for name, value in program.env.items()},
            "cwd": os.fsencode(cwd),
            "ruleset": program.ruleset is not None,
            "limits": program.limits,
        }
    )
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            _send(
                [theirs.fileno(), output, drain, *(own or ()), *([] if program.ruleset is None else [program.ruleset])]
            )
        ours.settimeout(10)
        ours.sendall(len(body).to_bytes(4, "big") + body)
        ours.setblocking(False)
    except BaseException:
        ours.close()
        raise
    return ours


def _send(descriptors: list[int]) -> None:
    with _lock:
        try:
            socket.send_fds(_connection(), [b"r"], descriptors)
        except OSError:
            _forget()  # the program was killed; start another
            socket.send_fds(_connection(), [b"r"], descriptors)


def _connection() -> socket.socket:
    here = Program.owner == os.getpid()
    if Program.control is not None and Program.process is not None and here and Program.process.poll() is None:
        return Program.control
    _forget()  # it was killed; or after a fork, the socket belongs to the parent's program
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        Program.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", str(_PROGRAM), str(os.getpid())],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )
    Program.control, Program.owner = ours, os.getpid()
    atexit.unregister(_forget)
    atexit.register(_forget)
    return ours


def _forget() -> None:
    if Program.control is not None:
        with contextlib.suppress(OSError):
            Program.control.close()
    if Program.process is not None and Program.owner == os.getpid():
        with contextlib.suppress(subprocess.TimeoutExpired):
            Program.process.wait(1)  # its socket is closed, so it ends; nothing of it may stay as a zombie
    Program.control = Program.process = None
