"""Make files of a worktree what they are in a tree, all of them or none."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from ...core.atomic_many import Write, write_all
from ...core.errors import ToolError
from .shadow import Entries, Entry, Shadow


def put(shadow: Shadow, wanted: Entries) -> list[str]:
    """Make each path (relative to the worktree) what `wanted` says; what is so already is not touched.

    Bytes are written as they were recorded; a file that is there keeps its permissions but for the execute bits.

    Returns:
        The paths that were changed.

    Raises:
        ToolError: a file can't be changed; the message says why, and what holds now.
        GitError: a content is not kept any more; nothing is changed.
    """
    contents = shadow.blobs(entry.blob for entry in wanted.values() if entry is not None)
    writes: list[Write] = []
    executable: dict[Path, bool] = {}
    changed: list[str] = []
    for path, entry in wanted.items():
        full = shadow.worktree / path
        write = _write(full, entry, contents)
        if write is not None:
            writes.append(write)
            changed.append(path)
        if entry is not None and stat.S_ISREG(entry.mode):
            executable[full] = bool(entry.mode & stat.S_IXUSR)
    going = [write for write in writes if write.after is None and write.link is None]
    coming = [write for write in writes if write.after is not None or write.link is not None]
    _leads_outside(shadow.worktree, coming, {write.path for write in going})
    with shadow.file_times.own_change(write.path for write in writes):
        if any(_in_the_way(write.path, going) for write in coming):
            write_all(going)  # a folder has become a file, or the other way round: first one has to go
            _empty(shadow.worktree, going)
            write_all(coming)
        else:
            write_all(writes)
            _empty(shadow.worktree, going)
    for full, wanted_bits in executable.items():
        if _make_executable(full, wanted_bits):
            path = os.path.relpath(full, shadow.worktree)
            if path not in changed:
                changed.append(path)
    return changed


def _write(full: Path, entry: Entry | None, contents: Mapping[str, bytes]) -> Write | None:
    """The change a file needs; None if it is as it should be."""
    try:
        found = full.lstat()
    except (FileNotFoundError, NotADirectoryError):
        found = None
    if entry is None:
        return None if found is None or stat.S_ISDIR(found.st_mode) else Write(full, None)
    content = contents[entry.blob]
    if stat.S_ISLNK(entry.mode):
        link = os.fsdecode(content)
        if found is not None and stat.S_ISLNK(found.st_mode) and full.readlink() == Path(link):
            return None
        return Write(full, None, link=link)
    same = found is not None and stat.S_ISREG(found.st_mode) and found.st_size == len(content)
    if same and full.read_bytes() == content:
        return None
    return Write(full, content)


def _leads_outside(worktree: Path, coming: list[Write], going: set[Path]) -> None:
    """Refuse to write through a link that stands where a folder was.

    Raises:
        ToolError: nothing is changed.
    """
    for write in coming:
        for folder in write.path.parents:
            if folder == worktree:
                break
            if folder.is_symlink() and folder not in going:
                raise ToolError(
                    f"{write.path} cannot be restored: {folder} is a symbolic link now. Remove the link and try again. "
                    "Nothing is changed."
                )


def _in_the_way(path: Path, going: list[Write]) -> bool:
    """Whether a file can only come once others have gone: those in a folder of its name, or one named as its folder."""
    if path.is_dir() and not path.is_symlink():
        return True
    gone = {write.path for write in going}
    return any(folder in gone for folder in path.parents)


def _empty(worktree: Path, gone: list[Write]) -> None:
    """Remove the folders that were left empty, as git does."""
    for write in gone:
        for folder in write.path.parents:
            if folder == worktree:
                break
            try:
                folder.rmdir()
            except OSError:
                break


def _make_executable(path: Path, wanted: bool) -> bool:
    """Set or clear a file's execute bits; whoever may read may then execute."""
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if bool(mode & stat.S_IXUSR) != wanted:
            path.chmod(mode | (mode & 0o444) >> 2 if wanted else mode & ~0o111)
            return True
    return False
