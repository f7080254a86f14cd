"""A program: writes a file's text as a person sees it, for a search: ``python _visible_lines.py < FILE``.

Escape sequences are left out, a line that was written over keeps its last state, bytes that are no UTF-8 become U+FFFD,
and of a line longer than `LINE` only the beginning is kept, so that whoever reads this needs little memory. Every line
stays one line. How many bytes were read is written to stderr, now and then.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator

CHUNK = 1 << 20
LINE = 4 << 20
"""Bytes of one line that are searched."""
REPORT_INTERVAL = 0.1
"""Seconds between two reports of how far it is."""

_ESCAPE = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    rb"|\x1b[ -/]*[0-Z\\^-~]|\x1b\[?[0-?]*[ -/]*$|\x1b",
    re.MULTILINE,
)
_OVERWRITTEN = re.compile(rb"[^\n]*\r(?=[^\n])")


def visible(lines: bytes) -> bytes:
    """Whole lines, as a person sees them."""
    if not lines.isascii():
        lines = lines.decode("utf-8", "replace").encode()
    if b"\x1b" in lines:
        lines = _ESCAPE.sub(b"", lines)
    if b"\r" in lines:
        lines = _OVERWRITTEN.sub(b"", re.sub(rb"(?<!\r)\r+(?=\n|\Z)", b"", lines))
    return lines


def read_lines() -> Iterator[bytes]:
    """Standard input in pieces that end with a line end; the last one may lack it."""
    rest, skipping, count, reported = b"", False, 0, 0.0
    while True:
        chunk = os.read(0, CHUNK)
        count += len(chunk)
        now = time.monotonic()
        if not chunk or now - reported > REPORT_INTERVAL:
            reported = now
            os.write(2, b"%d\n" % count)
        if not chunk:
            break
        if skipping:
            newline = chunk.find(b"\n")
            if newline < 0:
                continue
            skipping, chunk = False, chunk[newline:]
        end = chunk.rfind(b"\n") + 1
        if end:
            yield rest + chunk[:end]
            rest = chunk[end:]
        else:
            rest += chunk
        if len(rest) > LINE:
            yield rest[:LINE]  # its line end comes with what follows
            rest, skipping = b"", True
    if rest:
        yield rest


if __name__ == "__main__":
    try:
        for piece in read_lines():
            text = memoryview(visible(piece))
            while text:
                text = text[os.write(1, text) :]
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(1)
