"""A file to the rows of the index: one row of words for each piece, in whatever process it is called."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from pathlib import PurePosixPath

from . import other_formats
from .python_source import Piece, python_pieces
from .tokenizer import distinct, parts, terms

MAX_BYTES = 1 << 20
"""Larger files are data or generated; their first part only is looked at."""
NOTEBOOK_BYTES = 32 << 20
"""Notebooks hold pictures; larger ones are passed over."""
_FRESH = 100_000_000
"""Nanoseconds in which a file may change again without its time showing it."""
BODY_TERMS = 80
"""Identifiers of a piece's code that count."""
DOC_TERMS = 1500
"""Characters of a docstring after its first paragraph that count."""
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")

PYTHON = frozenset({".py", ".pyw", ".pyi", ".pyx", ".pxd"})
PROSE = frozenset({".md", ".markdown", ".rst", ".qmd", ".rmd"})
NOTEBOOK = frozenset({".ipynb"})
_OTHER = """
js jsx mjs cjs ts tsx mts cts vue svelte go rs java kt kts scala groovy c h cc cpp cxx hh hpp hxx cu m mm cs fs swift
rb php pl pm lua r jl ex exs erl hs ml clj dart zig nim sh bash zsh fish ps1 sql proto graphql tf v sv vhd f90 f pas
"""
OTHER = frozenset(f".{extension}" for extension in _OTHER.split())
KNOWN = PYTHON | PROSE | NOTEBOOK | OTHER
"""Extensions of what is indexed."""

Row = tuple[str, str, int, int, str, str, str, str, str, str, str]
"""kind, symbol, line, end line; the words of name, place, signature, summary, rest of the doc, body; the words of its
name with those of the class it is in."""
Update = tuple[str, int, int, bytes, list[Row] | None]
"""Path, time of change (ns), size, digest, rows; None for the rows if the content is as it was."""

_TESTS = re.compile(r"(^|/)(tests?|testing|conftest|test_[^/]*|[^/]*_test)(\.py)?(/|$)", re.IGNORECASE)


def decode(data: bytes) -> str:
    """Text of a file: its byte order mark or declared encoding, UTF-8, else Latin-1; never fails."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    for line in data.split(b"\n", 2)[:2]:
        if match := _CODING.match(line):
            try:
                return data.decode(match[1].decode("ascii"), "replace")
            except (LookupError, UnicodeDecodeError, ValueError):
                break
    return data.decode("latin-1")


def pieces(path: str, data: bytes) -> list[Piece]:
    """The pieces of a file that a search can find.

    Args:
        path: relative to the project; its extension says what the file is.
        data: its content; a binary file has no pieces.
    """
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return []
    extension = PurePosixPath(path).suffix.lower()
    if extension in NOTEBOOK:
        try:
            return other_formats.notebook_pieces(decode(data))
        except ValueError:
            return []
    text = decode(data[:MAX_BYTES])
    if extension in PYTHON:
        return python_pieces(text)
    if extension in PROSE:
        return other_formats.prose_pieces(text)
    return other_formats.generic_pieces(text)


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


def is_test(path: str) -> bool:
    """Return whether a file holds tests, by its path."""
    return _TESTS.search(path) is not None


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
