"""The audit log: every permission decision as a line of JSON, each with the hash of the line before it.

It lies beside the store and is only ever appended to, by any number of processes. The chain shows where a line was
changed, removed or inserted later; it cannot show that lines are missing at the end, or that all was written anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .file_lock import lock_file
from .paths import make_private_folder
from .store.rows import decision_wire, encode

if TYPE_CHECKING:
    from .call_state import ToolPart
    from .permission.decision import Decision

log = logging.getLogger(__name__)
FIRST = "0" * 64
"""Stands for the hash of the line before the first."""
_TAIL = 1 << 16


@functools.lru_cache(maxsize=16)
def audit_log(data_dir: Path) -> AuditLog:
    """The log of a data folder."""
    return AuditLog(data_dir / "audit.jsonl")


def entry_of(part: ToolPart, decision: Decision) -> dict[str, Any]:
    """What the log keeps of a decision of a call."""
    wire = decision_wire(decision)
    arguments = hashlib.sha256(encode(part.state.input).encode("utf-8", "backslashreplace")).hexdigest()
    metadata = getattr(part.state, "metadata", None) or {}
    return {
        "time": decision.time,
        "session": part.session_id,
        "call": part.call_id,
        "tool": part.tool,
        "agent": part.agent,
        "caller": part.by,
        "arguments": arguments,
        **{name: wire[name] for name in ("request_id", "permission", "patterns", "action", "reply", "by", "rules")},
        "sandbox": metadata.get("sandbox"),
    }


class AuditLog:
    """Appends to and checks one log file.

    Args:
        path: the file; it is created, readable by its owner alone, with the first decision.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._end: tuple[int, int, str] | None = None
        """Inode and size after our last line, and its hash."""
        self._failed = False

    def append(self, entry: dict[str, Any]) -> None:
        """Add a line. A call does not fail by a log that cannot be written; a warning is logged once."""
        try:
            with self._lock, self._open() as descriptor:
                self._append(descriptor, entry)
        except OSError as error:
            if not self._failed:
                self._failed = True
                log.warning("permission decisions cannot be written to %s (logged once): %s", self.path, error)

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        try:
            descriptor = os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            make_private_folder(self.path.parent)
            descriptor = os.open(self.path, flags, 0o600)
        try:
            lock_file(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _append(self, descriptor: int, entry: dict[str, Any]) -> None:
        status = os.fstat(descriptor)
        begin = b""
        if self._end is not None and self._end[:2] == (status.st_ino, status.st_size):
            previous = self._end[2]
        else:
            previous, begin = _last_hash(descriptor, status.st_size)
        body = encode({**entry, "previous": previous})
        digest = _hash(body)
        line = begin + f'{body[:-1]},"hash":"{digest}"}}\n'.encode("utf-8", "backslashreplace")
        if os.write(descriptor, line) != len(line):  # a full disk
            os.ftruncate(descriptor, status.st_size)
            raise OSError("no space left on the disk")
        self._end = (status.st_ino, status.st_size + len(line), digest)

    def last(self, count: int) -> list[dict[str, Any]]:
        """The newest entries, newest first; lines that cannot be read are left out (see `verify`)."""
        try:
            with self.path.open("rb") as file:
                lines = deque(file, maxlen=count)
        except FileNotFoundError:
            return []
        return [entry for entry in map(_parse, reversed(lines)) if entry is not None]

    def verify(self) -> tuple[int, list[tuple[int, str]]]:
        """How many lines there are, and the lines (from 1) at which the chain is broken, each with what is wrong."""
        problems: list[tuple[int, str]] = []
        count, expected = 0, FIRST
        try:
            with self.path.open("rb") as file:
                for count, line in enumerate(file, 1):
                    entry = _parse(line)
                    digest = entry.pop("hash", None) if entry is not None else None
                    if entry is None or not isinstance(digest, str):
                        problems.append((count, "the line is no entry of the log"))
                        expected = ""
                        continue
                    if digest != _hash(encode(entry)):
                        problems.append((count, "the line was changed"))
                    elif entry.get("previous") != expected and expected:
                        problems.append((count, "lines before it were removed, inserted or reordered"))
                    expected = digest
        except FileNotFoundError:
            pass
        return count, problems


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "backslashreplace")).hexdigest()


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _last_hash(descriptor: int, size: int) -> tuple[str, bytes]:
    """The hash of the last line, and what must come before the next one (the end of a line that was cut)."""
    if not size:
        return FIRST, b""
    length = _TAIL
    while True:
        start = max(0, size - length)
        os.lseek(descriptor, start, os.SEEK_SET)
        tail = os.read(descriptor, size - start)
        lines = tail.splitlines()
        if start == 0 or len(lines) > 1:
            break
        length *= 4
    entry = _parse(lines[-1]) or {}
    return str(entry.get("hash", FIRST)), b"" if tail.endswith(b"\n") else b"\n"
