"""What a file prints while it is loaded: kept apart from the cell, which shows results only.

`sys.stdout` and `sys.stderr` are told apart by thread, and only while a file is being loaded: what other threads write
goes where it went. A stream that somebody keeps from that time goes on passing everything through.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

MOST = 10_000
"""Characters that are kept of one file."""

_STREAMS = ("stdout", "stderr")
_lock = threading.Lock()
_kept: dict[int, list[str]] = {}
"""By the loading thread: what it wrote."""
_count = 0


class _ByThread:
    """Stands for a standard stream."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def write(self, text: str) -> int:
        pieces = _kept.get(threading.get_ident())
        if pieces is None:
            written: int = self._real.write(text)
            return written
        if sum(map(len, pieces)) < MOST:
            pieces.append(text[:MOST])
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if threading.get_ident() not in _kept:
            self._real.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextlib.contextmanager
def kept() -> Iterator[list[str]]:
    """Keep what this thread writes inside; the list takes the pieces."""
    global _count
    pieces: list[str] = []
    me = threading.get_ident()
    with _lock:
        _kept[me] = pieces
        _count += 1
        if _count == 1:
            for name in _STREAMS:
                stream = getattr(sys, name)
                if not isinstance(stream, _ByThread):  # one may be left, put back by somebody who had saved it
                    setattr(sys, name, _ByThread(stream))
    try:
        yield pieces
    finally:
        with _lock:
            _kept.pop(me, None)
            _count -= 1
            if _count == 0:
                for name in _STREAMS:
                    stream = getattr(sys, name)
                    if isinstance(stream, _ByThread):  # else somebody put another in its place since
                        setattr(sys, name, stream._real)
