"""A file must have been read before it is overwritten, and not have changed since (docs/opencode/tools.md 14)."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import anyio

from .errors import ToolError

SLACK_NS = 50_000_000
"""A modification time may be so much later than the read (clocks of file systems are coarse; OpenCode's number)."""
HASH_LIMIT = 8 << 20
"""Files up to so many bytes are compared by content too, which finds a change that kept time and size."""
SWITCH = "OPENCODE_DISABLE_FILETIME_CHECK"


class NotReadError(ToolError):
    """The session has not read the file that it is to overwrite."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"You must read file {path} before overwriting it. Use the Read tool first",
            for_person=f"{path} has not been read in this session, so it was not changed. Read it first.",
        )
        self.path = path


class FileChangedError(ToolError):
    """The file is not what the session has read.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str, modified_ns: int, read_ns: int) -> None:
        super().__init__(
            f"File {path} has been modified since it was last read.\n"
            f"Last modification: {_iso(modified_ns)}\n"
            f"Last read: {_iso(read_ns)}\n\n"
            "Please read the file again before modifying it.",
            for_person=f"{path} was changed by somebody else after it was read or after this call began. "
            "Nothing was written. Run the call again to change the file as it is now.",
        )
        self.path = path


class Snapshot(NamedTuple):
    """The state of a file at one moment."""

    taken_ns: int
    modified_ns: int
    size: int
    digest: bytes | None
    """None for files over `HASH_LIMIT`."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Snapshot:
        """The file as it is now.

        Raises:
            OSError: it is not there or can't be read.
        """
        read_at = time.time_ns()
        # Files under /proc may make a reader wait for ever.
        with open(path, "rb", buffering=0, opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            digest = None
            if status.st_size <= HASH_LIMIT:
                digest = hashlib.blake2b(file.read(HASH_LIMIT + 1) or b"", digest_size=16).digest()
        return cls(read_at, status.st_mtime_ns, status.st_size, digest)

    def same_content(self, other: Snapshot) -> bool:
        """Return whether the file held the same at both moments; above `HASH_LIMIT` by size and modification time."""
        if self.digest is None or other.digest is None:
            return (self.size, self.modified_ns) == (other.size, other.modified_ns)
        return self.digest == other.digest


class FileTracker:
    """The files each session has read, and one lock per file. Kept in memory only."""

    def __init__(self) -> None:
        self._read: dict[str, dict[str, Snapshot]] = {}
        """By real path, then by session."""
        self._locks: dict[str, tuple[anyio.Lock, int]] = {}

    def read(self, session_id: str, path: str | os.PathLike[str], snapshot: Snapshot | None = None) -> None:
        """Remember that `session_id` knows the file.

        Args:
            session_id: the session.
            path: the file; links count as the file they lead to.
            snapshot: the file when it was read; as it is now, if left out.
        """
        real = self._key(path)
        if snapshot is None:
            try:
                snapshot = Snapshot.of(real)
            except OSError:  # deleted; the next check reports it
                return
        self._read.setdefault(real, {})[session_id] = snapshot

    @contextmanager
    def own_change(self, paths: Iterable[str | os.PathLike[str]]) -> Iterator[None]:
        """Count what happens to files within this block as our own change (undo, a revert, a formatter).

        A session that knew a file as it was before the block knows it as it is afterwards. One that never read the
        file, or had not seen its latest content, learns nothing.

        Args:
            paths: the files that may change; links count as the files they lead to.
        """
        up_to_date: dict[str, list[str]] = {}
        for path in {self._key(path) for path in paths} & self._read.keys():
            with suppress(OSError):  # missing: nobody knows it as it is
                now = Snapshot.of(path)
                known = list(self._read[path].items())
                up_to_date[path] = [session for session, snapshot in known if snapshot.same_content(now)]
        try:
            yield
        finally:
            for path, sessions in up_to_date.items():
                for session_id in sessions:
                    self.read(session_id, path)

    def get(self, session_id: str, path: str | os.PathLike[str]) -> Snapshot | None:
        """The file as the session last read it."""
        return self._read.get(self._key(path), {}).get(session_id)

    def check(self, session_id: str, path: str | os.PathLike[str]) -> None:
        """Go on only if the session has read the file and it has not changed since.

        Raises:
            NotReadError: never read.
            FileChangedError: changed since.
        """
        if os.environ.get(SWITCH, "").lower() in ("1", "true"):
            return
        shown = os.fspath(path)
        known = self.get(session_id, path)
        if known is None:
            raise NotReadError(shown)
        try:
            now = Path(path).stat()
        except FileNotFoundError:
            return  # nothing to lose; the caller finds out that it is missing
        changed = now.st_mtime_ns > known.taken_ns + SLACK_NS or now.st_size != known.size
        if not changed:
            if known.digest is None:
                changed = now.st_mtime_ns != known.modified_ns
            else:
                changed = Snapshot.of(path).digest != known.digest
        if changed:
            raise FileChangedError(shown, now.st_mtime_ns, known.taken_ns)

    @staticmethod
    def _key(path: str | os.PathLike[str]) -> str:
        return os.path.realpath(path)

    def held(self, path: str | os.PathLike[str]) -> bool:
        """Return whether a call holds the file's lock now."""
        return self._key(path) in self._locks

    @asynccontextmanager
    async def lock(self, path: str | os.PathLike[str]) -> AsyncIterator[None]:
        """Hold the file: calls on the same one (links resolved) go one after another, in the order they came."""
        real = self._key(path)
        lock, holders = self._locks.get(real) or (anyio.Lock(), 0)
        self._locks[real] = (lock, holders + 1)
        try:
            async with lock:
                yield
        finally:
            lock, holders = self._locks[real]
            if holders == 1:
                del self._locks[real]
            else:
                self._locks[real] = (lock, holders - 1)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))


def _iso(nanoseconds: int) -> str:
    moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
