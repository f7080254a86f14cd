"""Where a workspace's folder lies: its worktree, whether a path is inside, how a path is shown."""

from __future__ import annotations

import os
from pathlib import Path


def find_worktree(directory: Path) -> Path:
    """The nearest folder upward that holds ``.git`` (a folder or a file); ``/`` when there is none."""
    for folder in (directory, *directory.parents):
        if (folder / ".git").exists():
            return folder
    return Path(directory.anchor)


def folders(directory: str | os.PathLike[str]) -> tuple[Path, Path]:
    """A workspace's folder as an absolute path, and its worktree.

    Raises:
        NotADirectoryError: it is no folder.
    """
    folder = Path(os.path.abspath(os.path.expanduser(directory)))
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; a Workspace needs one that exists")
    return folder, find_worktree(folder)


def other_spelling(path: str, directory: Path, worktree: Path) -> str:
    """A path as rules judge it (`relative`) as an absolute one, an absolute one as rules judge it."""
    if os.path.isabs(path):
        return relative(os.path.normpath(path), directory, worktree)
    return os.path.normpath(os.path.join(directory if str(worktree) == worktree.anchor else worktree, path))


def contains(path: str | os.PathLike[str], directory: Path, worktree: Path) -> bool:
    """Whether a path is inside the folder or its worktree: as written and with its links followed."""
    written = os.path.normpath(os.path.join(directory, path))
    return _inside(written, str(directory), str(worktree)) and _inside(
        os.path.realpath(written), os.path.realpath(directory), os.path.realpath(worktree)
    )


def _inside(path: str, directory: str, worktree: str) -> bool:
    def within(parent: str) -> bool:
        return path == parent or path.startswith(parent.rstrip(os.sep) + os.sep)

    return within(directory) or (worktree != os.sep and within(worktree))


def relative(path: str | os.PathLike[str], directory: Path, worktree: Path, *, follow: bool = False) -> str:
    """An absolute path relative to the worktree, or without one to the folder (then absolute outside it).

    Args:
        path: absolute.
        directory: the workspace's folder.
        worktree: its worktree; the root of the file system if there is none.
        follow: compare real paths, with links followed on both sides.
    """
    versioned = str(worktree) != worktree.anchor
    base = str(worktree if versioned else directory)
    text = os.fspath(path)
    if follow:
        base, text = os.path.realpath(base), os.path.realpath(text)
    if not versioned and text != base and not text.startswith(base.rstrip(os.sep) + os.sep):
        return text
    shown = os.path.relpath(text, base)
    return "" if shown == "." else shown
