"""Files as language servers name them: URIs there and back, and a document's language."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

LANGUAGES = {
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


def to_uri(path: Path) -> str:
    """A file's URI: blanks, ``#``, ``%`` and what is not ASCII are escaped, byte by byte."""
    return path.as_uri()


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


def language(path: Path) -> str:
    """The language id of a file, by its extension."""
    return LANGUAGES.get(path.suffix.lower(), "dockerfile" if path.name == "Dockerfile" else "plaintext")
