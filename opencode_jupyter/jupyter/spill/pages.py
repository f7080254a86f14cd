"""Pages of a spilled output: rows from a line, from a place, before a place; and how much of it is counted."""

from __future__ import annotations

import base64
import os
import re
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from typing import Any, TypeGuard

from ...core.spill import is_being_written
from .folder import SpillFolder, error_reply, read_at

PAGE_ROWS = 1_000
"""Most rows of one page."""
PAGE_BYTES = 512 * 1024
"""A page ends before it is longer than this."""
PART_BYTES = 1024 * 1024
"""Most bytes of one part of a download."""
SCAN_SECONDS = 0.15
"""Seconds that one request may look for its line; the next one continues there, and others are answered in between."""
NUMBER_SECONDS = 0.03
"""Seconds that a request for a position may count lines, so that its rows have numbers."""

STEP = 256 * 1024
"""Bytes between two positions whose line number is remembered: 40,000 numbers for 10 GB."""
AT_ONCE = 8
"""Steps that are read together."""
REMEMBERED = 16
"""Files whose line positions are kept."""
PIECE = 8 * 1024
"""Bytes of a row of a line that is split; its first row may have up to twice as many."""
LONGEST = 2 * PIECE
"""No row is longer."""
NEAR = 64
"""A split is at most so many bytes before its multiple."""
STYLE_BYTES = 16 * 1024
"""Bytes before a page in which active colours are looked for."""
STYLES = 50
_OPEN_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*)?\Z")
_SGR = re.compile(rb"\x1b\[([0-9;:]*)m")


class SpillPages:
    """Pages of the files in one folder of spilled outputs; of no other file.

    Args:
        folder: the workspace's ``tool-output`` folder.
    """

    def __init__(self, folder: SpillFolder) -> None:
        self._folder = folder
        self._indexes = LineIndexes()

    def page(
        self, path: Any, line: Any = None, count: Any = 400, *, at: Any = None, near: Any = None, before: Any = None
    ) -> dict[str, Any]:
        """Rows of a spilled output, for a viewer. Never raises. There are four ways to state where they begin.

        Args:
            path: The file.
            line: The first line, from 1. Past the end: the last rows.
            count: How many rows; at most `PAGE_ROWS`.
            at: The byte where a row begins.
            near: A byte somewhere in the file; the row that it is in comes first.
            before: The byte where the last row ends. None of the four: the file's last rows.

        Returns:
            ``lines`` (texts with their escapes), ``offsets`` (the byte where each begins), ``end`` (where the last one
            ends), ``inside`` (indexes of rows that go on with the line of the row before), ``first`` (the number of
            the first row's line; None while nobody has counted so far), ``style`` (escapes that set the colours which
            are on where the page begins), ``more`` (whether rows follow), and what `extent` returns.
            Or ``scanned`` (bytes looked through) and ``bytes``: the line is not found yet, ask again.
            Or ``error``, in words for a person.
        """
        most = min(PAGE_ROWS, max(1, count)) if isinstance(count, int) else 400

        def answer(output: _OpenOutput) -> dict[str, Any]:
            if _is_number(line) and line >= 1:
                if not output.count(SCAN_SECONDS, newlines=line - 1):
                    return {"scanned": output.index.counted, "bytes": output.size}
                if output.total is None or line <= output.total:
                    return output.forward(output.index.offset_after(output.file, line - 1), False, most)
            elif _is_number(at) and 0 <= at <= output.size:
                return output.forward(at, inside_line(output.file, at), most)
            elif _is_number(near):
                return output.forward(*row_start(output.file, max(0, min(near, output.size - 1))), most)
            return output.backward(before if _is_number(before) and 0 <= before <= output.size else output.size, most)

        return self._answer(path, answer)

    def extent(self, path: Any, at: Any = None) -> dict[str, Any]:
        """How large a file is and how many lines it has, counting on for a moment. Never raises.

        Args:
            path: The file.
            at: A byte whose line's number is requested.

        Returns:
            ``bytes``, ``counted`` (bytes whose lines are counted), ``newlines`` (in them), ``total`` (lines of the
            file; None while nobody has counted to the end), ``writing`` (whether it is still written), ``file`` (what
            tells it from another one of the same name), ``number`` (the line at `at`; None while it is not known).
            Or ``error``.
        """

        def answer(output: _OpenOutput) -> dict[str, Any]:
            output.count(SCAN_SECONDS)
            return {**output.extent(), "number": output.line_at(at) if _is_number(at) and at >= 0 else None}

        return self._answer(path, answer)

    def part(self, path: Any, offset: Any, count: Any = PART_BYTES) -> dict[str, Any]:
        """Bytes of a file, for a download. Never raises.

        Returns:
            ``data`` (base64), ``end`` (where the next part begins) and ``bytes`` (of the file). Or ``error``.
        """
        start = offset if _is_number(offset) and offset >= 0 else 0
        most = min(PART_BYTES, max(1, count)) if _is_number(count) else PART_BYTES

        def answer(output: _OpenOutput) -> dict[str, Any]:
            at = min(start, output.size)
            data = read_at(output.file, at, most)
            return {"data": base64.b64encode(data).decode(), "end": at + len(data), "bytes": output.size}

        return self._answer(path, answer)

    def _answer(self, path: Any, answer: Callable[[_OpenOutput], dict[str, Any]]) -> dict[str, Any]:
        try:
            with self._folder.open(str(path)) as file:
                status = os.fstat(file.fileno())
                try:
                    return answer(_OpenOutput(file, status, self._indexes.index_of(status)))
                except ChangedError:
                    self._indexes.forget(status)
                    return answer(_OpenOutput(file, status, self._indexes.index_of(status)))
        except ChangedError:
            return {"error": "The file changes while it is read; try again."}
        except (OSError, ValueError) as error:
            return error_reply(error)


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


class _OpenOutput:
    """A file while one request is answered.

    Args:
        file: the file.
        status: its status when it was opened.
        index: its known line positions.
    """

    def __init__(self, file: FileIO, status: os.stat_result, index: LineIndex) -> None:
        self.file = file
        self.index = index
        self.size = status.st_size
        self._id = (status.st_dev, status.st_ino)

    def count(self, seconds: float, *, until: int | None = None, newlines: int | None = None) -> bool:
        """Count lines for a while; see `LineIndex.count`."""
        return self.index.count(self.file, time.monotonic() + seconds, until, newlines)

    @property
    def total(self) -> int | None:
        """The number of lines; None while nobody has counted to the end."""
        return self.index.newlines + inside_line(self.file, self.index.counted) if self.index.ended else None

    def line_at(self, offset: int) -> int | None:
        """The number of the line at a byte; None while it is not known."""
        before = self.index.lines_before(self.file, offset)
        return None if before is None else before + 1

    def extent(self) -> dict[str, Any]:
        """The size and the number of lines, as far as they are known."""
        return {
            "bytes": self.size,
            "counted": self.index.counted,
            "newlines": self.index.newlines,
            "total": self.total,
            "writing": is_being_written(self._id),
            "file": f"{self._id[0]}:{self._id[1]}",
        }

    def forward(self, start: int, inside: bool, most: int) -> dict[str, Any]:
        """The rows from `start` on, where a row begins; `inside` a line that began before."""
        room = PAGE_BYTES + LONGEST
        data = read_at(self.file, start, room)
        rows = rows_of(data, start, inside, last=len(data) < room, most=most)
        while len(rows) > 1 and rows[-1].end - start > PAGE_BYTES:
            rows.pop()
        return self._page(rows, start)

    def backward(self, end: int, most: int) -> dict[str, Any]:
        """The rows before `end`."""
        start, inside = row_start(self.file, max(0, end - PAGE_BYTES)) if end > PAGE_BYTES else (0, False)
        return self._page(last_rows(read_at(self.file, start, end - start), start, inside, most), end)

    def _page(self, rows: list[Row], default: int) -> dict[str, Any]:
        start = rows[0].offset if rows else default
        end = rows[-1].end if rows else default
        self.count(NUMBER_SECONDS, until=end + 1)
        return {
            "first": self.line_at(start),
            "lines": [row.data.decode("utf-8", "replace").removesuffix("\r") for row in rows],
            "offsets": [row.offset for row in rows],
            "inside": [at for at, row in enumerate(rows) if row.inside],
            "end": end,
            "more": end < self.size,
            "style": style_at(self.file, start),
            **self.extent(),
        }


class ChangedError(Exception):
    """The file was replaced since its lines were counted."""


class LineIndex:
    """The lines of one file that only grows.

    Attributes:
        counted: bytes from the start whose line ends are counted.
        newlines: line ends in them.
        ended: whether that was all, as far as is known.
    """

    __slots__ = ("_marks", "counted", "ended", "newlines")

    def __init__(self) -> None:
        self._marks = array("Q", [0])
        """Line ends before each `STEP`."""
        self.counted = 0
        self.newlines = 0
        self.ended = False

    def update_size(self, size: int) -> bool:
        """Update the file's size; False if it is too small to be the file that was counted."""
        if size < self.counted:
            return False
        self.ended = size == self.counted
        return True

    def count(self, file: FileIO, deadline: float, until: int | None = None, newlines: int | None = None) -> bool:
        """Count on, at least a little, so that every request makes progress.

        Args:
            file: the file.
            deadline: when to stop, by `time.monotonic`.
            until: stop when so many bytes are counted.
            newlines: stop when so many line ends are found.

        Returns:
            Whether the requested position is reached, or the file's end.
        """
        started = False
        while not (
            self.ended
            or (until is not None and self.counted >= until)
            or (newlines is not None and self.newlines >= newlines)
        ):
            if started and time.monotonic() > deadline:
                return False
            started = True
            self._count_more(file)
        return True

    def _count_more(self, file: FileIO) -> None:
        start = self.counted
        room = STEP - start % STEP + (AT_ONCE - 1) * STEP
        data = read_at(file, start, room)
        at = 0
        while at < len(data):
            end = min(len(data), at + STEP - (start + at) % STEP)
            self.newlines += data.count(b"\n", at, end)
            if (start + end) % STEP == 0:
                self._marks.append(self.newlines)
            at = end
        self.counted = start + len(data)
        self.ended = len(data) < room

    def lines_before(self, file: FileIO, offset: int) -> int | None:
        """Line ends before the byte `offset`; None while that is not counted."""
        if offset > self.counted:
            return None
        if offset == self.counted:
            return self.newlines
        step = offset // STEP
        return self._marks[step] + read_at(file, step * STEP, offset - step * STEP).count(b"\n")

    def offset_after(self, file: FileIO, newlines: int) -> int:
        """Where the line after so many line ends begins; so many must be counted.

        Raises:
            ChangedError: they are not where they were.
        """
        if newlines <= 0:
            return 0
        step = bisect_left(self._marks, newlines) - 1
        data = read_at(file, step * STEP, STEP)
        at = -1
        for _ in range(newlines - self._marks[step]):
            at = data.find(b"\n", at + 1)
            if at < 0:
                raise ChangedError
        return step * STEP + at + 1


class LineIndexes:
    """The indexes of the files that were looked at last."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], LineIndex] = {}

    def index_of(self, status: os.stat_result) -> LineIndex:
        """The index of a file; a new one if it was replaced or cut since."""
        key = (status.st_dev, status.st_ino)
        index = self._known.pop(key, None)
        if index is None or not index.update_size(status.st_size):
            index = LineIndex()
        self._known[key] = index
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return index

    def forget(self, status: os.stat_result) -> None:
        """Forget a file that was replaced."""
        self._known.pop((status.st_dev, status.st_ino), None)


@dataclass(slots=True)
class Row:
    """One row: its bytes without the line end, and where they are."""

    data: bytes
    offset: int
    inside: bool
    """Whether it continues the line of the row before."""
    end: int
    """Where the next row begins."""


def rows_of(data: bytes, start: int, inside: bool, *, last: bool, most: int | None = None) -> list[Row]:
    """`data`, which begins at the byte `start` of the file where a row begins, as rows.

    Args:
        data: the bytes.
        start: where they are in the file.
        inside: whether a line continues there.
        last: whether the last row is whole: nothing follows, or a row begins where `data` ends. Else it is left out.
        most: at most so many rows, the first ones.
    """
    rows: list[Row] = []
    at = 0
    while at < len(data) and (most is None or len(rows) < most):
        bound = _bound(start + at, inside) - start
        newline = data.find(b"\n", at, bound)
        if newline >= 0:
            rows.append(Row(data[at:newline], start + at, inside, start + newline + 1))
            at, inside = newline + 1, False
        elif bound < len(data):
            end = _cut_position(data, at, bound)
            rows.append(Row(data[at:end], start + at, inside, start + end))
            at, inside = end, True
        else:
            if last:
                rows.append(Row(data[at:], start + at, inside, start + len(data)))
            break
    return rows


def last_rows(data: bytes, start: int, inside: bool, most: int) -> list[Row]:
    """The last rows of `data`, at most `most`; see `rows_of`. A row begins where `data` ends."""
    at = len(data)
    for _ in range(most + 1):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return rows_of(data, start, inside, last=True)[-most:]
    return rows_of(data[at + 1 :], start + at + 1, False, last=True)[-most:]


def row_start(file: FileIO, offset: int) -> tuple[int, bool]:
    """Where the row begins that the byte `offset` is in, and whether that is inside a line."""
    back = max(0, offset - 2 * LONGEST)
    data = read_at(file, back, offset - back)
    newline = data.rfind(b"\n")
    if newline >= 0 or back == 0:
        start, inside = back + newline + 1, False
    else:
        # the line began so far back that every multiple here splits it
        start, inside = _multiple(file, offset - LONGEST), True
    around = read_at(file, start, offset + LONGEST - start)
    for row in rows_of(around, start, inside, last=True):
        if row.offset <= offset < row.end:
            return row.offset, row.inside
    return offset, offset > 0 and read_at(file, offset - 1, 1) != b"\n"


def inside_line(file: FileIO, offset: int) -> bool:
    """Whether a line continues at `offset`."""
    return offset > 0 and read_at(file, offset - 1, 1) != b"\n"


def style_at(file: FileIO, offset: int) -> str:
    """The colours that are on at `offset`, as the escape sequences that set them."""
    back = max(0, offset - STYLE_BYTES)
    matches = list(_SGR.finditer(read_at(file, back, offset - back)))
    resets = [i for i, match in enumerate(matches) if re.match(rb"0*(?:;|\Z)", match[1])]
    active = matches[resets[-1] :] if resets else matches
    text = b"".join(match[0] for match in active[-STYLES:]).decode("ascii")
    return "" if text in ("\x1b[0m", "\x1b[m") else text


def _bound(offset: int, inside: bool) -> int:
    """Where a row that begins at `offset` ends, if no line end comes before."""
    if inside:
        return ((offset + NEAR) // PIECE + 1) * PIECE  # a row may begin a little before its multiple
    return -(-(offset + PIECE) // PIECE) * PIECE


def _multiple(file: FileIO, offset: int) -> int:
    """The split at the last multiple of `PIECE` before `offset`, in a line that began long before."""
    bound = offset // PIECE * PIECE
    back = max(0, bound - NEAR)
    return back + _cut_position(read_at(file, back, bound - back + 4), 0, bound - back)


def _cut_position(data: bytes, at: int, bound: int) -> int:
    """`bound`, or a little before it, so that no character and no escape sequence is cut in two."""
    end = bound
    while end > at and end > bound - 3 and end < len(data) and 0x80 <= data[end] < 0xC0:
        end -= 1
    escape = _OPEN_ESCAPE.search(data, max(at, end - 32), end)
    if escape is not None:
        end = escape.start()
    return end if end > at else bound
