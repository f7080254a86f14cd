"""One running command, as asyncio sees it: its output in chunks, its exit, and the way to end all of it.

The end of a command is its exit, not the end of its pipe, which a process left in the background may hold open. No
child watcher of asyncio is used, so the event loop may run in any thread, on every Python.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import anyio

from ...core.threads import call_soon
from ...sandbox.confine import Confined, confine
from ...sandbox.policy import SandboxPolicy
from . import _launcher

IDLE = 0.1
"""Seconds without output after the exit that count as "nothing more comes"."""
DRAIN = 0.5
"""Seconds after the exit at which reading ends in any case."""
STOP = 0.95
"""Seconds that ending a command may take before it is abandoned."""
_CHUNK = 1 << 18
_PIPE = 1 << 20
_F_SETPIPE_SZ = 1031


class Exit(NamedTuple):
    """How a command ended.

    Attributes:
        code: exit code; None if a signal ended it.
        signal: number of that signal; None otherwise.
        left: processes of the command that still ran when it exited.
    """

    code: int | None
    signal: int | None = None
    left: tuple[int, ...] = ()

    @classmethod
    def of(cls, status: int, left: Sequence[int] = ()) -> Exit:
        """From a wait status."""
        if os.WIFSIGNALED(status):
            return cls(None, os.WTERMSIG(status), tuple(left))
        return cls(os.waitstatus_to_exitcode(status), None, tuple(left))


class ProcessHandle(Protocol):
    """The kernel's end of a command: of its supervisor, or of its process group.

    Attributes:
        started: its process, for one with a stdin; an error if it can't be started.
        exited: how it ended; an error if it can't be started.
        gone: done when none of its processes is left.
    """

    started: asyncio.Future[int]
    exited: asyncio.Future[Exit]
    gone: asyncio.Future[None]

    def end(self) -> None:
        """Begin to end every process of the command; does not wait."""

    def leave(self) -> None:
        """Let what is left run on, its output going nowhere."""

    def force(self) -> None:
        """Ending took too long."""

    def close(self) -> None:
        """Let go of descriptors and callbacks."""


class Child:
    """A running command. Made by `spawn`; use `wait`, then `close`; `stop` at any time."""

    def __init__(self, handle: ProcessHandle, output: int, on_output: Callable[[bytes], None]) -> None:
        self._handle = handle
        self._output: int | None = output
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._closed = self._loop.create_future()
        self._left = False
        self._last = self._loop.time()
        os.set_blocking(output, False)
        self._loop.add_reader(output, self._read)

    @property
    def exited(self) -> asyncio.Future[Exit]:
        """The exit of the command itself; not to be cancelled."""
        return self._handle.exited

    async def wait(self) -> Exit:
        """Wait for the command's exit and for the rest of its output: until the pipe is closed or idle.

        Raises:
            OSError: it could not be started.
        """
        outcome = await asyncio.shield(self._handle.exited)
        self._drain()
        end = self._loop.time() + DRAIN
        self._last = self._loop.time()
        while not self._closed.done():
            left = min(self._last + IDLE, end) - self._loop.time()
            if left <= 0:
                break
            await asyncio.wait([self._closed], timeout=left)
        self._stop_reading()
        return outcome

    async def stop(self) -> Exit:
        """End the command with all its descendants: SIGTERM, 0.2 s, SIGKILL. Bounded, and shielded from a cancel."""
        self._handle.end()  # at once: whatever happens to this coroutine, the ending goes on
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self._handle.gone], timeout=STOP)
            if not self._handle.gone.done():
                self._handle.force()
            self._drain()
            self._stop_reading()
        return exit_of(self._handle)

    def leave(self) -> ProcessHandle:
        """Let what the command left in the background run on; the handle can end it later."""
        self._stop_reading()
        self._handle.leave()
        self._left = True
        return self._handle

    def close(self) -> None:
        """Let go of it: what still runs is ended, unless it was left."""
        self._stop_reading()
        if not self._left:
            self._handle.close()

    def _read(self) -> None:
        assert self._output is not None
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._last = self._loop.time()
            self._on_output(data)
        else:
            self._stop_reading()

    def _drain(self) -> None:
        """What is in the pipe now."""
        for _ in range(2 * _PIPE // _CHUNK + 1):
            if self._output is None:
                return
            before = self._last
            self._read()
            if self._last == before:
                return

    def _stop_reading(self) -> None:
        if self._output is not None:
            self._loop.remove_reader(self._output)
            os.close(self._output)
            self._output = None
            if not self._closed.done():
                self._closed.set_result(None)


def spawn(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    on_output: Callable[[bytes], None],
    sandbox: SandboxPolicy | None = None,
) -> Child:
    """Start a command: no stdin, stdout and stderr in one stream, a session of its own.

    Args:
        argv: the program's absolute path and its arguments.
        cwd: where it runs.
        env: its whole environment.
        on_output: called on the event loop with each chunk.
        sandbox: what it may do; everything if left out.

    Raises:
        OSError: there is no supervisor or no sandbox for it; `Child.wait` says if the program can't be started (no such
            program or folder, arguments too long).
        ValueError: an argument contains a NUL.
    """
    if any("\0" in word for word in argv):
        raise ValueError("a command can't contain a NUL byte")
    read_end, write_end = os.pipe()
    try:
        with contextlib.suppress(OSError, ImportError):
            import fcntl

            fcntl.fcntl(write_end, _F_SETPIPE_SZ, _PIPE)
        handle = start_process(argv, cwd, env, write_end, read_end, sandbox=sandbox)
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    return Child(handle, read_end, on_output)


def start_process(
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    write_end: int,
    read_end: int,
    own: tuple[int, int] | None = None,
    sandbox: SandboxPolicy | None = None,
) -> ProcessHandle:
    """Start a program, supervised where that is possible, else in a process group.

    Args:
        argv: the program's absolute path and its arguments.
        cwd: where it runs.
        env: its whole environment.
        write_end: its stdout (and stderr); the caller closes it.
        read_end: the other end of that pipe.
        own: its stdin and its stderr; without them there is no stdin.
        sandbox: what it may do; everything if left out.

    Raises:
        OSError: it can't be started, or the sandbox can't be made.
    """
    program = Confined(list(argv), dict(env)) if sandbox is None else confine(sandbox, argv, env, cwd)
    try:
        return _start(program, cwd, write_end, read_end, own)
    finally:
        if program.ruleset is not None:
            os.close(program.ruleset)


def _start(program: Confined, cwd: str, write_end: int, read_end: int, own: tuple[int, int] | None) -> ProcessHandle:
    if _launcher.available():
        try:
            return Supervised(_launcher.request(program, cwd=cwd, output=write_end, drain=read_end, own=own))
        except OSError:
            if program.ruleset is not None:
                raise  # without the supervisor nothing would apply the rules

    return Group(program.argv, cwd=cwd, env=program.env, output=write_end, own=own)


class Supervised:
    """A command with a supervisor: the kernel's end of its socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock: socket.socket | None = sock
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self.started: asyncio.Future[int] = self._loop.create_future()
        self.exited: asyncio.Future[Exit] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(sock.fileno(), self._readable)

    def end(self) -> None:
        """Begin to end every process of the command."""
        self._send_order(b"K")

    def leave(self) -> None:
        """Let what is left run on."""
        self._send_order(b"D")

    def force(self) -> None:
        """Let go: the supervisor goes on trying, nothing more can be done from here."""
        self.close()

    def close(self) -> None:
        """Let go of the socket, which ends what still runs."""
        if self._sock is None:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        self._sock = None
        if not self._loop.is_closed():
            self._settle_futures()

    def _send_order(self, order: bytes) -> None:
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.send(order)

    def _readable(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._handle_report(line.decode("utf-8", "replace"))

    def _handle_report(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "started" and not self.started.done():
            self.started.set_result(int(rest))
        elif word == "failed":
            number, _, text = rest.partition(" ")
            for future in (self.started, self.exited):
                future.set_exception(OSError(int(number), text))
                future.exception()  # retrieved, so that asyncio does not log it
        elif word == "exited" and not self.exited.done():
            status, *left = map(int, rest.split())
            self.exited.set_result(Exit.of(status, left))

    def _settle_futures(self) -> None:
        if not self.started.done():
            self.started.set_result(0)  # killed (by the command itself, say) before it could report
        if not self.exited.done():
            self.exited.set_result(
                Exit(None, signal.SIGKILL)
            )  # the supervisor itself was killed, and the command with it
        if not self.gone.done():
            self.gone.set_result(None)


def exit_of(handle: ProcessHandle) -> Exit:
    """How a stopped command ended, as far as that is known."""
    if handle.exited.done() and handle.exited.exception() is None:
        return handle.exited.result()
    return Exit(None, signal.SIGKILL)


# ---------------------------------------------------------------------- without supervisors (macOS)


GRACE = 0.2
"""Seconds between SIGTERM and SIGKILL."""


class Group:
    """The group's leader and what is in the group; ends by signals to the group."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        output: int,
        own: tuple[int, int] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[int] = self._loop.create_future()
        self.exited: asyncio.Future[Exit] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=own[0] if own else subprocess.DEVNULL,
            stdout=output,
            stderr=own[1] if own else output,
            start_new_session=True,
        )
        self._ending = False
        self._left = False
        self.started.set_result(self._process.pid)
        threading.Thread(target=self._wait, name="opencode-wait", daemon=True).start()

    def end(self) -> None:
        """Begin to end the group: SIGTERM, `GRACE`, SIGKILL."""
        if not self._ending:
            self._ending = True
            threading.Thread(target=self._end, name="opencode-end", daemon=True).start()

    def leave(self) -> None:
        """Let what is left run on."""
        self._left = True

    def force(self) -> None:
        """SIGKILL."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """End what may not run on."""
        if not self._left:
            self.end()

    def _wait(self) -> None:
        code = self._process.wait()
        outcome = Exit(None, -code) if code < 0 else Exit(code)
        self._set_result(self.exited, outcome)

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        limit = time.monotonic() + GRACE
        while self._is_alive() and time.monotonic() < limit:
            time.sleep(0.01)
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        self._set_result(self.gone, None)

    def _is_alive(self) -> bool:
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _set_result(self, future: asyncio.Future[Exit] | asyncio.Future[None], value: Exit | None) -> None:
        def set_result() -> None:
            if not future.done():
                future.set_result(value)  # type: ignore[arg-type]

        call_soon(self._loop, set_result)
