"""Server-sent events out of a body that comes in arbitrary pieces."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator

LONGEST = 256 * 1024 * 1024
"""Bytes that one line may have; a server that never ends its line must not fill the memory."""


END = re.compile(rb"\r\n|\n|\r(?=[^\n])")
"""The end of a line. Behind a CR at the very end of what has come a LF may follow yet."""


class LineTooLongError(Exception):
    """A line went past `LONGEST`."""


async def events(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The data of each event, in order.

    Comments, ids and names of events are left out (the providers repeat an event's name inside its data). Lines may
    end with LF, CR LF or CR. A line that is no field but begins like JSON is given as it stands: some servers write an
    error into a stream without ``data:`` before it. The last event counts though no empty line follows it.
    """
    rest = bytearray()
    data: list[bytes] = []
    async for piece in body:
        rest += piece
        if b"\n" not in piece and b"\r" not in piece:
            if len(rest) > LONGEST:
                raise LineTooLongError
            continue
        *lines, tail = END.split(rest) if b"\r" in rest else rest.split(b"\n")
        rest = bytearray(tail)
        for line in lines:
            if line:
                field(bytes(line), data)
            elif data:
                yield b"\n".join(data)
                data = []
    if rest.strip():
        field(bytes(rest.rstrip(b"\r")), data)
    if data:
        yield b"\n".join(data)


def field(line: bytes, data: list[bytes]) -> None:
    """Add a line's data to an event's."""
    line = line.removeprefix(b"\xef\xbb\xbf")
    if line.startswith(b"data:"):
        data.append(line[6:] if line[5:6] == b" " else line[5:])
    elif line[:1] in (b"{", b"["):
        data.append(line)
