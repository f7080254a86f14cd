"""A page of a file's lines, in memory that does not grow with the file.

The file is read in chunks; newlines before and after the page are only counted. A line is kept up to what
can be shown of it, however long it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BufferedReader, FileIO

from .encoding import BOM

CHUNK = 1 << 18
"""Bytes read at a time: what fits the processor's cache is counted fastest."""
SAMPLE = 4096
"""Bytes that decide whether a file is binary (OpenCode's number, as are the next two)."""
CONTROL_SHARE = 0.3
LINE_LIMIT = 2000
"""UTF-16 units of a line that are shown."""
PAGE_BYTES = 51_200

_KEPT = LINE_LIMIT * 4 + 8
"""Bytes of a line that hold `LINE_LIMIT` units in any case, and a few more, so that a longer one is known."""
_CONTROL = bytes(range(1, 9)) + bytes(range(14, 32))


@dataclass(slots=True)
class Page:
    """Lines of a file and where they stand in it."""

    first: int
    """Number of the first line asked for, from 1."""
    lines: list[str] = field(default_factory=list)
    """As shown: without line ends, long ones cut."""
    total: int = 0
    """Lines in the whole file; a final newline ends the last line and begins none."""
    capped: bool = False
    """Ended by `PAGE_BYTES`, not by the number of lines."""
    any_cut: bool = False
    """True if a line was longer than `LINE_LIMIT`."""

    @property
    def last(self) -> int:
        """Number of the last line in the page; one less than `first` if it is empty."""
        return self.first + len(self.lines) - 1

    @property
    def more(self) -> bool:
        """True if lines follow."""
        return self.capped or self.last < self.total


def is_binary(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` is binary: a NUL, or more than 30 % control characters."""
    if not sample:
        return False
    if b"\0" in sample:
        return True
    control = len(sample) - len(sample.translate(None, _CONTROL))
    return control / len(sample) > CONTROL_SHARE


def page(file: FileIO, first: int, limit: int, stop: Callable[[], None] = lambda: None) -> Page:
    """Up to `limit` lines of `file` from line `first` (from 1), and the number of lines in all.

    Args:
        file: unbuffered and at its start.
        first: the number of the first line wanted.
        limit: at most so many lines; fewer when `PAGE_BYTES` are reached.
        stop: called for every chunk; raises to end the reading.
    """
    page = Page(first)
    if file.read(len(BOM)) != BOM:  # a byte order mark is no text
        file.seek(0)
    buffer = bytearray(CHUNK)
    before = _skip_lines(file, first - 1, buffer, stop)
    reader = BufferedReader(file, CHUNK)
    try:
        room = PAGE_BYTES
        while len(page.lines) < limit and (line := reader.readline(_KEPT)):
            end = line
            while len(end) >= _KEPT and not end.endswith(b"\n"):  # the rest of a long line is passed over
                stop()
                end = reader.readline(CHUNK)
            before += end.endswith(b"\n")
            text, cut = _cut(_without_end(line).decode("utf-8", "replace"))
            room -= len(text.encode("utf-8")) + (1 if page.lines else 0)
            if room < 0:
                page.capped = True
                break
            page.lines.append(text)
            page.any_cut |= cut
        while size := reader.readinto(buffer):
            stop()
            before += buffer.count(b"\n", 0, size)
    finally:
        reader.detach()
    page.total = before + (not _ends_with_newline(file))
    return page


def _ends_with_newline(file: FileIO) -> bool:
    """Return whether nothing follows the last newline; so for an empty file."""
    if not file.seek(0, os.SEEK_END):
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _skip_lines(file: FileIO, count: int, buffer: bytearray, stop: Callable[[], None]) -> int:
    """Move past `count` lines; gives how many newlines were passed, fewer where the file ends before."""
    passed = 0
    while passed < count and (size := file.readinto(buffer)):
        stop()
        inside = buffer.count(b"\n", 0, size)
        if passed + inside < count:
            passed += inside
            continue
        at = 0
        for _ in range(count - passed):
            at = buffer.index(b"\n", at) + 1
        file.seek(at - size, os.SEEK_CUR)
        return count
    return passed


def _without_end(line: bytes) -> bytes:
    """A line without its newline; a CR before it is a part of the line end, but only where the line was not cut."""
    if line.endswith(b"\n"):
        return line[:-2] if line.endswith(b"\r\n") else line[:-1]
    return line[:-1] if line.endswith(b"\r") and len(line) < _KEPT else line


def _cut(text: str) -> tuple[str, bool]:
    """`text` cut to `LINE_LIMIT` UTF-16 units, never in the middle of a character."""
    if len(text) * 2 > LINE_LIMIT and _units(text) > LINE_LIMIT:
        beginning = text[:LINE_LIMIT]
        if not beginning.isascii():
            beginning = beginning.encode("utf-16-le")[: LINE_LIMIT * 2].decode("utf-16-le", "ignore")
        return f"{beginning}... (line truncated to {LINE_LIMIT} chars)", True
    return text, False


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
