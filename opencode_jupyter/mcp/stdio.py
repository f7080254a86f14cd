"""A local server's stdin and stdout as an MCP transport: one JSON-RPC message a line, in a supervised process.

The SDK's own transport joins what comes chunk by chunk (20 MB take 10 s), knows no limit, and starts a process that
outlives a killed kernel. Here a line is joined once, one that is too long fails its own request, and the program ends
with the workspace (`tools.process`).
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from ..tools.process import converse

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from ..runtime.sandbox import SandboxPolicy
    from ..tools.process import Stdio
    from .connection import Log

MAX_MESSAGE = 16_000_000
"""Bytes of one message."""
TOO_LARGE = -32010
"""Code of the error that takes the place of a message that is too long."""
GRACE = 0.5
"""Seconds a server has to end by itself once its stdin is closed."""
EXIT = 0.3
"""Seconds between the end of a program's output and its exit."""
BACKLOG = 2000
"""Messages that may wait to be handled; past that, those that answer nothing are dropped."""


class Wire:
    """The transport of one connection, to be entered once.

    Args:
        argv: the program's absolute path and its arguments.
        cwd: where it runs.
        env: its whole environment.
        log: takes its stderr, and what it prints that is no message.
        on_end: called once when it says nothing more.
        max_message: bytes of one message.
        sandbox: what it may do; everything if left out.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        log: Log,
        on_end: Callable[[], None],
        max_message: int = MAX_MESSAGE,
        sandbox: SandboxPolicy | None = None,
    ) -> None:
        self._argv = argv
        self._cwd = cwd
        self._env = env
        self._log = log
        self._on_end = on_end
        self._limit = max_message
        self._sandbox = sandbox
        self._lines = Lines(max_message)
        self._waiting: set[int] = set()
        self._dropped = 0
        self.program: Stdio | None = None
        self._send: MemoryObjectSendStream[SessionMessage | Exception]
        self._receive: MemoryObjectReceiveStream[SessionMessage | Exception]

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _Writer]:
        self.program = await converse(self._argv, cwd=self._cwd, env=self._env, sandbox=self._sandbox)
        self._send, self._receive = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        self.program.hear_errors(self._log.feed)
        self.program.listen(self._fed, self._ended)
        return self._receive, _Writer(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        program = self.program
        if program is None:
            return
        self._on_end = _nothing
        with anyio.CancelScope(shield=True):
            program.hang_up()
            await asyncio.wait([asyncio.ensure_future(program.wait())], timeout=GRACE)
            await program.stop()
        self._log.end()
        self._send.close()
        self._receive.close()

    async def exit(self) -> str:
        """How the program ended, in words; waits a moment for its exit."""
        if self.program is None:
            return "it was not started"
        done, _ = await asyncio.wait([asyncio.ensure_future(self.program.wait())], timeout=EXIT)
        if not done:
            return "it closed its output"
        ended = done.pop().result()
        return f"signal {ended.signal}" if ended.signal else f"exit code {ended.code}"

    # ------------------------------------------------------------------ to the server

    def write(self, item: SessionMessage) -> None:
        """Send a message.

        Raises:
            anyio.BrokenResourceError: the server no longer reads.
        """
        message = item.message
        if isinstance(message, JSONRPCRequest) and isinstance(message.id, int):
            self._waiting.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._waiting.discard((message.params or {}).get("requestId", -1))
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        try:
            if self.program is None:
                raise BrokenPipeError
            self.program.write(data)
        except (OSError, BufferError) as error:
            self._log.add(f"could not be sent a message: {error}", "client")
            raise anyio.BrokenResourceError from error

    # ------------------------------------------------------------------ from the server

    def _fed(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._line(line)

    def _line(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            self._too_long(line)
        else:
            self._message(line.strip())

    def _message(self, line: bytes) -> None:
        if not line:
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._log.add(line[:200].decode("utf-8", "replace"), "stdout")
            return
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._waiting.discard(message.id if isinstance(message.id, int) else -1)
        elif self._receive.statistics().current_buffer_used >= BACKLOG:
            self._dropped += 1
            if self._dropped in (1, 10, 100) or self._dropped % 1000 == 0:
                self._log.add(f"sends faster than its messages can be handled: {self._dropped} were dropped", "client")
            return
        self._put(message)

    def _too_long(self, line: TooLong) -> None:
        """Fail the request that a message of too many bytes answers; the connection goes on."""
        number = line.id
        if number is None and len(self._waiting) == 1:
            number = next(iter(self._waiting))
        words = f"a message of {line.size / 1e6:.0f} MB, more than the limit of {self._limit / 1e6:.0f} MB"
        self._log.add(f"sent {words}", "client")
        if number in self._waiting:
            self._waiting.discard(number)
            error = ErrorData(code=TOO_LARGE, message=f"the server sent {words}; ask for less at a time")
            self._put(JSONRPCError(jsonrpc="2.0", id=number, error=error))

    def _put(self, message: Any) -> None:
        try:
            self._send.send_nowait(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the session is over

    def _ended(self) -> None:
        rest = self._lines.rest()
        if rest is not None:
            self._line(rest)
        self._log.end()
        self._send.close()
        told, self._on_end = self._on_end, _nothing
        told()


class _Writer:
    """What the session sends with."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def send(self, item: SessionMessage, /) -> None:
        self._wire.write(item)

    async def aclose(self) -> None:
        """The program's stdin is closed with the transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _nothing() -> None:
    """Nobody wants to be told."""


EDGE = 4096
"""Bytes kept of either end of a line that is too long."""
_HEAD = re.compile(rb'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,(?!\s*"method")')
_TAIL = re.compile(rb'[,{]\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line of more bytes than the limit.

    Attributes:
        size: its bytes.
        head: its first bytes.
        tail: its last bytes.
    """

    size: int
    head: bytes
    tail: bytes

    @property
    def id(self) -> int | None:
        """The number of the request that the line answers, where it stands first or last in it."""
        found = _HEAD.search(self.head) or _TAIL.search(self.tail)
        return int(found[1]) if found else None


class Lines:
    """What came, cut at line feeds.

    Args:
        limit: bytes of one line.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """Take in a chunk of any size; gives the lines that are now whole."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end])
            yield self._taken()
            start = end + 1
        if start < len(data):
            self._add(data[start:])

    def rest(self) -> bytes | TooLong | None:
        """The last line, if it was not ended; None if there is none."""
        return self._taken() if self._size else None

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._parts.append(piece)
            return
        whole = b"".join(self._parts)
        self._parts = []
        if len(self._head) < EDGE:
            self._head = (self._head + whole + piece[:EDGE])[:EDGE]
        self._tail = (self._tail + whole[-EDGE:] + piece[-EDGE:])[-EDGE:]

    def _taken(self) -> bytes | TooLong:
        too_long = self._size > self._limit
        line = TooLong(self._size, self._head, self._tail) if too_long else b"".join(self._parts)
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        return line
