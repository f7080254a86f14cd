"""Restores the files of a project as they were before some steps, and decides which are left alone."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .snapshots import files
from .snapshots.service import first_entries
from .snapshots.shadow import Shadow, TreeEntries

SINCE = "somebody else changed it since"
BETWEEN = "somebody else changed it between two steps"
UNRECORDED = "its present content is not recorded (ignored, too large, or not a file)"
OUTSIDE = "it is outside the project now"


@dataclass(frozen=True, slots=True)
class StepChange:
    """The changes of one step: its files (absolute), and the trees before and after it."""

    before: str
    files: tuple[str, ...]
    after: str | None = None


@dataclass(frozen=True, slots=True)
class RestoredFiles:
    """The outcome: see `revert.Reverted`; `snapshot` is the tree that undoing it leads to."""

    files: list[str]
    kept: dict[str, str]
    diff: str
    snapshot: str


def restore_files(
    shadow: Shadow, hidden: Sequence[StepChange], hide: Sequence[StepChange], snapshot: str | None, force: bool
) -> RestoredFiles:
    """Put files back.

    Args:
        shadow: held.
        hidden: the steps that are hidden now; the files are as they were before them.
        hide: the steps that will be hidden; the files become as they were before these.
        snapshot: the tree from before the first of several reverts; None: as it is now.
        force: also those that somebody else has changed.

    Raises:
        ToolError: a snapshot is gone, or a file can't be written; nothing is changed.
    """
    now = shadow.track()
    snapshot = snapshot or now
    targets = first_entries(shadow, [(change.before, change.files) for change in hide])
    previous = first_entries(shadow, [(change.before, change.files) for change in hidden])
    back = [path for path in previous if path not in targets]
    if back:
        targets |= first_entries(shadow, [(snapshot, [str(shadow.worktree / path) for path in back])])
    current = shadow.entries(now, list(targets))
    expected, torn = _expected(shadow, hide)
    expected |= previous
    kept: dict[str, str] = {}
    for path, target in list(targets.items()):
        reason = ""
        if not _is_recorded(shadow, path, current):
            reason = UNRECORDED
        elif current[path] != target and not force:
            if path in expected and current[path] != expected[path]:
                reason = SINCE
            elif path in torn and path not in previous:
                reason = BETWEEN
        if reason:
            kept[str(shadow.worktree / path)] = reason
        if reason or current[path] == target:
            del targets[path]
    outside = [name for change in (*hide, *hidden) for name in change.files if _is_outside(shadow, name)]
    kept |= dict.fromkeys(outside, OUTSIDE)
    changed = files.write_entries(shadow, targets)
    diff = shadow.text(snapshot, shadow.track()) if hide else ""
    return RestoredFiles([str(shadow.worktree / path) for path in changed], kept, diff, snapshot)


def _expected(shadow: Shadow, changes: Sequence[StepChange]) -> tuple[TreeEntries, Collection[str]]:
    """What each file is if nobody has changed it since, where that is known; and those changed between two steps."""
    expected: TreeEntries = {}
    torn: set[str] = set()
    for change in changes:
        paths = [os.path.relpath(name, shadow.worktree) for name in change.files if not _is_outside(shadow, name)]
        if not paths:
            continue
        repeated = [path for path in paths if path in expected]
        if repeated:
            before = shadow.entries(change.before, repeated)
            torn |= {path for path in repeated if before[path] != expected[path]}
        if change.after is not None and shadow.has(change.after):
            expected |= shadow.entries(change.after, paths)
        else:
            for path in paths:
                expected.pop(path, None)
    return expected, torn


def _is_recorded(shadow: Shadow, path: str, current: TreeEntries) -> bool:
    """Return whether the snapshot of now has what is at a path."""
    return current[path] is not None or not os.path.lexists(shadow.worktree / path) or _is_folder(shadow, path)


def _is_folder(shadow: Shadow, path: str) -> bool:
    """Return whether a folder is in the place of a file, with recorded files in it."""
    full = shadow.worktree / path
    return full.is_dir() and not full.is_symlink()


def _is_outside(shadow: Shadow, name: str) -> bool:
    return os.path.relpath(name, shadow.worktree).startswith(os.pardir)
