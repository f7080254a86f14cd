"""A file's bytes as rows to draw: a line is one row, a very long one several.

The end of a row can be told from the few bytes around it, wherever in the file one begins to read: a line is split
only where its start is more than `PIECE` bytes back, at multiples of `PIECE` counted from the file's start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import FileIO

from .folder import read_at

PIECE = 8 * 1024
"""Bytes of a row of a line that is split; its first row may have up to twice as many."""
LONGEST = 2 * PIECE
"""No row is longer."""
NEAR = 64
"""A split is at most so many bytes before its multiple."""
STYLE_BYTES = 16 * 1024
"""How far back a colour that is still on is looked for."""
STYLES = 50

_OPEN_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*)?\Z")
_SGR = re.compile(rb"\x1b\[([0-9;:]*)m")


@dataclass(slots=True)
class Row:
    """One row: its bytes without the line end, and where they are."""

    data: bytes
    offset: int
    inside: bool
    """Whether it goes on with the line of the row before."""
    end: int
    """Where the next row begins."""


def rows_of(data: bytes, start: int, inside: bool, *, last: bool, most: int | None = None) -> list[Row]:
    """`data`, which begins at the byte `start` of the file where a row begins, as rows.

    Args:
        data: the bytes.
        start: where they are in the file.
        inside: whether a line goes on there.
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
            end = _whole(data, at, bound)
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
    """Whether a line goes on at `offset`."""
    return offset > 0 and read_at(file, offset - 1, 1) != b"\n"


def style_at(file: FileIO, offset: int) -> str:
    """The colours that are on at `offset`, as the escape sequences that set them."""
    back = max(0, offset - STYLE_BYTES)
    found = list(_SGR.finditer(read_at(file, back, offset - back)))
    resets = [i for i, match in enumerate(found) if re.match(rb"0*(?:;|\Z)", match[1])]
    kept = found[resets[-1] :] if resets else found
    text = b"".join(match[0] for match in kept[-STYLES:]).decode("ascii")
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
    return back + _whole(read_at(file, back, bound - back + 4), 0, bound - back)


def _whole(data: bytes, at: int, bound: int) -> int:
    """`bound`, or a little before it, so that no character and no escape sequence is cut in two."""
    end = bound
    while end > at and end > bound - 3 and end < len(data) and 0x80 <= data[end] < 0xC0:
        end -= 1
    escape = _OPEN_ESCAPE.search(data, max(at, end - 32), end)
    if escape is not None:
        end = escape.start()
    return end if end > at else bound
