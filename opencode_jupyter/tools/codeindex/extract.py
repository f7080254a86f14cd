"""A file to the rows of the index: one row of words for each piece, in whatever process it is called."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import PurePosixPath

from .pieces import MAX_BYTES, NOTEBOOK, Piece, pieces
from .tokenizer import distinct, parts, terms

NOTEBOOK_BYTES = 32 << 20
"""Notebooks hold pictures; larger ones are passed over."""
_FRESH = 100_000_000
"""Nanoseconds in which a file may change again without its time showing it."""
BODY_TERMS = 80
"""Identifiers of a piece's code that count."""
DOC_TERMS = 1500
"""Characters of a docstring after its first paragraph that count."""

Row = tuple[str, str, int, int, str, str, str, str, str, str, str]
"""kind, symbol, line, end line; the words of name, place, signature, summary, rest of the doc, body; the words of its
name with those of the class it is in."""
Update = tuple[str, int, int, bytes, list[Row] | None]
"""Path, time of change (ns), size, digest, rows; None for the rows if the content is as it was."""


def rows(path: str, data: bytes) -> list[Row]:
    """The rows of a file."""
    path_words = " ".join(word for part in PurePosixPath(path).with_suffix("").parts[-3:] for word in parts(part))
    return [_row(piece, path_words) for piece in pieces(path, data)]


def _row(piece: Piece, path_words: str) -> Row:
    outer, _, name = piece.symbol.rpartition(".")
    within = ""
    if piece.kind == "module":
        name_words, around = path_words.rsplit(" ", 1)[-1], path_words
    elif piece.kind in ("section", "cell"):
        name_words, around = terms(piece.symbol), path_words
    else:
        within = " ".join(parts(outer))
        name_words, around = " ".join(parts(name)), f"{within} {path_words}"
    first, _, rest = piece.doc.partition("\n\n")
    return (
        piece.kind,
        piece.symbol,
        piece.line,
        piece.end_line,
        name_words,
        around,
        distinct(piece.signature, 40),
        terms(first[:600]),
        terms(rest[:DOC_TERMS]),
        distinct(piece.body[:8000], BODY_TERMS),
        f"{within} {name_words}" if within else name_words,
    )


def index_file(root: str, path: str, digest: bytes | None = None) -> Update:
    """Read a file and take it apart. Never fails: what can't be read has no rows.

    Args:
        root: the project's folder.
        path: relative to it.
        digest: of the content that is in the index.
    """
    mtime, size, data = read_content(root, path)
    current = hashlib.blake2b(data, digest_size=16).digest()
    if current == digest:
        return path, mtime, size, current, None
    try:
        return path, mtime, size, current, rows(path, data)
    except (RecursionError, MemoryError, ValueError):
        return path, mtime, size, current, []


def read_content(root: str, path: str) -> tuple[int, int, bytes]:
    """Time of change, size and content of a regular file; no link is followed."""
    flags = os.O_RDONLY
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"):
        flags |= getattr(os, name, 0)
    full = os.path.join(root, path)
    try:
        status = os.lstat(full)
        if not stat.S_ISREG(status.st_mode):
            return status.st_mtime_ns, status.st_size, b""
        descriptor = os.open(full, flags)
    except (OSError, ValueError):
        try:
            status = os.lstat(full)
        except (OSError, ValueError):
            return 0, 0, b""
        return status.st_mtime_ns, status.st_size, b""
    with open(descriptor, "rb") as file:
        notebook = os.path.splitext(path)[1].lower() in NOTEBOOK
        limit = NOTEBOOK_BYTES if notebook else MAX_BYTES
        try:
            data = b"" if notebook and status.st_size > limit else file.read(limit)
        except OSError:
            data = b""
    fresh = time.time_ns() - status.st_mtime_ns < _FRESH
    return 0 if fresh else status.st_mtime_ns, status.st_size, data
