"""A long-lived program that is talked to over its stdin and stdout, such as a language server.

Supervised as every command is: it ends, with what it started, when it is stopped and when the kernel is gone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

import anyio

from ...sandbox.policy import SandboxPolicy
from .child import DRAIN, STOP, Exit, ProcessHandle, exit_of, start_process

_CHUNK = 1 << 18
UNREAD = 64 << 20
"""Bytes written to a program that does not read them, after which it counts as hung."""
ERRORS = 8192
"""Bytes kept of the end of its stderr."""


class Stdio:
    """A running program. Made by `start_stdio`; belongs to the event loop it was made on.

    Attributes:
        pid: its process; 0 if it ended before that was known.
    """

    def __init__(self, handle: ProcessHandle, stdin: int, stdout: int, stderr: int) -> None:
        self.pid = 0
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._stdin: int | None = stdin
        self._unwritten = bytearray()
        self._errors = bytearray()
        self._readers: dict[int, Callable[[bytes], None]] = {}
        for descriptor in (stdin, stdout, stderr):
            os.set_blocking(descriptor, False)
        self._stdout = stdout
        self._stderr = stderr
        self._is_listening = False
        self._on_end: Callable[[], None] = _ignore_end
        self._on_errors: Callable[[bytes], None] | None = None
        self._listen(stderr, self._keep_errors)

    @property
    def exited(self) -> bool:
        """True if the program itself is over."""
        return self._handle.exited.done()

    @property
    def errors(self) -> str:
        """The end of what it wrote to stderr, up to now."""
        if self._stderr in self._readers:
            self._read(self._stderr)
        return bytes(self._errors).decode("utf-8", "replace").strip()

    def listen(self, on_output: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to read its stdout.

        Args:
            on_output: called on the event loop with each chunk.
            on_end: called once when nothing more will come: it closed its stdout, ended, or was stopped.
        """
        self._on_end = on_end
        self._is_listening = True
        self._listen(self._stdout, on_output)
        # Something that it started may hold its stdout open after its exit.
        self._handle.exited.add_done_callback(lambda _: self._loop.call_later(DRAIN, self._stop_reading, self._stdout))

    def subscribe_errors(self, on_errors: Callable[[bytes], None]) -> None:
        """Receive each chunk of its stderr too, on the event loop; what came before at once."""
        self._on_errors = on_errors
        if self._errors:
            on_errors(bytes(self._errors))

    def write(self, data: bytes) -> None:
        """Send to its stdin; what it does not take at once is sent when it reads again.

        Raises:
            BrokenPipeError: it no longer reads.
            BufferError: it has not read for so long that `UNREAD` bytes wait.
        """
        if self._stdin is None:
            raise BrokenPipeError("the program has ended")
        if len(self._unwritten) > UNREAD:
            raise BufferError(f"the program does not read its input ({len(self._unwritten) >> 20} MiB wait)")
        waiting = bool(self._unwritten)
        self._unwritten += data
        if not waiting:
            self._flush()
            if self._unwritten and self._stdin is not None:
                self._loop.add_writer(self._stdin, self._flush)

    async def wait(self) -> Exit:
        """Wait for its exit."""
        return await asyncio.shield(self._handle.exited)

    async def stop(self) -> Exit:
        """End it with all its descendants: SIGTERM, 0.2 s, SIGKILL. Bounded, and shielded from a cancel."""
        self._handle.end()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self._handle.gone], timeout=STOP)
            if not self._handle.gone.done():
                self._handle.force()
            self.close()
        return exit_of(self._handle)

    def close(self) -> None:
        """Let go of it: what still runs is ended."""
        self.close_stdin()
        if not self._is_listening:
            self._is_listening = True
            os.close(self._stdout)
        for descriptor in tuple(self._readers):
            self._stop_reading(descriptor)
        self._handle.close()

    def close_stdin(self) -> None:
        """Close its stdin: it sees that nothing more comes."""
        if self._stdin is not None:
            if not self._loop.is_closed():
                self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
            self._stdin = None
            self._unwritten.clear()

    def _listen(self, descriptor: int, on_data: Callable[[bytes], None]) -> None:
        self._readers[descriptor] = on_data
        self._loop.add_reader(descriptor, self._read, descriptor)

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._readers[descriptor](data)
        else:
            self._stop_reading(descriptor)

    def _stop_reading(self, descriptor: int) -> None:
        if self._readers.pop(descriptor, None) is None:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(descriptor)
        os.close(descriptor)
        if descriptor == self._stdout:
            ended, self._on_end = self._on_end, _ignore_end
            ended()

    def _keep_errors(self, data: bytes) -> None:
        self._errors += data
        del self._errors[:-ERRORS]
        if self._on_errors is not None:
            self._on_errors(data)

    def _flush(self) -> None:
        if self._stdin is None:
            return
        try:
            while self._unwritten:
                del self._unwritten[: os.write(self._stdin, self._unwritten[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            self.close_stdin()
            return
        self._loop.remove_writer(self._stdin)


async def start_stdio(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], sandbox: SandboxPolicy | None = None
) -> Stdio:
    """Start a program to talk to, in a session of its own; its stderr is read all the time.

    Args:
        argv: the program's absolute path and its arguments.
        cwd: where it runs.
        env: its whole environment.
        sandbox: what it may do; everything if left out.

    Raises:
        OSError: it can't be started.
        ValueError: an argument contains a NUL.
    """
    if any("\0" in word for word in argv):
        raise ValueError("a command can't contain a NUL byte")
    theirs_in, stdin = os.pipe()
    stdout, theirs_out = os.pipe()
    stderr, theirs_err = os.pipe()
    try:
        handle = start_process(argv, cwd, env, theirs_out, stdout, (theirs_in, theirs_err), sandbox)
    except BaseException:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        raise
    finally:
        for descriptor in (theirs_in, theirs_out, theirs_err):
            os.close(descriptor)
    program = Stdio(handle, stdin, stdout, stderr)
    try:
        program.pid = await asyncio.shield(handle.started)
    except BaseException:
        handle.end()
        program.close()
        raise
    return program


def _ignore_end() -> None:
    """Nothing listens for the end."""
