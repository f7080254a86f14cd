"""Standard input and output for the protocol alone.

The process's own descriptors 0 and 1 are pointed elsewhere first: what a tool, a library or a child prints goes to
standard error, and nobody else reads what the client wrote. Reading and writing happen on daemon threads, so a client
that writes or reads nothing any more can't keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import Self

log = logging.getLogger(__name__)

CHUNK = 1 << 16
LONGEST = 64 * 1024 * 1024
"""Bytes of the longest message taken; a longer one is dropped."""
AHEAD = 256
"""Messages read ahead of the server."""


def claim() -> tuple[int, int]:
    """Take standard input and output away from everybody else.

    Returns:
        Private descriptors for what the client writes and what it reads.
    """
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reading, writing


class Lines:
    """The client's messages, one line each; iterate over it on the loop it was made on. Ends at the input's end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(AHEAD)
        threading.Thread(target=self._read, name="mcp-stdin", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        self._room.release()
        return line

    def _read(self) -> None:
        parts: list[bytes] = []
        size = 0
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            while chunk := self._chunk():
                *whole, rest = chunk.split(b"\n")
                for line in whole:
                    if size + len(line) > LONGEST:
                        log.warning("a message of more than %d bytes was dropped", LONGEST)
                    else:
                        self._put(b"".join((*parts, line)))
                    parts, size = [], 0
                size += len(rest)
                if size <= LONGEST:
                    parts.append(rest)
                else:
                    parts.clear()
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._descriptor, CHUNK)
        except OSError:
            return b""

    def _put(self, line: bytes) -> None:
        if not line.strip():
            return
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line.decode("utf-8", "replace"))


class Out:
    """Where answers go. What can't be written, since the client is gone, is dropped and `gone` is called once."""

    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._gone = gone
        self._texts: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="mcp-stdout", daemon=True).start()

    async def write(self, text: str) -> None:
        """Write it, and return when the client's pipe took it."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._texts.put((text.encode("utf-8", "replace"), done))
        await done

    async def flush(self) -> None:
        """Nothing is held back."""

    def _write(self) -> None:
        open_ = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            while True:
                data, done = self._texts.get()
                if open_ and not self._all(data):
                    open_ = False
                    self._loop.call_soon_threadsafe(self._gone)
                self._loop.call_soon_threadsafe(_finish, done)

    def _all(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except OSError:
                return False
        return True


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
