"""A page of a file's lines, in memory that does not grow with the file.

The file is read in chunks; newlines before and after the page are only counted. A line is kept up to what
can be shown of it, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from io import FileIO

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


def page(file: FileIO, first: int, limit: int, stop: Callable[[], None] | None = None) -> Page:
    """Up to `limit` lines of `file` from line `first` (from 1), and the number of lines in all.

    Args:
        file: unbuffered and at its start.
        first: the number of the first line wanted.
        limit: at most so many lines; fewer when `PAGE_BYTES` are reached.
        stop: called for every chunk; raises to end the reading.
    """
    collector = _Collector(Page(first), limit)
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    before = 0  # newlines passed
    last = b"\n"[0]
    at_start = True
    while size := file.readinto(view):
        if stop is not None:
            stop()
        start = 3 if at_start and buffer.startswith(b"\xef\xbb\xbf") else 0  # a byte order mark is no text
        at_start = False
        newlines = buffer.count(b"\n", 0, size)
        if not collector.done and before + newlines >= first - 1:
            if before < first - 1:
                start = _after_newline(buffer, size, first - 1 - before)
            collector.feed(buffer, start, size)
        before += newlines
        last = buffer[size - 1]
    collector.finish()
    collector.page.total = before + (last != 10)
    return collector.page


def _after_newline(buffer: bytearray, size: int, count: int) -> int:
    """Index after the `count`-th newline, by bisection over counts."""
    low, high = 0, size
    while high - low > 64:
        middle = (low + high) // 2
        inside = buffer.count(b"\n", low, middle)
        if inside >= count:
            high = middle
        else:
            count -= inside
            low = middle
    at = low - 1
    for _ in range(count):
        at = buffer.index(b"\n", at + 1)
    return at + 1


class _Collector:
    """Lines of the page, fed with the file's bytes from the page's first line on."""

    def __init__(self, page: Page, limit: int) -> None:
        self.page = page
        self.limit = limit
        self.done = limit <= 0
        self.kept = bytearray()  # beginning of the line that is not over yet
        self.open = False
        self.bytes = 0

    def feed(self, buffer: bytearray, start: int, end: int) -> None:
        at = start
        while at < end and not self.done:
            newline = buffer.find(b"\n", at, end)
            stop = end if newline < 0 else newline
            if self.open:
                self.kept += buffer[at : min(stop, at + _KEPT - len(self.kept))] if len(self.kept) < _KEPT else b""
                line = self.kept
            else:
                line = buffer[at : min(stop, at + _KEPT)]
            if newline < 0:
                self.kept, self.open = line, True
                return
            # A CR is part of the line end, but only where the line was not cut before it.
            self.add(line)
            self.open = False
            at = newline + 1

    def finish(self) -> None:
        if self.open and not self.done:
            self.add(self.kept)
            self.open = False

    def add(self, line: bytes | bytearray) -> None:
        if line.endswith(b"\r") and len(line) < _KEPT:
            line = line[:-1]
        text, cut = _cut(line.decode("utf-8", "replace"))
        size = len(text.encode("utf-8")) + (1 if self.page.lines else 0)
        if self.bytes + size > PAGE_BYTES:
            self.page.capped = self.done = True
            return
        self.bytes += size
        self.page.lines.append(text)
        self.page.any_cut |= cut
        self.done = len(self.page.lines) >= self.limit


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
