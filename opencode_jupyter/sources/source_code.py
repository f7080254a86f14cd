"""The code that runs when a tool file or plugin is loaded: the file and the files beside it that it imports.

This is what a person trusts. Python's imports are read from the syntax tree, those inside functions too; a relative
import that was not found here fails later (`python_modules`), so trust covers all of it. The relative imports of
JavaScript and TypeScript are found by a pattern, which misses one that is put together at run time.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..core.fingerprint import Fingerprint

PYTHON_BYTES = 1_000_000
SCRIPT_BYTES = 10_000_000
"""Bytes that a file and its imports may have together. Parsing a million bytes of Python takes about a second."""
MAX_FILES = 200
"""Files that one tool file may import from beside it."""
_SCRIPT_IMPORT = re.compile(r"""\b(?:from|import|require)\s{0,20}\(?\s{0,20}(['"])(\.{1,2}/[^'"\n]{0,500})\1""")
_SCRIPT_ENDINGS = ("", ".ts", ".js", ".mjs", ".mts", ".cjs", ".cts", ".json", ".tsx", ".jsx",
                   "/index.ts", "/index.js", "/index.mjs")  # fmt: skip


class SourceCodeError(Exception):
    """A file cannot be read as code; the message says why.

    Attributes:
        path: the file.
    """

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path


@dataclass(slots=True)
class SourceCode:
    """A file and what it imports from beside it, as read."""

    main: Path
    files: dict[Path, bytes] = field(default_factory=dict)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    """Of all files, and of paths where an import was looked for in vain: a file may appear there."""

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
        base, comment = self.main.parent, "#" if self.main.suffix == ".py" else "//"
        pieces = [self.files[self.main].decode("utf-8", "replace")]
        for path, data in self.files.items():
            if path != self.main:
                pieces.append(f"\n{comment} ---- {os.path.relpath(path, base)}\n{data.decode('utf-8', 'replace')}")
        return "\n".join(pieces)


def read_source_code(main: Path) -> SourceCode:
    """Read a file and, recursively, what it imports relatively. Nothing runs.

    Raises:
        SourceCodeError: a file cannot be read, is too large, or there are too many.
    """
    code = SourceCode(main)
    queue = [main]
    bytes_left = PYTHON_BYTES if main.suffix == ".py" else SCRIPT_BYTES
    while queue:
        path = queue.pop(0)
        if path in code.files:
            continue
        if len(code.files) > MAX_FILES:
            raise SourceCodeError(f"imports more than {MAX_FILES} files from beside it", main)
        state = code.fingerprint.add(path)
        data = _read(path, state[1] if state else 0, bytes_left)
        bytes_left -= len(data)
        code.files[path] = data
        for candidates in _python_imports(path, main.parent, data) if path.suffix == ".py" else _script(path, data):
            existing = [candidate for candidate in candidates if candidate.is_file()]
            queue += existing
            if not existing:
                for candidate in candidates:
                    code.fingerprint.add(candidate)
    return code


def _read(path: Path, size: int, bytes_left: int) -> bytes:
    if size > bytes_left:
        raise SourceCodeError(
            f"is {size:,} bytes long, which is too much code for tools; {bytes_left:,} were left", path
        )
    try:
        with path.open("rb") as file:
            return file.read(bytes_left)
    except OSError as error:
        raise SourceCodeError(f"can't be read: {error.strerror or error}", path) from error


def _python_imports(path: Path, top: Path, data: bytes) -> Iterator[list[Path]]:
    """For each relative import, and each import of a sibling by its plain name, the paths where it may be.

    A file that puts its folder on `sys.path` imports siblings by plain names. Nothing above `top` is considered.
    """
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # running it reports the error
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parent
            for _ in range(node.level - 1):
                base = base.parent
            if not base.is_relative_to(top):
                continue
            parts = node.module.split(".") if node.module else []
            yield from _modules(base, parts)
            for alias in node.names:
                yield from _modules(base, [*parts, alias.name], only_last=True)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for name in names:
                first = top / name.partition(".")[0]
                if (first / "__init__.py").is_file() or first.with_name(first.name + ".py").is_file():
                    yield from _modules(top, name.split("."))


def _modules(base: Path, parts: list[str], *, only_last: bool = False) -> Iterator[list[Path]]:
    """The candidates of a dotted name and of the packages above it."""
    for i in range(len(parts) if only_last else 1, len(parts) + 1):
        folder = base.joinpath(*parts[:i])
        candidates = [folder / "__init__.py", folder.with_name(folder.name + ".py")]
        # a name that is imported from a module usually is no module: its file is not missing
        if not only_last or i == 1 or any(candidate.is_file() for candidate in candidates):
            yield candidates


def _script(path: Path, data: bytes) -> Iterator[list[Path]]:
    if path.suffix == ".json":
        return
    for _, name in _SCRIPT_IMPORT.findall(data.decode("utf-8", "replace")):
        base = os.path.normpath(os.path.join(path.parent, name))
        candidates = [Path(base + ending) for ending in _SCRIPT_ENDINGS]
        stem, suffix = os.path.splitext(base)
        if suffix in (".js", ".mjs"):  # TypeScript imports the name of the compiled file
            candidates.append(Path(stem + suffix.replace("js", "ts")))
        yield [next((candidate for candidate in candidates if candidate.is_file()), candidates[0])]
