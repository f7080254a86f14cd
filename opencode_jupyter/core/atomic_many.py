"""Change several files, all of them or none.

Every new content is written beside its place first, so a full disk is found before anything is touched. Then
each file changes by renames, which need no space; the old ones stay under another name until all is done, and an
error, a vanished folder or a cancelled call puts them back as they were: content, mode, times, links.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import atomic, temporaries
from .errors import ToolAbortedError, ToolError


@dataclass(frozen=True, slots=True)
class Write:
    """One file and the content to write to it."""

    path: Path
    """Absolute, the links of its folder followed. A link at the path itself is replaced, not followed."""
    after: bytes | None
    """None: it goes."""
    before: bytes | None = None
    """What it holds now: put back from here if even its old self under another name is gone."""
    mode: int | None = None
    """Permission bits; None for those it has, or `atomic.NEW_FILE_MODE` less the umask."""
    link: str | None = None
    """Make it a symbolic link to this instead."""


def write_all(writes: Sequence[Write], step: Callable[[int], None] = lambda done: None) -> list[Path]:
    """Make every change, or none.

    Args:
        writes: at most one for each path. A file that goes may make room for a folder of the same name.
        step: called before each file with the number of files done; what it raises ends the work, and all is put back.

    Returns:
        The folders that were made, outer ones first.

    Raises:
        ToolError: a change can't be made; the message says why, and that nothing is changed.
    """
    with temporaries.journaled():
        return _write_all(writes, step)


def _write_all(writes: Sequence[Write], step: Callable[[int], None]) -> list[Path]:
    work = _Work()
    current: Path | None = None
    try:
        for write in writes:
            step(0)
            current = write.path
            work.stage(write)
        for done, write in enumerate(_ordered(writes)):
            step(done)
            current = write.path
            work.commit(write)
    except BaseException as error:
        count = work.count
        lost = work.put_back()
        if isinstance(error, OSError):
            raise ToolError(atomic.explain(error, str(current)) + _state(count, lost)) from error
        if isinstance(error, ToolError) and (lost or not isinstance(error, ToolAbortedError)):
            error.args = (f"{error}{_state(count, lost)}",)
        raise
    work.clean()
    return work.folders


def _ordered(writes: Sequence[Write]) -> list[Write]:
    """First the files in whose place a folder is needed go, then all is written, then the others go."""
    going = {write.path for write in writes if write.after is None and write.link is None}
    blocking = {parent for w in writes if w.path not in going for parent in w.path.parents if parent in going}
    first = [write for write in writes if write.path in blocking]
    last = [write for write in writes if write.path in going and write.path not in blocking]
    return first + [write for write in writes if write.path not in going] + last


@dataclass(frozen=True, slots=True)
class _Done:
    """A change that is made: where the old file is now, and what it was."""

    write: Write
    aside: Path | None
    found: os.stat_result | None


class _Work:
    """The changes made so far, and how to take them back."""

    def __init__(self) -> None:
        self._log: list[_Done | Path] = []
        """In order; a path is a folder that was made."""
        self._staged: dict[Path, Path] = {}

    @property
    def count(self) -> int:
        """How many files are changed."""
        return sum(isinstance(entry, _Done) and not _untouched(entry) for entry in self._log)

    @property
    def folders(self) -> list[Path]:
        """The folders that were made."""
        return [entry for entry in self._log if isinstance(entry, Path)]

    def stage(self, write: Write) -> None:
        """Find out whether the change can be made, and write the new content to the disk."""
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
        temporary = temporaries.name(_folder(write.path))
        self._staged[write.path] = temporary
        if write.link is not None:
            temporary.symlink_to(write.link)
            return
        like = existing if existing is not None and stat.S_ISREG(existing.st_mode) else None
        atomic.fill(temporary, write.after or b"", atomic.NEW_FILE_MODE, like)
        if like is not None:
            atomic.copy_attributes(write.path, temporary)
        if write.mode is not None:
            temporary.chmod(write.mode)

    def commit(self, write: Write) -> None:
        """Make the change."""
        status = _status(write.path)
        temporary = self._staged.get(write.path)
        if temporary is None:
            aside = temporaries.name(write.path.parent, write.path)
            write.path.rename(aside)
            self._log.append(_Done(write, aside, status))
            return
        self._make_folders(write.path.parent)
        if status is None:
            temporary.replace(write.path)
            atomic.note_own(write.path)
            self._log.append(_Done(write, None, None))
        else:
            aside = temporaries.name(write.path.parent, write.path)
            try:
                os.link(write.path, aside, follow_symlinks=False)
            except (OSError, NotImplementedError):  # a file system without hard links: a moment without the file
                write.path.rename(aside)
            self._log.append(_Done(write, aside, status))
            temporary.replace(write.path)
            atomic.note_own(write.path)
        del self._staged[write.path]

    def _make_folders(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for path in reversed(missing):
            path.mkdir()
            self._log.append(path)

    def put_back(self) -> list[str]:
        """Undo what was done; what could not be put back is told, with where its content is."""
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
        """All is done: the old files are not needed any more."""
        for entry in self._log:
            if isinstance(entry, _Done) and entry.aside is not None:
                with contextlib.suppress(OSError):
                    entry.aside.unlink()


def _restore(done: _Done) -> None:
    write, aside, status = done.write, done.aside, done.found
    if aside is None:
        write.path.unlink(missing_ok=True)
        return
    if _untouched(done):  # a folder may take new names and let none go
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


def _untouched(done: _Done) -> bool:
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
