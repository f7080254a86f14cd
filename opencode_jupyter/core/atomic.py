"""Write a file whole or not at all, and change several files, all of them or none.

The bytes go to a temporary file in the same folder, which then takes the file's place. A full disk, a killed process
or an error in between leaves the old file as it was. Of several files every new content is written first; then each
changes by renames, which need no space. The old ones stay under another name until all is done, and an error, a
vanished folder or a cancelled call puts them back as they were: content, mode, times, links.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import temporary_files
from .errors import ToolAbortedError, ToolError

NEW_FILE_MODE = 0o644
"""Of files that were not there, less the umask."""
OWN = 200
"""The files written last that are remembered as this process's own."""
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
        ToolError: it can't be written; the message has the reason and what to do. The old file is whole.
    """
    shown = os.fspath(path)
    try:
        target = Path(os.path.realpath(shown))
        existing = _target_status(target, shown)
        made = missing_folders(target.parent)
        with temporary_files.journaled():
            temporary = temporary_files.name(target.parent)
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


def disown(path: str) -> None:
    """Undo `note_own`."""
    _own.pop(path, None)


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


def _target_status(target: Path, shown: str) -> os.stat_result | None:
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


# ---------------------------------------------------------------------- several files


@dataclass(frozen=True, slots=True)
class Write:
    """One file and the content to write to it."""

    path: Path
    """Absolute, the links of its folder followed. A link at the path itself is replaced, not followed."""
    after: bytes | None
    """None: it is deleted."""
    before: bytes | None = None
    """Its present content: restored from here if even the old file under another name is gone."""
    mode: int | None = None
    """Permission bits; None for those it has, or `NEW_FILE_MODE` less the umask."""
    link: str | None = None
    """Make it a symbolic link to this instead."""


def write_all(writes: Sequence[Write], step: Callable[[int], None] = lambda done: None) -> list[Path]:
    """Make every change, or none.

    Args:
        writes: at most one for each path. A deleted file may make room for a folder of the same name.
        step: called before each file with the number of files done; what it raises ends the work, and all is restored.

    Returns:
        The folders that were made, outer ones first.

    Raises:
        ToolError: a change can't be made; the message has the reason, and states that nothing is changed.
    """
    with temporary_files.journaled():
        return _write_all(writes, step)


def _write_all(writes: Sequence[Write], step: Callable[[int], None]) -> list[Path]:
    transaction = _Transaction()
    current: Path | None = None
    try:
        for write in writes:
            step(0)
            current = write.path
            transaction.stage(write)
        for done, write in enumerate(_sort_writes(writes)):
            step(done)
            current = write.path
            transaction.commit(write)
    except BaseException as error:
        count = transaction.count
        lost = transaction.roll_back()
        if isinstance(error, OSError):
            raise ToolError(explain(error, str(current)) + _state(count, lost)) from error
        if isinstance(error, ToolError) and (lost or not isinstance(error, ToolAbortedError)):
            error.args = (f"{error}{_state(count, lost)}",)
        raise
    transaction.clean()
    return transaction.folders


def _sort_writes(writes: Sequence[Write]) -> list[Write]:
    """First the deletions that make room for a folder, then what is written, then the other deletions."""
    deleted = {write.path for write in writes if write.after is None and write.link is None}
    blocking = {parent for w in writes if w.path not in deleted for parent in w.path.parents if parent in deleted}
    first = [write for write in writes if write.path in blocking]
    last = [write for write in writes if write.path in deleted and write.path not in blocking]
    return first + [write for write in writes if write.path not in deleted] + last


@dataclass(frozen=True, slots=True)
class _Committed:
    """A change that is made: where the old file is now, and its status before."""

    write: Write
    aside: Path | None
    status: os.stat_result | None


class _Transaction:
    """The changes made so far, and how to undo them."""

    def __init__(self) -> None:
        self._log: list[_Committed | Path] = []
        """In order; a path is a folder that was made."""
        self._staged: dict[Path, Path] = {}

    @property
    def count(self) -> int:
        """How many files are changed."""
        return sum(isinstance(entry, _Committed) and not _is_untouched(entry) for entry in self._log)

    @property
    def folders(self) -> list[Path]:
        """The folders that were made."""
        return [entry for entry in self._log if isinstance(entry, Path)]

    def stage(self, write: Write) -> None:
        """Check that the change can be made, and write the new content to the disk."""
        existing = _status(write.path)
        if existing is not None and stat.S_ISDIR(existing.st_mode):
            raise ToolError(f"Path is a directory, not a file: {write.path}")
        if existing is not None and not stat.S_ISREG(existing.st_mode) and not stat.S_ISLNK(existing.st_mode):
            raise ToolError(f"Not a regular file: {write.path}. Only regular files can be written.")
        if write.after is None and write.link is None:
            if existing is None:
                raise ToolError(f"{write.path} no longer exists.")
            return
        if existing is not None and stat.S_ISREG(existing.st_mode) and not os.access(write.path, os.W_OK):
            raise PermissionError(errno.EACCES, "read-only file")
        temporary = temporary_files.name(_folder(write.path))
        self._staged[write.path] = temporary
        if write.link is not None:
            temporary.symlink_to(write.link)
            return
        like = existing if existing is not None and stat.S_ISREG(existing.st_mode) else None
        fill(temporary, write.after or b"", NEW_FILE_MODE, like)
        if like is not None:
            copy_attributes(write.path, temporary)
        if write.mode is not None:
            temporary.chmod(write.mode)

    def commit(self, write: Write) -> None:
        """Make the change."""
        status = _status(write.path)
        temporary = self._staged.get(write.path)
        if temporary is None:
            aside = temporary_files.name(write.path.parent, write.path)
            write.path.rename(aside)
            self._log.append(_Committed(write, aside, status))
            return
        self._make_folders(write.path.parent)
        if status is None:
            temporary.replace(write.path)
            note_own(write.path)
            self._log.append(_Committed(write, None, None))
        else:
            aside = temporary_files.name(write.path.parent, write.path)
            try:
                os.link(write.path, aside, follow_symlinks=False)
            except (OSError, NotImplementedError):  # a file system without hard links: a moment without the file
                write.path.rename(aside)
            self._log.append(_Committed(write, aside, status))
            temporary.replace(write.path)
            note_own(write.path)
        del self._staged[write.path]

    def _make_folders(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for path in reversed(missing):
            path.mkdir()
            self._log.append(path)

    def roll_back(self) -> list[str]:
        """Undo the changes; returns what could not be restored, with where its content is."""
        lost = []
        for entry in reversed(self._log):
            if isinstance(entry, Path):
                with contextlib.suppress(OSError):  # somebody else has put a file there
                    entry.rmdir()
                continue
            try:
                _restore(entry)
            except OSError as error:
                note = f"; its old content is in {entry.aside}" if entry.aside and os.path.lexists(entry.aside) else ""
                lost.append(f"{entry.write.path} ({error.strerror or error}{note})")
        for temporary in self._staged.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return lost

    def clean(self) -> None:
        """Delete the old files, which are not needed any more."""
        for entry in self._log:
            if isinstance(entry, _Committed) and entry.aside is not None:
                with contextlib.suppress(OSError):
                    entry.aside.unlink()


def _restore(done: _Committed) -> None:
    write, aside, status = done.write, done.aside, done.status
    if aside is None:
        write.path.unlink(missing_ok=True)
        return
    if _is_untouched(done):  # a folder may take new names and let none go
        with contextlib.suppress(OSError):
            aside.unlink()
        return
    try:
        aside.replace(write.path)
        aside.unlink(missing_ok=True)  # of two names of one file, replacing leaves both
    except FileNotFoundError:
        if write.before is None or status is None:
            raise
        write.path.parent.mkdir(parents=True, exist_ok=True)  # the folder has vanished, and the old file with it
        write.path.write_bytes(write.before)
        write.path.chmod(stat.S_IMODE(status.st_mode))
        os.utime(write.path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _is_untouched(done: _Committed) -> bool:
    """Return whether the old file is still where it was: it got its second name, and then could not be replaced."""
    try:
        return done.aside is not None and os.path.samestat(done.aside.lstat(), done.write.path.lstat())
    except OSError:
        return False


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _folder(path: Path) -> Path:
    """The nearest folder above `path` that is there: on the file system that `path` will be on."""
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder


def _state(count: int, lost: Sequence[str]) -> str:
    """The state on the disk after a failure, as a text to append to the reason."""
    if lost:
        return " NOT everything could be put back: " + ", ".join(lost)
    if count:
        return f" Everything already written was put back ({count} file{'s' * (count > 1)}); nothing is changed."
    return " Nothing is changed."
