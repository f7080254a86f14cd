"""Files as language servers know them: URIs, language ids, open documents, the stamps of the project's other files.

A server may only read files itself if it learns when they change. Nothing watches the disk: it is looked at before
each use, which finds every change and costs some milliseconds in a project of thousands of files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from ...core.errors import ToolError

MAX_BYTES = 16 << 20
"""A larger file is not shown to a server: it is data, and would take its memory many times over."""
MAX_OPEN = 200
"""Documents a server has open at once; then the one opened first is closed."""
MAX_FILES = 100_000
MAX_SECONDS = 0.5
"""A tree that can't be looked through in this time is not watched; open documents still are."""
CREATED, CHANGED, DELETED = 1, 2, 3
"""The protocol's kinds of change."""
SKIPPED = frozenset(
    "node_modules bower_components .venv venv __pycache__ site-packages target dist build vendor".split()
)
"""Folders whose files are not the project's own (docs/opencode/tools.md 18.4); hidden folders are skipped too."""
Stamp = tuple[int, int, int]
"""Time of change in nanoseconds, size, and the time of the inode's change, which nobody sets back: what tells that a
file is another."""
_LANGUAGES = {
    ".astro": "astro",
    ".bash": "shellscript",
    ".c": "c",
    ".c++": "cpp",
    ".cc": "cpp",
    ".clj": "clojure",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".cxx": "cpp",
    ".dart": "dart",
    ".ex": "elixir",
    ".exs": "elixir",
    ".gleam": "gleam",
    ".go": "go",
    ".h": "c",
    ".h++": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hs": "haskell",
    ".html": "html",
    ".java": "java",
    ".jl": "julia",
    ".js": "javascript",
    ".json": "json",
    ".jsonc": "jsonc",
    ".jsx": "javascriptreact",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".less": "less",
    ".lua": "lua",
    ".markdown": "markdown",
    ".md": "markdown",
    ".ml": "ocaml",
    ".mli": "ocaml.interface",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".nix": "nix",
    ".php": "php",
    ".py": "python",
    ".pyi": "python",
    ".r": "r",
    ".rb": "ruby",
    ".rs": "rust",
    ".sass": "sass",
    ".scala": "scala",
    ".scss": "scss",
    ".sh": "shellscript",
    ".sql": "sql",
    ".svelte": "svelte",
    ".swift": "swift",
    ".tex": "latex",
    ".tf": "terraform",
    ".tfvars": "terraform-vars",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".typ": "typst",
    ".vue": "vue",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".zig": "zig",
    ".zsh": "shellscript",
}
"""Extension to the protocol's language id; others are ``plaintext``."""


def to_path(uri: str, *, windows: bool = os.name == "nt") -> Path | None:
    """The file a URI names; None if it names none (``untitled:``, a library's archive).

    Servers escape differently, so files are compared by path, never by URI.

    Args:
        uri: the URI.
        windows: the path may begin with a drive, or with a server's name.
    """
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    # A server that does not escape "#" or "?" means them as part of the name.
    tail = ("?" + parts.query if parts.query else "") + ("#" + parts.fragment if parts.fragment else "")
    name = os.fsdecode(unquote_to_bytes(parts.path + tail))
    if windows:
        server = parts.netloc if parts.netloc != "localhost" else ""
        name = f"//{server}{name}" if server else name.removeprefix("/")
    return Path(os.path.normpath(name)) if "\0" not in name and name else None


def language_id(path: Path) -> str:
    """The language id of a file, by its extension."""
    return _LANGUAGES.get(path.suffix.lower(), "dockerfile" if path.name == "Dockerfile" else "plaintext")


@dataclass(slots=True)
class Document:
    """An open document: the version the server has, and the file's stamp when it was read."""

    uri: str
    text: str
    version: int
    stamp: Stamp


def stamp(path: str | Path) -> Stamp | None:
    """A file's stamp; None if there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return _stamp(status)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ctime_ns


def load(path: Path) -> tuple[str, Stamp]:
    """A file's text as a server gets it, without a byte order mark, and its stamp.

    Raises:
        ToolError: it is too large or can't be read.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size > MAX_BYTES:
                size = f"{status.st_size >> 20} MiB"
                limit = f"the limit is {MAX_BYTES >> 20} MiB"
                raise ToolError(f"{path} has {size}, too much for a language server ({limit}).")
            data = file.read()
    except OSError as error:
        raise ToolError(f"Can't read {path}: {error.strerror or error}") from error
    return data.decode("utf-8-sig", "replace"), _stamp(status)


def line_count(text: str) -> int:
    """The number of lines as the protocol counts them: LF, CR LF and CR end one."""
    return text.count("\n") + text.count("\r") - text.count("\r\n") + 1


class Documents:
    """The documents one server has open, and the messages that keep them as the files are."""

    def __init__(self, sync: Any) -> None:
        options = sync if isinstance(sync, dict) else {"openClose": True, "change": sync}
        save = options.get("save")
        self._saves = bool(save)
        self._save_text = isinstance(save, dict) and bool(save.get("includeText"))
        self.open: dict[Path, Document] = {}

    def messages(self, path: Path) -> list[tuple[str, Any]]:
        """The messages that bring a document up to date; empty if it is. Reads the file, so it blocks.

        Raises:
            ToolError: the file can't be read.
        """
        document = self.open.get(path)
        if document is not None and stamp(path) == document.stamp:
            return []
        text, now = load(path)
        if document is None:
            out = self.close(next(iter(self.open))) if len(self.open) >= MAX_OPEN else []
            document = self.open[path] = Document(path.as_uri(), text, 0, now)
            return [*out, _did_open(path, document)]
        document.stamp = now
        if text == document.text:
            return []
        document.text, document.version = text, document.version + 1
        name: dict[str, Any] = {"uri": document.uri}
        change: dict[str, Any] = {
            "textDocument": {**name, "version": document.version},
            "contentChanges": [{"text": text}],
        }
        out = [("textDocument/didChange", change)]
        if self._saves:
            saved = {"textDocument": name, "text": text} if self._save_text else {"textDocument": name}
            out.append(("textDocument/didSave", saved))
        return out

    def changed(self) -> list[Path]:
        """Open documents whose files are others now, or gone."""
        return [path for path, document in self.open.items() if stamp(path) != document.stamp]

    def close(self, path: Path) -> list[tuple[str, Any]]:
        """The messages about a file that was deleted."""
        document = self.open.pop(path, None)
        return [] if document is None else [("textDocument/didClose", {"textDocument": {"uri": document.uri}})]

    def lines(self, path: Path) -> list[str] | None:
        """A document's lines, as the server counts them; None if it can't be read."""
        document = self.open.get(path)
        try:
            text = load(path)[0] if document is None else document.text
        except ToolError:
            return None
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _did_open(path: Path, document: Document) -> tuple[str, Any]:
    item = {
        "uri": document.uri,
        "languageId": language_id(path),
        "version": document.version,
        "text": document.text,
    }
    return "textDocument/didOpen", {"textDocument": item}


class FileTree:
    """The stamps of a project's files that a server cares for."""

    def __init__(self, root: Path, is_relevant: Callable[[str], bool]) -> None:
        self._root = root
        self._is_relevant = is_relevant
        self._stamps: dict[str, Stamp] | None = None
        self._too_large = False

    def changes(self) -> list[tuple[str, int]]:
        """Paths that were created, changed or deleted since the last look. The first look finds nothing. Blocks."""
        if self._too_large:
            return []
        now = self._scan()
        if now is None:
            self._too_large = True
            return []
        before, self._stamps = self._stamps, now
        if before is None:
            return []
        out = [(path, CREATED if path not in before else CHANGED) for path, s in now.items() if before.get(path) != s]
        return out + [(path, DELETED) for path in before if path not in now]

    def _scan(self) -> dict[str, Stamp] | None:
        limit = time.monotonic() + MAX_SECONDS
        stamps: dict[str, Stamp] = {}
        stack = [str(self._root)]
        while stack:
            if time.monotonic() > limit or len(stamps) > MAX_FILES:
                return None
            try:
                with os.scandir(stack.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if not entry.name.startswith(".") and entry.name not in SKIPPED:
                                stack.append(entry.path)
                        elif self._is_relevant(entry.name):
                            stamps[entry.path] = _stamp(entry.stat())
            except OSError:
                continue
        return stamps
