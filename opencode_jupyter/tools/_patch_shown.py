"""What a patch does, as the ask and the card show it: one diff for each file (docs/opencode/tools.md 9.6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..text.diff import diff, shorten, trim_diff
from ..text.encoding import printable, to_newline
from ..text.patch import FileChange
from ._edit_file import WHOLE

DIFFS = 2_000_000
"""Characters of all files' diffs together; what goes beyond is cut."""


@dataclass(frozen=True, slots=True)
class Shown:
    """All changes as text and as OpenCode's list of files."""

    diff: str
    files: list[dict[str, Any]]


def shown(changes: Sequence[FileChange], name: Callable[[Path], str], step: Callable[[], None] = lambda: None) -> Shown:
    """The diffs of `changes`.

    Args:
        changes: in order.
        name: a path as people see it.
        step: called before each file; may raise to end the work.
    """
    diffs: list[str] = []
    files: list[dict[str, Any]] = []
    left, whole = DIFFS, WHOLE
    for change in changes:
        step()
        before, after = to_newline(change.before, "\n"), to_newline(change.after, "\n")
        made = diff(str(change.path), before, after)
        patch = _moved(trim_diff(made.patch), change)
        if change.replaced is not None:
            patch += trim_diff(diff(str(change.target), to_newline(change.replaced, "\n"), after).patch)
        patch = shorten(printable(patch), max(left, 200))
        left -= len(patch)
        diffs.append(patch)
        file: dict[str, Any] = {
            "filePath": printable(str(change.path)),
            "relativePath": name(change.target),
            "type": change.type,
            "diff": patch,
            "patch": patch,
        }
        whole -= len(before) + len(after)
        if whole >= 0:
            file["before"], file["after"] = printable(change.before), printable(change.after)
        file["additions"] = made.additions
        # OpenCode counts the pieces between newlines
        file["deletions"] = change.before.count("\n") + 1 if change.type == "delete" else made.deletions
        if change.move_path is not None:
            file["movePath"] = printable(str(change.move_path))
        files.append(file)
    return Shown(shorten("".join(one + "\n" for one in diffs)), files)


def _moved(patch: str, change: FileChange) -> str:
    """`patch` with the new path in the head of its new side."""
    if change.move_path is None:
        return patch
    old = f"\n+++ {change.path}\n"
    return patch.replace(old, f"\n+++ {change.move_path}\n", 1)
