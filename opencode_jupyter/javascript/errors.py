"""What goes wrong in JavaScript, as Python's errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..core.errors import ToolError
from ..core.tool_source import ToolFileError

NEEDS_BUN = (
    'it needs Bun: pip install "opencode-jupyter[bun]" (or install it from https://bun.com), or write the file with '
    "node:child_process and node:fs in place of what only Bun has"
)
_NO_BUN = re.compile(r"\bBun is not defined\b")


class JavaScriptError(ToolError):
    """A tool threw an error.

    Attributes:
        name: the error's name in JavaScript (``TypeError``).
        stack: its stack, with the file and line that threw it.
    """

    def __init__(self, name: str, message: str, stack: str = "") -> None:
        super().__init__(f"{name}: {message}" if message else name)
        self.name = name
        self.stack = stack


class WorkerEndedError(ToolError):
    """The process that runs the tools ended while a call was running. The next call starts it again."""


def error_of_call(tool: str, error: dict[str, Any]) -> ToolError:
    """The error that a call's tool threw."""
    name, message = str(error.get("name") or "Error"), str(error.get("message") or "")
    if name == "ExitError":
        return ToolError(f"The {tool} tool failed: {message}")
    if name == "ReferenceError" and _NO_BUN.search(message):
        return ToolError(f"The {tool} tool can't run here: {NEEDS_BUN}")
    return JavaScriptError(name, message, str(error.get("stack") or ""))


def unloadable(path: Path, error: dict[str, Any]) -> ToolFileError:
    """Why a file could not be loaded: one line, with the place in it or in a file that it imports."""
    name, message = str(error.get("name") or "Error"), str(error.get("message") or "")
    if name == "BunError":
        return ToolFileError(f"{path.name} can't be loaded: {NEEDS_BUN}", path)
    at = error.get("at") or {}
    line = at.get("line")
    where, is_own = path.name, True
    if isinstance(line, int) and at.get("path"):
        other = Path(at["path"])
        is_own = other.name == path.name and (other == path or _is_same_file(other, path))
        where = f"{path.name}:{line}" if is_own else f"{path.name} (in {other}:{line})"
    detail = " ".join(message.split())
    reason = detail if name == "Error" else f"{name}: {detail}"
    return ToolFileError(f"{where} can't be loaded: {reason}", path, line if is_own and isinstance(line, int) else None)


def _is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
