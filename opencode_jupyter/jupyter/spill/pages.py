"""Pages of a spilled output: rows from a line, from a place, before a place; and how much of it is counted."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from io import FileIO
from typing import Any, TypeGuard

from ...core.spill import being_written
from .folder import SpillFolder, read_at, trouble
from .lines import ChangedError, LineIndex, LineIndexes
from .rows import LONGEST, Row, inside_line, last_rows, row_start, rows_of, style_at

PAGE_ROWS = 1_000
"""Most rows of one page."""
PAGE_BYTES = 512 * 1024
"""A page ends before it is longer than this."""
PART_BYTES = 1024 * 1024
"""Most bytes of one part of a download."""
SCAN_SECONDS = 0.15
"""How long one request may look for its line; the next one goes on from there. An ask is answered in between."""
NUMBER_SECONDS = 0.03
"""How long a request for a place may count lines, so that its rows have numbers."""

Answer = Callable[[FileIO, os.stat_result, LineIndex], dict[str, Any]]


class SpillPages:
    """Pages of the files in one folder of spilled outputs; of no other file.

    Args:
        folder: the workspace's ``tool-output`` folder.
    """

    def __init__(self, folder: SpillFolder | str | os.PathLike[str]) -> None:
        self._folder = folder if isinstance(folder, SpillFolder) else SpillFolder(folder)
        self._indexes = LineIndexes()

    def page(
        self, path: Any, line: Any = None, count: Any = 400, *, at: Any = None, near: Any = None, before: Any = None
    ) -> dict[str, Any]:
        """Rows of a spilled output, for a viewer. Never raises. Where to begin is said in one of four ways.

        Args:
            path: The file.
            line: The first line wanted, from 1. Past the end: the last rows.
            count: How many rows; at most `PAGE_ROWS`.
            at: The byte where a row begins.
            near: A byte somewhere in the file; the row that it is in comes first.
            before: The byte where the last row ends. None of the four: the file's last rows.

        Returns:
            ``lines`` (texts with their escapes), ``offsets`` (the byte where each begins), ``end`` (where the last one
            ends), ``inside`` (indexes of rows that go on with the line of the row before), ``first`` (the number of
            the first row's line; None while nobody has counted so far), ``style`` (escapes that set the colours which
            are on where the page begins), ``more`` (whether rows follow), and what `extent` says.
            Or ``scanned`` (bytes looked through) and ``bytes``: the line is not found yet, ask again.
            Or ``error``, in words for a person.
        """
        wanted = min(PAGE_ROWS, max(1, count)) if isinstance(count, int) else 400

        def answer(file: FileIO, found: os.stat_result, index: LineIndex) -> dict[str, Any]:
            size = found.st_size
            if _number(line) and line >= 1:
                deadline = time.monotonic() + SCAN_SECONDS
                if not index.count(file, deadline, newlines=line - 1):
                    return {"scanned": index.counted, "bytes": size}
                total = _total(file, index)
                if total is None or line <= total:
                    return self._forward(file, found, index, index.offset_after(file, line - 1), False, wanted)
            elif _number(at) and 0 <= at <= size:
                return self._forward(file, found, index, at, inside_line(file, at), wanted)
            elif _number(near):
                start, inside = row_start(file, max(0, min(near, size - 1)))
                return self._forward(file, found, index, start, inside, wanted)
            end = before if _number(before) and 0 <= before <= size else size
            return self._backward(file, found, index, end, wanted)

        return self._answer(path, answer)

    def extent(self, path: Any, at: Any = None) -> dict[str, Any]:
        """How large a file is and how many lines it has, counting on for a moment. Never raises.

        Args:
            path: The file.
            at: A byte whose line's number is wanted.

        Returns:
            ``bytes``, ``counted`` (bytes whose lines are counted), ``newlines`` (in them), ``total`` (lines of the
            file; None while nobody has counted to the end), ``writing`` (whether it is still written), ``file`` (what
            tells it from another one of the same name), ``number`` (the line at `at`; None while it is not known).
            Or ``error``.
        """

        def answer(file: FileIO, found: os.stat_result, index: LineIndex) -> dict[str, Any]:
            index.count(file, time.monotonic() + SCAN_SECONDS)
            number = index.lines_before(file, at) if _number(at) and at >= 0 else None
            return {**_extent(file, found, index), "number": None if number is None else number + 1}

        return self._answer(path, answer)

    def part(self, path: Any, offset: Any, count: Any = PART_BYTES) -> dict[str, Any]:
        """Bytes of a file, for a download. Never raises.

        Returns:
            ``data`` (base64), ``end`` (where the next part begins) and ``bytes`` (of the file). Or ``error``.
        """
        start = offset if _number(offset) and offset >= 0 else 0
        wanted = min(PART_BYTES, max(1, count)) if _number(count) else PART_BYTES

        def answer(file: FileIO, found: os.stat_result, index: LineIndex) -> dict[str, Any]:
            at = min(start, found.st_size)
            data = read_at(file, at, wanted)
            return {"data": base64.b64encode(data).decode(), "end": at + len(data), "bytes": found.st_size}

        return self._answer(path, answer)

    def _answer(self, path: Any, answer: Answer) -> dict[str, Any]:
        try:
            with self._folder.open(str(path)) as file:
                found = os.fstat(file.fileno())
                try:
                    return answer(file, found, self._indexes.of(found))
                except ChangedError:
                    self._indexes.forget(found)
                    return answer(file, found, self._indexes.of(found))
        except ChangedError:
            return {"error": "The file changes while it is read; try again."}
        except (OSError, ValueError) as error:
            return trouble(error)

    def _forward(
        self, file: FileIO, found: os.stat_result, index: LineIndex, start: int, inside: bool, count: int
    ) -> dict[str, Any]:
        room = PAGE_BYTES + LONGEST
        data = read_at(file, start, room)
        rows = rows_of(data, start, inside, last=len(data) < room, most=count)
        while len(rows) > 1 and rows[-1].end - start > PAGE_BYTES:
            rows.pop()
        return self._reply(file, found, index, rows, start)

    def _backward(self, file: FileIO, found: os.stat_result, index: LineIndex, end: int, count: int) -> dict[str, Any]:
        start, inside = row_start(file, max(0, end - PAGE_BYTES)) if end > PAGE_BYTES else (0, False)
        rows = last_rows(read_at(file, start, end - start), start, inside, count)
        return self._reply(file, found, index, rows, end)

    def _reply(
        self, file: FileIO, found: os.stat_result, index: LineIndex, rows: list[Row], place: int
    ) -> dict[str, Any]:
        start = rows[0].offset if rows else place
        end = rows[-1].end if rows else place
        index.count(file, time.monotonic() + NUMBER_SECONDS, until=end + 1)
        number = index.lines_before(file, start)
        return {
            "first": None if number is None else number + 1,
            "lines": [row.data.decode("utf-8", "replace").removesuffix("\r") for row in rows],
            "offsets": [row.offset for row in rows],
            "inside": [at for at, row in enumerate(rows) if row.inside],
            "end": end,
            "more": end < found.st_size,
            "style": style_at(file, start),
            **_extent(file, found, index),
        }


def _number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _total(file: FileIO, index: LineIndex) -> int | None:
    if not index.ended:
        return None
    return index.newlines + inside_line(file, index.counted)


def _extent(file: FileIO, found: os.stat_result, index: LineIndex) -> dict[str, Any]:
    return {
        "bytes": found.st_size,
        "counted": index.counted,
        "newlines": index.newlines,
        "total": _total(file, index),
        "writing": being_written((found.st_dev, found.st_ino)),
        "file": f"{found.st_dev}:{found.st_ino}",
    }
