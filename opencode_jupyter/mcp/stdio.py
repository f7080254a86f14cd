"""A local server's stdin and stdout as an MCP transport: one JSON-RPC message a line, in a supervised process.

The SDK's own transport joins chunks quadratically (20 MB take 10 s), has no size limit, and starts a process that
outlives a killed kernel. Here a message that is too long ends the connection, and the program ends with the workspace
(`tools.process`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from ..tools.process.stdio import converse

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream

    from ..runtime.sandbox.policy import SandboxPolicy
    from ..tools.process.stdio import Stdio
    from .connection import ServerLog

MAX_MESSAGE = 16_000_000
"""Bytes of one message."""
GRACE = 0.5
"""Seconds a server has to exit after its stdin is closed."""
EXIT = 0.3
"""Seconds between the end of a program's output and its exit."""
BACKLOG = 2000
"""Unhandled messages after which requests and notifications are dropped; responses never are."""


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """The program of a local server.

    Attributes:
        argv: its absolute path and its arguments.
        cwd: where it runs.
        env: its whole environment.
        sandbox: what it may do; everything if left out.
    """

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    sandbox: SandboxPolicy | None = None


class StdioTransport:
    """The transport of one connection; entered once.

    Args:
        program: what to run.
        log: receives its stderr, and lines on its stdout that are no messages.
        on_end: called once when nothing more will come.
        max_message: bytes of one message.
    """

    def __init__(
        self, program: ServerProgram, log: ServerLog, on_end: Callable[[], None], max_message: int = MAX_MESSAGE
    ) -> None:
        self._program = program
        self._log = log
        self._on_end = on_end
        self._limit = max_message
        self._line = bytearray()
        self._too_long = ""
        self._dropped = False
        self.process: Stdio | None = None
        self._send, self._receive = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _MessageWriter]:
        program = self._program
        self.process = await converse(program.argv, cwd=program.cwd, env=program.env, sandbox=program.sandbox)
        self.process.hear_errors(self._log.feed)
        self.process.listen(self._feed, self._handle_end)
        return self._receive, _MessageWriter(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self.process
        if process is None:
            return
        self._on_end = _do_nothing
        with anyio.CancelScope(shield=True):
            process.hang_up()
            await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=GRACE)
            await process.stop()
        self._log.end()
        self._send.close()
        self._receive.close()

    async def exit_reason(self) -> str:
        """How the program ended, in words; waits a moment for its exit."""
        if self._too_long:
            return self._too_long
        if self.process is None:
            return "it was not started"
        done, _ = await asyncio.wait([asyncio.ensure_future(self.process.wait())], timeout=EXIT)
        if not done:
            return "it closed its output"
        status = done.pop().result()
        return f"signal {status.signal}" if status.signal else f"exit code {status.code}"

    # ------------------------------------------------------------------ to the server

    def write(self, item: SessionMessage) -> None:
        """Send a message.

        Raises:
            anyio.BrokenResourceError: the server no longer reads.
        """
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        try:
            if self.process is None:
                raise BrokenPipeError
            self.process.write(data)
        except (OSError, BufferError) as error:
            self._log.add(f"could not be sent a message: {error}", "client")
            raise anyio.BrokenResourceError from error

    # ------------------------------------------------------------------ from the server

    def _feed(self, data: bytes) -> None:
        """Take a chunk of any size."""
        *pieces, rest = data.split(b"\n")
        for piece in pieces:
            if self._extend(piece):
                line, self._line = bytes(self._line), bytearray()
                self._receive_line(line.strip())
        self._extend(rest)

    def _extend(self, piece: bytes) -> bool:
        """Add to the current line; False if a line was too long, which ends the connection."""
        if not self._too_long and len(self._line) + len(piece) > self._limit:
            self._too_long = f"it sent a message of more than the limit of {self._limit / 1e6:g} MB"
            self._line.clear()
            self._handle_end()
        if self._too_long:
            return False
        self._line += piece
        return True

    def _receive_line(self, line: bytes) -> None:
        if not line:
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._log.add(line[:200].decode("utf-8", "replace"), "stdout")
            return
        is_response = isinstance(message, JSONRPCResponse | JSONRPCError)
        if not is_response and self._receive.statistics().current_buffer_used >= BACKLOG:
            if not self._dropped:
                self._log.add("sends faster than its messages can be handled: some were dropped", "client")
            self._dropped = True
            return
        try:
            self._send.send_nowait(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the session is over

    def _handle_end(self) -> None:
        if self._line:
            self._receive_line(bytes(self._line).strip())
            self._line.clear()
        self._log.end()
        self._send.close()
        on_end, self._on_end = self._on_end, _do_nothing
        on_end()


class _MessageWriter:
    """What the session sends with."""

    def __init__(self, transport: StdioTransport) -> None:
        self._transport = transport

    async def send(self, item: SessionMessage, /) -> None:
        self._transport.write(item)

    async def aclose(self) -> None:
        """The program's stdin is closed with the transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _do_nothing() -> None:
    """Stands for a callback that was called already, or is not wanted any more."""
