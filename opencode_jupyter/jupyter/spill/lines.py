"""Which line is where in a file: line ends are counted once, step by step, and remembered."""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_left
from io import FileIO

from .folder import read_at

STEP = 256 * 1024
"""Bytes between two places whose line number is remembered: 40,000 numbers for 10 GB."""
AT_ONCE = 8
"""Steps that are read together."""
REMEMBERED = 16
"""Files whose lines' places are kept."""


class ChangedError(Exception):
    """The file is not what it was when its lines were counted."""


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

    def look(self, size: int) -> bool:
        """Take in the file's size; False if it is too small to be the file that was counted."""
        if size < self.counted:
            return False
        self.ended = size == self.counted
        return True

    def count(self, file: FileIO, deadline: float, until: int | None = None, newlines: int | None = None) -> bool:
        """Count on, at least a little, so that every request gets on.

        Args:
            file: the file.
            deadline: when to stop, by `time.monotonic`.
            until: stop when so many bytes are counted.
            newlines: stop when so many line ends are found.

        Returns:
            Whether what was wanted is reached, or the file's end.
        """
        while not self.ended:
            if until is not None and self.counted >= until:
                return True
            if newlines is not None and self.newlines >= newlines:
                return True
            self._count_more(file)
            if time.monotonic() > deadline:
                break
        return (
            self.ended
            or (until is not None and self.counted >= until)
            or (newlines is not None and self.newlines >= newlines)
        )

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

    def of(self, found: os.stat_result) -> LineIndex:
        """The index of a file; a new one if it was replaced or cut since."""
        key = (found.st_dev, found.st_ino)
        index = self._known.pop(key, None)
        if index is None or not index.look(found.st_size):
            index = LineIndex()
        self._known[key] = index
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return index

    def forget(self, found: os.stat_result) -> None:
        """The file is not what it was."""
        self._known.pop((found.st_dev, found.st_ino), None)
