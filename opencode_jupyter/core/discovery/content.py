"""What runs when a tool file is loaded: the file and the files beside it that it imports. That is what is trusted.

Python's imports are read from the syntax tree, also those inside functions. A file that was not seen here can't be
imported relatively later (`importing`): so trust covers all that comes along. Other languages' relative imports are
found by their look; there, one that is put together at run time escapes.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .find import PYTHON, Stamp, stamp

PYTHON_BYTES = 1_000_000
SCRIPT_BYTES = 10_000_000
"""Bytes that a tool file and what it imports from beside it may have together. Reading the structure of Python code
holds everything else up meanwhile, about a second for each million."""
MAX_FILES = 200
"""Files that one tool file may import from beside it."""
FRESH = 0.1
"""Seconds. A change this soon after another may leave the file's stamp as it was: so coarse are clocks of files."""
_SCRIPT_IMPORT = re.compile(r"""\b(?:from|import|require)\s{0,20}\(?\s{0,20}(['"])(\.{1,2}/[^'"\n]{0,500})\1""")
_SCRIPT_ENDINGS = ("", ".ts", ".js", ".mjs", ".mts", ".cjs", ".cts", ".json", ".tsx", ".jsx",
                   "/index.ts", "/index.js", "/index.mjs")  # fmt: skip


@dataclass(slots=True)
class Content:
    """A tool file and what it imports from beside it, as they were read."""

    main: Path
    files: dict[Path, bytes] = field(default_factory=dict)
    stamps: dict[Path, Stamp | None] = field(default_factory=dict)
    """Of all files, and of places where an import was looked for and nothing was: something may appear there."""
    until: float = 0.0
    """Until when (`time.time`) a change may not show in the stamps."""

    @property
    def digest(self) -> str:
        """SHA-256 over all files and their names."""
        if len(self.files) == 1:
            return hashlib.sha256(self.files[self.main]).hexdigest()
        base = self.main.parent
        rows = [[os.path.relpath(path, base), hashlib.sha256(data).hexdigest()] for path, data in self.files.items()]
        return hashlib.sha256(json.dumps([rows[0], *sorted(rows[1:])]).encode()).hexdigest()

    @property
    def text(self) -> str:
        """All of it for a person to read: the file, then the others under their names."""
        base, mark = self.main.parent, "#" if self.main.suffix == PYTHON else "//"
        pieces = [self.files[self.main].decode("utf-8", "replace")]
        for path, data in self.files.items():
            if path != self.main:
                pieces.append(f"\n{mark} ---- {os.path.relpath(path, base)}\n{data.decode('utf-8', 'replace')}")
        return "\n".join(pieces)

    @property
    def helpers(self) -> list[Path]:
        """The files beside the tool file."""
        return [path for path in self.files if path != self.main]

    def same(self) -> bool:
        """Return whether the files still hold this."""
        if any(stamp(path) != seen for path, seen in self.stamps.items()):
            return False
        if self.until:
            over = time.time() > self.until
            try:
                if any(path.read_bytes() != data for path, data in self.files.items()):
                    return False
            except OSError:
                return False
            if over:
                self.until = 0.0
        return True


class ContentError(Exception):
    """A file can't be taken for code; the message says why.

    Attributes:
        path: the file.
    """

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path


def read_content(main: Path) -> Content:
    """Read a tool file and, through all of them, what is imported relatively.

    Raises:
        ContentError: a file can't be read, is too large, or there are too many.
    """
    content = Content(main)
    waiting = [main]
    room = PYTHON_BYTES if main.suffix == PYTHON else SCRIPT_BYTES
    newest = 0
    while waiting:
        path = waiting.pop(0)
        if path in content.files:
            continue
        if len(content.files) > MAX_FILES:
            raise ContentError(f"imports more than {MAX_FILES} files from beside it", main)
        seen = stamp(path)
        data = _read(path, seen, room)
        room -= len(data)
        content.files[path] = data
        content.stamps[path] = seen
        newest = max(newest, seen[0] if seen else 0)
        for places in _python(path, main.parent, data) if path.suffix == PYTHON else _script(path, data):
            there = [place for place in places if place.is_file()]
            waiting += there
            if not there:
                content.stamps.update(dict.fromkeys(places))
    if time.time() - newest / 1e9 < FRESH:
        content.until = newest / 1e9 + FRESH
    return content


def _read(path: Path, seen: Stamp | None, room: int) -> bytes:
    if seen is not None and seen[1] > room:
        raise ContentError(f"is {seen[1]:,} bytes long, which is too much code for tools; {room:,} were left", path)
    try:
        with path.open("rb") as file:
            return file.read(room)
    except OSError as error:
        raise ContentError(f"can't be read: {error.strerror or error}", path) from error


def _python(path: Path, top: Path, data: bytes) -> Iterator[list[Path]]:
    """For each relative import the places where it may lie; at or below `top` only. Also siblings named absolutely."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # running it says what is wrong
    here = path.parent
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here
            for _ in range(node.level - 1):
                base = base.parent
            if not base.is_relative_to(top):
                continue
            parts = node.module.split(".") if node.module else []
            yield from _modules(base, parts)
            for alias in node.names:
                yield from _modules(base, [*parts, alias.name], only_last=True)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from _siblings(top, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from _siblings(top, node.module.split("."))


def _modules(base: Path, parts: list[str], *, only_last: bool = False) -> Iterator[list[Path]]:
    """The places of a dotted name and of the packages above it."""
    for i in range(len(parts) if only_last else 1, len(parts) + 1):
        inside = base.joinpath(*parts[:i])
        places = [inside / "__init__.py", inside.with_name(inside.name + PYTHON)]
        # a name that is imported from a module is no module as a rule: nothing is missing if there is no such file
        if not only_last or i == 1 or any(place.is_file() for place in places):
            yield places


def _siblings(top: Path, parts: list[str]) -> Iterator[list[Path]]:
    """A file that puts its folder on `sys.path` imports what lies there by plain names."""
    first = top / parts[0]
    if (first / "__init__.py").is_file() or first.with_name(first.name + PYTHON).is_file():
        yield from _modules(top, parts)


def _script(path: Path, data: bytes) -> Iterator[list[Path]]:
    if path.suffix == ".json":
        return
    for _, name in _SCRIPT_IMPORT.findall(data.decode("utf-8", "replace")):
        base = os.path.normpath(os.path.join(path.parent, name))
        places = [Path(base + ending) for ending in _SCRIPT_ENDINGS]
        stem, suffix = os.path.splitext(base)
        if suffix in (".js", ".mjs"):  # TypeScript names the file that it would become
            places.append(Path(stem + suffix.replace("js", "ts")))
        yield [next((place for place in places if place.is_file()), places[0])]
