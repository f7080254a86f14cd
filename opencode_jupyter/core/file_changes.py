"""The changes tools made to files, and their undo.

The content before each change is kept in ``<data>/undo``, readable by the owner only, within bounds. Entries
belong to this process: another notebook's changes are not undone from here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from . import temporary_files
from .call_state import now_ms
from .errors import ToolError
from .file_tracker import FileTracker
from .paths import make_private_folder

if TYPE_CHECKING:
    from .atomic import Write

MAX_ENTRIES = 500
MAX_BYTES = 256 << 20
"""Of all kept contents together."""
MAX_AGE = 7 * 24 * 3600
"""Seconds after which what a process left behind is removed."""


class ChangedSinceError(ToolError):
    """A file has changed since the call whose change is to be undone."""


class Author(NamedTuple):
    """The call that makes a change."""

    session_id: str
    call_id: str
    tool: str


class Change(NamedTuple):
    """One change of one file by a tool."""

    path: Path
    session_id: str
    call_id: str
    tool: str
    time_ms: int
    """Unix milliseconds."""
    created: bool
    """The file was not there before."""
    deleted: bool
    """The file is not there afterwards."""
    blob: Path | None
    """Holds the content before; None if there was none or it was too large to keep."""
    before_size: int
    after_digest: bytes | None
    step: int = 0
    """Changes of one step are undone together."""
    mode: int | None = None
    """Permission bits of a file that is not there afterwards."""
    link: str | None = None
    """Where the symbolic link led that was there before."""
    folders: tuple[Path, ...] = ()
    """Folders that were made for it, outer ones first."""

    @property
    def undoable(self) -> bool:
        """True if the content before is still known."""
        return self.created or self.blob is not None or self.link is not None


class Changes:
    """The changes of this process, newest last.

    Args:
        data_dir: the data folder; contents go to its ``undo`` folder.
        files: the files that sessions have read; an undo counts there as our own change.
    """

    def __init__(self, data_dir: Path, files: FileTracker | None = None) -> None:
        self._files = files or FileTracker()
        self._folder = Path(data_dir) / "undo"
        self._entries: deque[Change] = deque()
        self._bytes = 0
        self._steps = 0
        self._lock = threading.Lock()
        self._swept = False
        temporary_files.use(Path(data_dir))

    def entries(self) -> list[Change]:
        """All changes that are remembered, oldest first."""
        return list(self._entries)

    def next_step(self) -> int:
        """A number for `record`, for all the changes that one undo reverts."""
        with self._lock:
            self._steps += 1
            return self._steps

    def record(
        self,
        path: Path,
        before: bytes | None,
        after: bytes | None,
        author: Author,
        *,
        step: int | None = None,
        mode: int | None = None,
        link: str | None = None,
        folders: Sequence[Path] = (),
    ) -> Change:
        """Remember a change that has been made.

        Args:
            path: the file.
            before: its content before; None if it was not there.
            after: its content now; None if it was deleted.
            author: whose change it is.
            step: from `next_step`, for one of several changes that belong together; a step of its own if left out.
            mode: permission bits of a file that was deleted.
            link: where it led, if a symbolic link was replaced or deleted; `before` counts for nothing then.
            folders: made for the file.
        """
        blob: Path | None = None
        if step is None:
            step = self.next_step()
        if before is not None and link is None and len(before) <= MAX_BYTES // 4:
            with contextlib.suppress(OSError):  # a full disk must not fail the edit, which is done
                blob = self._store_content(before)
        change = Change(
            path=Path(os.path.realpath(path)),
            session_id=author.session_id,
            call_id=author.call_id,
            tool=author.tool,
            time_ms=now_ms(),
            created=before is None and link is None,
            deleted=after is None,
            blob=blob,
            before_size=len(before or b""),
            after_digest=None if after is None else _digest(after),
            step=step,
            mode=mode,
            link=link,
            folders=tuple(folders),
        )
        with self._lock:
            self._entries.append(change)
            self._bytes += change.before_size if blob else 0
            # A step is forgotten whole, and never the last one.
            while (oldest := self._entries[0].step) != step and self._is_full():
                self._drop_steps({oldest})
        return change

    def _drop_steps(self, steps: set[int]) -> None:
        for change in self._entries:
            if change.step in steps:
                self._forget(change)
        self._entries = deque(change for change in self._entries if change.step not in steps)

    def _is_full(self) -> bool:
        return len(self._entries) > MAX_ENTRIES or self._bytes > MAX_BYTES

    def amend(self, change: Change, after: bytes) -> None:
        """Correct what the file holds after `change`: a formatter has been at work since."""
        with self._lock, contextlib.suppress(ValueError):
            index = self._entries.index(change)
            self._entries[index] = change._replace(after_digest=_digest(after))

    def undo(self, n: int = 1, force: bool = False) -> list[Change]:
        """Undo the last `n` steps, all of them or none: single changes, or those that one call made together.

        Args:
            n: how many.
            force: also when a file has changed since; what it holds now is lost.

        Returns:
            The undone changes, newest first.

        Raises:
            ToolError: there is nothing to undo, a file has changed since, or its content before was not kept.
        """
        with self._lock:
            steps = set(list(dict.fromkeys(change.step for change in reversed(self._entries)))[: max(0, n)])
            undone = [change for change in reversed(self._entries) if change.step in steps]
            if not undone:
                raise ToolError("There is no change to undo.")
            self._check(undone, force)
            self._restore(undone)
            self._drop_steps(steps)
            return undone

    def revert_calls(
        self, calls: Collection[str], *, force: bool = False, kept_as: str | None = None, session_id: str = ""
    ) -> tuple[list[Change], dict[Path, str]]:
        """Undo all changes of some calls, file by file; a file that can't be restored is skipped.

        Args:
            calls: their ids.
            force: also when a file has changed since; what it holds now is lost, unless `kept_as` is given.
            kept_as: record what is replaced under this call id, so that it can be undone in turn.
            session_id: the session of that record.

        Returns:
            The undone changes, newest first; and the files that were skipped, each with the reason.

        Raises:
            ToolError: a file can't be written; nothing is changed.
        """
        with self._lock:
            reverted = [change for change in reversed(self._entries) if change.call_id in calls]
            skipped: dict[Path, str] = {}
            for path in dict.fromkeys(change.path for change in reverted):
                try:
                    self._check([change for change in reverted if change.path == path], force)
                except ToolError as error:
                    skipped[path] = str(error)
            reverted = [change for change in reverted if change.path not in skipped]
            now = {change.path: change.path.read_bytes() if change.path.is_file() else None for change in reverted}
            self._restore(reverted)
            for change in reverted:
                self._forget(change)
                self._entries.remove(change)
        if kept_as is not None and now:
            step = self.next_step()
            for path, before in now.items():
                after = path.read_bytes() if path.is_file() else None
                self.record(path, before, after, Author(session_id, kept_as, "revert"), step=step)
        return reverted, skipped

    def _restore(self, changes: list[Change]) -> None:
        """Restore the files as they were before these changes (newest first)."""
        with self._files.own_change(change.path for change in changes):
            from .atomic import write_all  # here, as below: few sessions undo anything

            write_all(_restoring_writes(changes))
        for change in changes:
            for folder in reversed(change.folders):
                with contextlib.suppress(OSError):  # something else is in it by now
                    folder.rmdir()

    def _check(self, changes: list[Change], force: bool) -> None:
        expected: dict[Path, bytes | None] = {}  # what a file will hold once the changes after this one are undone
        for change in changes:
            if not change.undoable or (change.blob is not None and not change.blob.exists()):
                raise ToolError(
                    f"The content of {change.path} before the {change.tool} call was not saved "
                    f"({change.before_size} bytes), so it can't be undone."
                )
            if not force:
                now = expected[change.path] if change.path in expected else _digest_of(change.path)
                if now != change.after_digest:
                    raise ChangedSinceError(
                        f"{change.path} has changed since the {change.tool} call; undoing it would lose that. "
                        "Undo with force to do it anyway."
                    )
            if change.link is not None:
                expected[change.path] = _digest_of(change.path.parent / change.link)
            else:
                expected[change.path] = None if change.blob is None else _digest(change.blob.read_bytes())

    def _store_content(self, content: bytes) -> Path:
        make_private_folder(self._folder)
        if not self._swept:
            self._swept = True
            self._sweep()
        path = self._folder / f"{now_ms():013d}-{secrets.token_hex(8)}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def _sweep(self) -> None:
        oldest = time.time() - MAX_AGE
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _forget(self, change: Change) -> None:
        if change.blob is not None:
            self._bytes -= change.before_size
            with contextlib.suppress(OSError):
                change.blob.unlink()


def _restoring_writes(changes: Sequence[Change]) -> list[Write]:
    """The writes that restore the files as they were before these changes (newest first)."""
    from .atomic import Write

    oldest = {change.path: change for change in changes}
    writes = []
    for path, change in oldest.items():
        if not change.created:
            content = None if change.blob is None else change.blob.read_bytes()
            writes.append(Write(path, content, mode=change.mode, link=change.link))
        elif os.path.lexists(path):
            writes.append(Write(path, None))
    return writes


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _digest_of(path: Path) -> bytes | None:
    try:
        return _digest(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
