"""The file that a call is about, so that its card can link it: where it is, and the line that was read or changed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ...core.state import Completed, ToolPart

TOOLS = ("read", "edit", "multiedit", "write", "notebook_read", "notebook_edit", "lsp")
"""Tools whose label is the name of one file."""

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@", re.MULTILINE)


def opens_of(part: ToolPart, diff: Any, directory: Path | None) -> dict[str, Any] | None:
    """The file of a completed call, as ``ui.opens`` has it; None if the call is about none.

    Args:
        part: the call.
        diff: the change it made, if it made one.
        directory: the session's folder, which relative paths count from.
    """
    given = part.state.input
    if (
        part.tool not in TOOLS
        or directory is None
        or not isinstance(part.state, Completed)
        or not isinstance(given, dict)
    ):
        return None
    path = next((given[k] for k in ("filePath", "file_path", "path") if isinstance(given.get(k), str)), "")
    if not path or "\0" in path:
        return None
    opens: dict[str, Any] = {"path": os.path.normpath(os.path.join(directory, os.path.expanduser(path)))}
    line = _changed_line(diff) if isinstance(diff, str) and diff else _given_line(given)
    if line is not None:
        opens["line"] = line
    return opens


def _given_line(given: dict[str, Any]) -> int | None:
    line = next((given[k] for k in ("offset", "line") if isinstance(given.get(k), int)), None)
    return line if line is not None and line > 0 else None


def _changed_line(diff: str) -> int | None:
    """The first changed line, as the file is now."""
    hunk = _HUNK.search(diff)
    if hunk is None:
        return None
    line = int(hunk[1])
    for text in diff[hunk.end() :].split("\n")[1:]:
        if not text.startswith(" "):
            break
        line += 1
    return max(1, line)
