"""A program: writes a file's text as a person sees it, for a search: ``python _plain.py < FILE``.

Escape sequences are left out, a line that was written over keeps its last state, bytes that are no UTF-8 become U+FFFD,
and of a line longer than `LINE` only the beginning is kept, so that whoever reads this needs little memory. Every line
stays one line. How many bytes were read is told on stderr, now and then.

With arguments it searches itself, for machines without ripgrep: ``python _plain.py TEXT regex|plain case|nocase``
writes ``N:`` for each line that has the text. Whoever started it ends it where an expression takes too long.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator

CHUNK = 1 << 20
LINE = 4 << 20
"""Bytes of one line that are searched."""
TELL = 0.1
"""Seconds between two words on how far it is."""

_ESCAPE = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    rb"|\x1b[ -/]*[0-Z\\^-~]|\x1b\[?[0-?]*[ -/]*$|\x1b",
    re.MULTILINE,
)
_OVERWRITTEN = re.compile(rb"[^\n]*\r(?=[^\n])")


def plain(lines: bytes) -> bytes:
    """Whole lines, as a person sees them."""
    if not lines.isascii():
        lines = lines.decode("utf-8", "replace").encode()
    if b"\x1b" in lines:
        lines = _ESCAPE.sub(b"", lines)
    if b"\r" in lines:
        lines = _OVERWRITTEN.sub(b"", re.sub(rb"(?<!\r)\r+(?=\n|\Z)", b"", lines))
    return lines


class Reader:
    """Whole lines of standard input, in large pieces."""

    def __init__(self) -> None:
        self.read = 0
        self._told = 0.0
        self._left = b""
        self._skipping = False

    def pieces(self) -> Iterator[bytes]:
        """Pieces that end with a line end; the last one may lack it."""
        while True:
            chunk = os.read(0, CHUNK)
            self.read += len(chunk)
            self.tell(last=not chunk)
            if not chunk:
                break
            yield from self._take(chunk)
        if self._left:
            yield self._left

    def _take(self, chunk: bytes) -> Iterator[bytes]:
        if self._skipping:
            newline = chunk.find(b"\n")
            if newline < 0:
                return
            self._skipping = False
            chunk = chunk[newline:]
        end = chunk.rfind(b"\n") + 1
        if end:
            yield self._left + chunk[:end]
            self._left = chunk[end:]
        else:
            self._left += chunk
        if len(self._left) > LINE:
            yield self._left[:LINE]  # its line end comes with what follows
            self._left, self._skipping = b"", True

    def tell(self, *, last: bool = False) -> None:
        """Say how far it is, if it was not just said."""
        now = time.monotonic()
        if last or now - self._told > TELL:
            self._told = now
            os.write(2, b"%d\n" % self.read)


def main(arguments: list[str]) -> int:
    """Copy, or search."""
    reader = Reader()
    if not arguments:
        for piece in reader.pieces():
            rest = memoryview(plain(piece))
            while rest:
                rest = rest[os.write(1, rest) :]
        return 0
    text, kind, case = arguments
    try:
        wanted = re.compile(text if kind == "regex" else re.escape(text), 0 if case == "case" else re.IGNORECASE)
    except re.error as error:
        os.write(2, b"!" + f"regex parse error: {error}".replace("\n", " ").encode() + b"\n")
        return 2
    number, begun = 1, False
    for piece in reader.pieces():
        lines = plain(piece).decode("utf-8", "replace").split("\n")
        for at, line in enumerate(lines):
            if (line or at < len(lines) - 1) and not (at == 0 and begun) and wanted.search(line):
                os.write(1, b"%d:\n" % (number + at))
        number += len(lines) - 1
        begun = bool(lines[-1])  # the rest of a long line: only its beginning is searched
        reader.tell()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)
