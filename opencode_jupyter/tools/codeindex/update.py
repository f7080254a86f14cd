"""Reads files and brings the index up to date with them, in whatever process it is called."""

from __future__ import annotations

import hashlib
import os
import stat
import time

from .extract import MAX_BYTES, NOTEBOOK, Row, rows

NOTEBOOK_BYTES = 32 << 20
"""Notebooks hold pictures; larger ones are passed over."""
_FRESH = 100_000_000
"""Nanoseconds in which a file may change again without its time showing it."""

Update = tuple[str, int, int, bytes, list[Row] | None]
"""Path, time of change (ns), size, digest, rows; None for the rows if the content is as it was."""


def look(root: str, path: str, digest: bytes | None = None) -> Update:
    """Read a file and take it apart. Never fails: what can't be read has no rows.

    Args:
        root: the project's folder.
        path: relative to it.
        digest: of the content that is in the index.
    """
    mtime, size, data = content(root, path)
    found = hashlib.blake2b(data, digest_size=16).digest()
    if found == digest:
        return path, mtime, size, found, None
    try:
        return path, mtime, size, found, rows(path, data)
    except (RecursionError, MemoryError, ValueError):
        return path, mtime, size, found, []


def content(root: str, path: str) -> tuple[int, int, bytes]:
    """Time of change, size and content of a regular file; no link is followed."""
    flags = os.O_RDONLY
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"):
        flags |= getattr(os, name, 0)
    full = os.path.join(root, path)
    try:
        found = os.lstat(full)
        if not stat.S_ISREG(found.st_mode):
            return found.st_mtime_ns, found.st_size, b""
        descriptor = os.open(full, flags)
    except (OSError, ValueError):
        try:
            found = os.lstat(full)
        except (OSError, ValueError):
            return 0, 0, b""
        return found.st_mtime_ns, found.st_size, b""
    with open(descriptor, "rb") as file:
        notebook = os.path.splitext(path)[1].lower() in NOTEBOOK
        limit = NOTEBOOK_BYTES if notebook else MAX_BYTES
        try:
            data = b"" if notebook and found.st_size > limit else file.read(limit)
        except OSError:
            data = b""
    fresh = time.time_ns() - found.st_mtime_ns < _FRESH
    return 0 if fresh else found.st_mtime_ns, found.st_size, data
