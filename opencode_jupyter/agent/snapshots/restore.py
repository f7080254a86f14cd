"""Restore files of a worktree from snapshots, all of them or none; files that somebody else changed are left alone."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.atomic import Write, write_all
from ...core.errors import ToolError
from .service import first_entries
from .shadow import Shadow, TreeEntries, TreeEntry


def write_entries(shadow: Shadow, entries: TreeEntries) -> list[str]:
    """Make each path (relative to the worktree) what `entries` has for it; unchanged files are not touched.

    Bytes are written as they were recorded; an existing file keeps its permissions but for the execute bits.

    Returns:
        The paths that were changed.

    Raises:
        ToolError: a file can't be changed; the message has the reason and the outcome.
        GitError: a content is not kept any more; nothing is changed.
    """
    contents = shadow.blobs(entry.blob for entry in entries.values() if entry is not None)
    writes: list[Write] = []
    executable: dict[Path, bool] = {}
    changed: list[str] = []
    for path, entry in entries.items():
        full = shadow.worktree / path
        write = _write(full, entry, contents)
        if write is not None:
            writes.append(write)
            changed.append(path)
        if entry is not None and stat.S_ISREG(entry.mode):
            executable[full] = bool(entry.mode & stat.S_IXUSR)
    removals = [write for write in writes if write.after is None and write.link is None]
    additions = [write for write in writes if write.after is not None or write.link is not None]
    _refuse_links(shadow.worktree, additions, {write.path for write in removals})
    with shadow.file_times.own_change(write.path for write in writes):
        if any(_is_in_the_way(write.path, removals) for write in additions):
            write_all(removals)  # a folder has become a file, or the other way round: first one has to go
            _remove_empty_folders(shadow.worktree, removals)
            write_all(additions)
        else:
            write_all(writes)
            _remove_empty_folders(shadow.worktree, removals)
    for full, wanted_bits in executable.items():
        if _set_executable(full, wanted_bits):
            path = os.path.relpath(full, shadow.worktree)
            if path not in changed:
                changed.append(path)
    return changed


def _write(full: Path, entry: TreeEntry | None, contents: Mapping[str, bytes]) -> Write | None:
    """The change a file needs; None if it is as it should be."""
    try:
        status = full.lstat()
    except (FileNotFoundError, NotADirectoryError):
        status = None
    if entry is None:
        return None if status is None or stat.S_ISDIR(status.st_mode) else Write(full, None)
    content = contents[entry.blob]
    if stat.S_ISLNK(entry.mode):
        link = os.fsdecode(content)
        if status is not None and stat.S_ISLNK(status.st_mode) and full.readlink() == Path(link):
            return None
        return Write(full, None, link=link)
    same = status is not None and stat.S_ISREG(status.st_mode) and status.st_size == len(content)
    if same and full.read_bytes() == content:
        return None
    return Write(full, content)


def _refuse_links(worktree: Path, additions: list[Write], removals: set[Path]) -> None:
    """Refuse to write through a link in the place of a folder.

    Raises:
        ToolError: nothing is changed.
    """
    for write in additions:
        for folder in write.path.parents:
            if folder == worktree:
                break
            if folder.is_symlink() and folder not in removals:
                raise ToolError(
                    f"{write.path} cannot be restored: {folder} is a symbolic link now. Remove the link and try again. "
                    "Nothing is changed."
                )


def _is_in_the_way(path: Path, removals: list[Write]) -> bool:
    """True if other files have to go first: those in a folder of its name, or one named as its folder."""
    if path.is_dir() and not path.is_symlink():
        return True
    removed = {write.path for write in removals}
    return any(folder in removed for folder in path.parents)


def _remove_empty_folders(worktree: Path, removals: list[Write]) -> None:
    """Remove the folders that were left empty, as git does."""
    for write in removals:
        for folder in write.path.parents:
            if folder == worktree:
                break
            try:
                folder.rmdir()
            except OSError:
                break


def _set_executable(path: Path, executable: bool) -> bool:
    """Set or clear a file's execute bits; who can read can then execute."""
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if bool(mode & stat.S_IXUSR) != executable:
            path.chmod(mode | (mode & 0o444) >> 2 if executable else mode & ~0o111)
            return True
    return False


# ---------------------------------------------------------------------- undoing steps


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
    changed = write_entries(shadow, targets)
    diff = shadow.diff_text(snapshot, shadow.track()) if hide else ""
    return RestoredFiles([str(shadow.worktree / path) for path in changed], kept, diff, snapshot)


def _expected(shadow: Shadow, changes: Sequence[StepChange]) -> tuple[TreeEntries, Collection[str]]:
    """The expected entry of each file, where it is known, and the files that were changed between two steps."""
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
        if change.after is not None and shadow.has_tree(change.after):
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
