"""What tools changed in files, and how to take it back.

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
from dataclasses import dataclass, replace
from pathlib import Path

from . import atomic
from .errors import ToolError

MAX_ENTRIES = 500
MAX_BYTES = 256 << 20
"""Of all kept contents together."""
MAX_AGE = 7 * 24 * 3600
"""Seconds after which what a process left behind is removed."""


@dataclass(frozen=True, slots=True)
class Change:
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

    @property
    def undoable(self) -> bool:
        """Whether the content before is still known."""
        return self.created or self.blob is not None


class Changes:
    """The changes of this process, newest last.

    Args:
        data_dir: the data folder; contents go to its ``undo`` folder.
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder = Path(data_dir) / "undo"
        self._entries: deque[Change] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self._swept = False

    def entries(self) -> list[Change]:
        """All changes that are remembered, oldest first."""
        return list(self._entries)

    def record(
        self, path: Path, before: bytes | None, after: bytes | None, session_id: str, call_id: str, tool: str
    ) -> Change:
        """Remember a change that has been made.

        Args:
            path: the file.
            before: its content before; None if it was not there.
            after: its content now; None if it was deleted.
            session_id: the session.
            call_id: the call.
            tool: the tool's id.
        """
        blob: Path | None = None
        if before is not None and len(before) <= MAX_BYTES // 4:
            with contextlib.suppress(OSError):  # a full disk must not fail the edit, which is done
                blob = self._keep(before)
        change = Change(
            path=Path(os.path.realpath(path)),
            session_id=session_id,
            call_id=call_id,
            tool=tool,
            time_ms=time.time_ns() // 1_000_000,
            created=before is None,
            deleted=after is None,
            blob=blob,
            before_size=len(before or b""),
            after_digest=None if after is None else _digest(after),
        )
        with self._lock:
            self._entries.append(change)
            self._bytes += change.before_size if blob else 0
            while len(self._entries) > MAX_ENTRIES or (self._bytes > MAX_BYTES and len(self._entries) > 1):
                self._forget(self._entries.popleft())
        return change

    def amend(self, change: Change, after: bytes) -> None:
        """Correct what the file holds after `change`: a formatter has been at work since."""
        with self._lock, contextlib.suppress(ValueError):
            index = self._entries.index(change)
            self._entries[index] = replace(change, after_digest=_digest(after))

    def undo(self, n: int = 1, force: bool = False) -> list[Change]:
        """Take the last `n` changes back, all of them or none.

        Args:
            n: how many.
            force: also when a file has changed since; what it holds now is lost.

        Returns:
            The changes taken back, newest first.

        Raises:
            ToolError: there is nothing to undo, a file has changed since, or its content before was not kept.
        """
        with self._lock:
            chosen = list(self._entries)[::-1][: max(0, n)]
            if not chosen:
                raise ToolError("There is no change to undo.")
            self._check(chosen, force)
            done: list[Change] = []
            for change in chosen:
                if change.created:
                    change.path.unlink(missing_ok=True)
                elif change.blob is not None:
                    atomic.write(change.path, change.blob.read_bytes())
                done.append(change)
                self._forget(self._entries.pop())
            return done

    def _check(self, chosen: list[Change], force: bool) -> None:
        expected: dict[Path, bytes | None] = {}  # what a file will hold once the changes after this one are undone
        for change in chosen:
            if not change.undoable or (change.blob is not None and not change.blob.exists()):
                raise ToolError(
                    f"The content of {change.path} before the {change.tool} call was not kept "
                    f"({change.before_size} bytes), so it can't be undone."
                )
            if not force:
                now = expected[change.path] if change.path in expected else _digest_of(change.path)
                if now != change.after_digest:
                    raise ToolError(
                        f"{change.path} has changed since the {change.tool} call; undoing it would lose that. "
                        "Undo with force to do it all the same."
                    )
            expected[change.path] = None if change.blob is None else _digest(change.blob.read_bytes())

    def _keep(self, content: bytes) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._swept:
            self._swept = True
            self._sweep()
        path = self._folder / f"{time.time_ns() // 1_000_000:013d}-{secrets.token_hex(8)}"
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


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _digest_of(path: Path) -> bytes | None:
    try:
        return _digest(path.read_bytes())
    except FileNotFoundError:
        return None
