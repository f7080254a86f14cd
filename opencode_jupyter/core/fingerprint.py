"""Notice cheaply that one of some files or folders has changed, by modification time, size and inode.

Clocks of file systems are coarse: a second change within `RACY` seconds can leave all three as they were. So the
content of a file or folder that was just changed is compared as well, until that time is over.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections.abc import Iterable
from stat import S_ISDIR, S_ISREG

Stamp = tuple[int, int, int]
"""Modification time in ns, size in bytes, inode."""
AnyPath = str | os.PathLike[str]

RACY = 0.1
"""Seconds."""
PAUSE = 50
"""`Fingerprint.unchanged` spends at most one part in so many of the time on checks."""


def stamp(path: AnyPath) -> Stamp | None:
    """The state of a file or folder, links followed; None if it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class Fingerprint:
    """The state of files and folders at the time each was added. A path that does not exist can be added too."""

    def __init__(self, paths: Iterable[AnyPath] = ()) -> None:
        self._stamps: dict[str, Stamp | None] = {}
        self._hashes: dict[str, bytes] = {}
        """Content hashes of the files and folders that had just been changed."""
        self._racy_until = 0.0
        self._checked = -math.inf
        """Start and duration of the last check that found no change."""
        self._cost = 0.0
        for path in paths:
            self.add(path)

    def __len__(self) -> int:
        return len(self._stamps)

    def add(self, path: AnyPath) -> Stamp | None:
        """Add a path as it is now; to be called before the file is read or the folder listed."""
        name = os.fspath(path)
        try:
            status = os.stat(name)
        except (OSError, ValueError):
            self._stamps[name] = None
            return None
        state = self._stamps[name] = status.st_mtime_ns, status.st_size, status.st_ino
        changed = status.st_mtime_ns / 1e9
        if changed > time.time() - RACY and (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
            self._hashes[name] = _content_hash(name)
            self._racy_until = max(self._racy_until, changed + RACY)
        return state

    def merge(self, other: Fingerprint) -> None:
        """Add all paths of another fingerprint in the state that it recorded."""
        self._stamps |= other._stamps
        self._hashes |= other._hashes
        self._racy_until = max(self._racy_until, other._racy_until)

    def matches(self) -> bool:
        """Return whether all paths are still in the recorded state."""
        for name, recorded in self._stamps.items():
            if stamp(name) != recorded:
                return False
        if self._hashes:
            expired = time.time() > self._racy_until
            if any(_content_hash(name) != recorded for name, recorded in self._hashes.items()):
                return False
            if expired:
                self._hashes = {}
        return True

    def unchanged(self, max_age: float, since: float = 0.0) -> bool:
        """`matches`, where a recent positive answer is reused.

        Args:
            max_age: seconds for which an answer is reused, or 50 times what it took to find it if that is less.
            since: a time of the monotonic clock; an older answer is not reused.
        """
        now = time.monotonic()
        if now - self._checked < min(max_age, self._cost * PAUSE) and self._checked >= since:
            return True
        same = self.matches()
        self._checked, self._cost = now if same else -math.inf, time.monotonic() - now
        return same


def _content_hash(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # first: asking what it is would query the file system once more
            return hashlib.file_digest(file, "sha256").digest()
    except IsADirectoryError:
        with contextlib.suppress(OSError):
            return hashlib.sha256(repr(sorted(os.listdir(path))).encode("utf-8", "backslashreplace")).digest()
    except OSError:
        pass
    return b""
