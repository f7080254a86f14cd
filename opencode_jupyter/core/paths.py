"""Where a workspace's folder lies: its worktree, whether a path is inside, how a path is shown."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from .errors import ToolError
from .option_checks import check_path

PRIVATE = 0o700
"""Mode of the folders in which this package keeps data."""
LONGEST = 32_767
"""Characters of a path; Linux takes 4,096 bytes, Windows this many."""


def check_file_name(path: str) -> None:
    """Refuse what can't be the name of a file.

    Raises:
        ToolError: it is too long, or has characters that no file name can have.
    """
    if len(path) > LONGEST:  # looking for it, folder by folder, would take minutes
        raise ToolError(f"The path has {len(path):,} characters; a path can have {LONGEST:,} at most.")
    if "\0" in path:
        raise ToolError(f"The path {path!r} has a NUL character, which no file name can have.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ToolError(f"The path {path!r} can't be a file name: {error.reason}.") from error


def follow_links(path: str | os.PathLike[str]) -> str:
    """The real path of a path: absolute, with its links followed as far as they lead somewhere.

    Raises:
        ToolError: a link on the way must not be read (``/proc/1/root``, before Python 3.13).
    """
    try:
        return os.path.realpath(path)
    except OSError as error:
        where = os.fspath(error.filename or path)
        reason = (error.strerror or type(error).__name__).lower()
        raise ToolError(
            f"Where {os.fspath(path)} leads is not known: the link {where} can't be read ({reason})."
        ) from error


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone; existing ones keep their modes.

    Raises:
        OSError: it can't be made.
    """
    try:
        folder.mkdir(mode=PRIVATE, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_private_folder(folder.parent)
        folder.mkdir(mode=PRIVATE, exist_ok=True)


def data_folder() -> Path:
    """The user's folder for this package's data, closed to other users if it exists.

    A folder that a caller names instead may be meant for others too.
    """
    import platformdirs

    folder = Path(platformdirs.user_data_dir("opencode-jupyter", appauthor=False))
    with contextlib.suppress(OSError):
        status = folder.stat()
        if os.name == "posix" and status.st_uid == os.geteuid() and status.st_mode & 0o077:
            folder.chmod(stat.S_IMODE(status.st_mode) & PRIVATE)
    return folder


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
    check_path(directory, "directory")
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
    """Return whether a path is inside the folder or its worktree: as written and with its links followed."""
    check_path(path, "path")
    written = os.path.normpath(os.path.join(directory, path))
    if written == str(directory):
        return True
    return _is_inside(written, str(directory), str(worktree)) and _is_inside(
        follow_links(written), follow_links(directory), follow_links(worktree)
    )


def _is_inside(path: str, directory: str, worktree: str) -> bool:
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
    check_path(path, "path")
    versioned = str(worktree) != worktree.anchor
    base = str(worktree if versioned else directory)
    text = os.fspath(path)
    if follow:
        base, text = follow_links(base), follow_links(text)
    if not versioned and text != base and not text.startswith(base.rstrip(os.sep) + os.sep):
        return text
    shown = os.path.relpath(text, base)
    return "" if shown == "." else shown
