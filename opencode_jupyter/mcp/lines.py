"""Cutting a stream into lines, each joined once, with a limit; of a line that is too long only its edges are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
