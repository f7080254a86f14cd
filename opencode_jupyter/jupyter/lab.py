"""What the JupyterLab extension asks the kernel for: pages of a spilled output, whatever its size and wherever it is.

A request is answered on the control channel's thread, while a cell may be busy; so each takes a bounded time and
memory. What it takes long to find is found in several requests: the places of lines are remembered between them.
"""

from __future__ import annotations

import os
import stat
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

from ..core.truncation import RETENTION_DAYS
from .mime import readable

STEP = 256 * 1024
"""Bytes between two places whose line number is remembered: 40,000 numbers for 10 GB."""
PAGE_LINES = 1_000
"""Most lines of one page."""
PAGE_BYTES = 512 * 1024
"""A page ends before it is longer than this."""
LINE_BYTES = 8 * 1024
"""Bytes shown of one line."""
SCAN_SECONDS = 0.25
"""How long one request may look for its line; the next one goes on from there."""
REMEMBERED = 16
"""Files whose lines' places are kept."""


@dataclass(slots=True)
class _Index:
    """Line ends before each `STEP` of a file that only grows."""

    file: tuple[int, int]
    counts: list[int] = field(default_factory=lambda: [0])
    ended: int = -1
    """Size up to which every line end is counted; -1: not to the end yet."""
    total: int = 0
    """Line ends up to there."""


class SpillPages:
    """Pages of the files in one folder of spilled outputs; of no other file.

    Args:
        directory: The workspace's ``tool-output`` folder.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self._known: dict[str, _Index] = {}

    def page(self, path: Any, line: Any = 1, count: Any = 400) -> dict[str, Any]:
        """Lines of a spilled output, for a viewer. Never raises.

        Args:
            path: The file.
            line: The first line wanted, from 1. Past the end, or below 1: the last page.
            count: How many lines; at most `PAGE_LINES`.

        Returns:
            ``first`` (the number of the first line), ``lines`` (without ANSI escapes; long ones cut), ``bytes`` (of
            the file), ``total`` (lines of the file; None while nobody has counted to the end), ``more`` (whether
            lines follow). Or ``scanned`` (bytes looked through) and ``bytes``: the line is not found yet, ask again.
            Or ``error``, in words for a person.
        """
        number = line if isinstance(line, int) else 1
        wanted = min(PAGE_LINES, max(1, count)) if isinstance(count, int) else 400
        try:
            with BufferedReader(self._open(str(path)), STEP) as file:
                return self._page(file, number, wanted)
        except FileNotFoundError:
            days = f"{RETENTION_DAYS:g}"
            return {"error": f"The file is not there any more: whole outputs are kept for {days} days."}
        except (OSError, ValueError) as error:
            return {"error": f"The file can't be read: {error}"}

    def _open(self, path: str) -> FileIO:
        folder, name = os.path.split(os.path.abspath(path))
        if os.path.realpath(folder) != os.path.realpath(self.directory):
            raise ValueError(f"only whole outputs in {self.directory} are shown here")
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(os.path.join(folder, name), flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ValueError("it is not a regular file")
        return FileIO(descriptor)

    def _page(self, file: BufferedReader[FileIO], line: int, count: int) -> dict[str, Any]:
        deadline = time.monotonic() + SCAN_SECONDS
        found = os.fstat(file.fileno())
        index = self._index((found.st_dev, found.st_ino), found.st_size)
        target = line - 1 if line >= 1 else None
        while index.ended < 0 and (target is None or index.counts[-1] < target):
            self._count(file, index)  # at least once, so that every request gets on
            if index.ended < 0 and time.monotonic() > deadline:
                return {"scanned": (len(index.counts) - 1) * STEP, "bytes": found.st_size}
        total = None
        if index.ended >= 0:
            total = index.total + (index.ended > 0 and not self._ends_line(file, index.ended))
            if target is None or target >= total:
                target = max(0, total - count)
        first = target or 0
        file.seek(self._offset(file, index, first))
        lines, more = self._lines(file, count, deadline)
        return {"first": first + 1, "lines": lines, "bytes": found.st_size, "total": total, "more": more}

    def _index(self, identity: tuple[int, int], size: int) -> _Index:
        key = f"{identity[0]}:{identity[1]}"
        index = self._known.pop(key, None)
        if index is None or (len(index.counts) - 1) * STEP > size or index.ended > size:
            index = _Index(identity)
        elif index.ended != size:
            index.ended = -1  # it has grown
        self._known[key] = index
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return index

    @staticmethod
    def _count(file: BufferedReader[FileIO], index: _Index) -> None:
        """Count the line ends of one more step."""
        start = (len(index.counts) - 1) * STEP
        file.seek(start)
        chunk = file.read(STEP)
        newlines = index.counts[-1] + chunk.count(b"\n")
        if len(chunk) == STEP:
            index.counts.append(newlines)
        else:
            index.ended, index.total = start + len(chunk), newlines

    @staticmethod
    def _ends_line(file: BufferedReader[FileIO], size: int) -> bool:
        file.seek(size - 1)
        return file.read(1) == b"\n"

    @staticmethod
    def _offset(file: BufferedReader[FileIO], index: _Index, newlines: int) -> int:
        """Where the line after so many line ends begins."""
        if newlines <= 0:
            return 0
        step = bisect_left(index.counts, newlines) - 1
        file.seek(step * STEP)
        chunk = file.read(STEP)
        at = -1
        for _ in range(newlines - index.counts[step]):
            at = chunk.index(b"\n", at + 1)
        return step * STEP + at + 1

    @staticmethod
    def _lines(file: BufferedReader[FileIO], count: int, deadline: float) -> tuple[list[str], bool]:
        lines: list[str] = []
        room = PAGE_BYTES
        while len(lines) < count and room > 0:
            kept = file.readline(LINE_BYTES)
            if not kept:
                return lines, False
            over = 0
            piece = kept
            while not piece.endswith(b"\n"):
                piece = file.readline(STEP)
                if not piece:
                    break
                over += len(piece)
                if time.monotonic() > deadline:
                    break
            ended = piece.endswith(b"\n")
            room -= len(kept)
            text = readable(kept.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r"))
            if over - ended > 0:
                known = "" if ended or not piece else "more than "
                text += f" … ({known}{over - (ended and bool(over)):,} more bytes in this line)"
            lines.append(text)
            if not ended and piece:
                return lines, True  # a line so long that its end was not reached in time
        return lines, bool(file.peek(1))
