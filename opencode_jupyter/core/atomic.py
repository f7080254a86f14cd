"""Write a file whole or not at all.

The bytes go to a temporary file in the same folder, which then takes the file's place. A full disk, a
killed process or an error in between leaves the old file as it was.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from . import temporaries
from .errors import ToolError

NEW_FILE_MODE = 0o644
"""Of files that were not there, less the umask."""
OWN = 200
"""Files that this process wrote last that are remembered."""
_own: dict[str, tuple[int, int]] = {}


def write(path: str | os.PathLike[str], data: bytes, *, mode: int = NEW_FILE_MODE) -> Path:
    """Put `data` into `path`, its folders made if missing; an existing file keeps mode, owner and attributes.

    A symbolic link stays: the file it leads to is written.

    Args:
        path: the file.
        data: its whole new content.
        mode: permission bits for a file that was not there.

    Returns:
        The file that was written, links resolved.

    Raises:
        ToolError: it can't be written; the message says why and what to do. The old file is whole.
    """
    shown = os.fspath(path)
    try:
        target = Path(os.path.realpath(shown))
        existing = _existing(target, shown)
        made = missing_folders(target.parent)
        with temporaries.journaled():
            temporary = temporaries.name(target.parent)
            try:
                for folder in reversed(made):  # one by one: `mkdir(parents=True)` recurses
                    folder.mkdir(exist_ok=True)
                fill(temporary, data, mode, existing)
                if existing is not None:
                    copy_attributes(target, temporary)
                temporary.replace(target)
                note_own(target)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                for folder in made:
                    with contextlib.suppress(OSError):  # somebody else may have put something in
                        folder.rmdir()
                raise
    except OSError as error:
        raise ToolError(explain(error, shown)) from error
    return target


def note_own(path: Path) -> None:
    """Note that this process has just written a file, for `is_own`."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        _own.pop(str(path), None)
        _own[str(path)] = status.st_ino, status.st_mtime_ns
        if len(_own) > OWN:
            del _own[next(iter(_own))]


def is_own(path: str) -> bool:
    """Whether this process wrote a file as it is now."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        return _own.get(path) == (status.st_ino, status.st_mtime_ns)
    return False


def missing_folders(folder: Path) -> list[Path]:
    """`folder` and those above it that are not there, inner ones first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    return missing


def _existing(target: Path, shown: str) -> os.stat_result | None:
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"Path is a directory, not a file: {shown}")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"Not a regular file: {shown}. Only regular files can be written.")
    if not os.access(target, os.W_OK):  # replacing asks only for a writable folder, but read-only means read-only
        raise PermissionError(errno.EACCES, "read-only file")
    return status


def fill(temporary: Path, data: bytes, mode: int, existing: os.stat_result | None) -> None:
    """Make a new file with `data`; mode and owner are those of `existing`, or `mode` less the umask.

    Raises:
        OSError: it can't be made or written whole.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    # Until it has the old file's mode, nobody else may read it.
    descriptor = os.open(temporary, flags, mode if existing is None else 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        if existing is not None:
            if hasattr(os, "fchown") and (existing.st_uid, existing.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), existing.st_uid, existing.st_gid)
            temporary.chmod(stat.S_IMODE(existing.st_mode))


def copy_attributes(source: Path, target: Path) -> None:
    """Copy the extended attributes (tags, access lists) of a file as far as this user may set them."""
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for attribute in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(target, attribute, os.getxattr(source, attribute))


def explain(error: OSError, path: str) -> str:
    """The reason why `path` could not be written, with what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        state = "The file is unchanged" if os.path.exists(path) else "Nothing was written"
        return f"No space left on the disk to write {path}. {state}; free some space and try again."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"No permission to write {path}. Change its (or its folder's) permissions, or write somewhere else."
    if error.errno == errno.EROFS:
        return f"{path} is on a read-only file system. Write somewhere else."
    if error.errno == errno.ENAMETOOLONG:
        return f"The file name is too long: {path}"
    if error.errno == errno.ENOENT:
        return f"Can't write {path}: no file can be made in that folder."
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"Can't write {path}: a part of its path is a file, not a folder."
    if error.errno == errno.ELOOP:
        return f"Can't write {path}: its symbolic links go in a circle."
    return f"Can't write {path}: {error.strerror or error}"
