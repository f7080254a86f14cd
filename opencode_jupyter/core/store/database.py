"""The store's file: tables, versions, opening, and what is done about a file that can't be used."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from ..call_state import CallOutcome
from ..flags import flag
from ..paths import make_private_folder
from .process_identity import ProcessIdentity, is_alive, this_process

log = logging.getLogger(__name__)

ABORTED = "Tool execution aborted"
"""OpenCode's error of a call whose process ended before it."""
CANCELLED = "The kernel ended while this call waited for approval. Nothing was run."
SYNC = "OPENCODE_JUPYTER_STORE_SYNC"
"""Switch: every commit waits until it is on the disk."""
FOREIGN_HOURS = 24
"""Unfinished rows of another machine (a shared home folder) can't be checked; they are given up after this long."""

_TABLES = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, parent_id TEXT, updated INTEGER NOT NULL, data TEXT NOT NULL,
    directory TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '');
CREATE INDEX sessions_of_folder ON sessions (directory, updated);
CREATE INDEX sessions_of_parent ON sessions (parent_id);
CREATE INDEX sessions_by_time ON sessions (updated);
CREATE TABLE messages (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX messages_of_session ON messages (session_id);
CREATE TABLE parts (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, message_id TEXT NOT NULL, parent_id TEXT,
    tool TEXT, status TEXT, title TEXT, start INTEGER, "end" INTEGER, written INTEGER NOT NULL,
    agent TEXT NOT NULL, "by" TEXT NOT NULL, outcome TEXT NOT NULL, waited REAL NOT NULL, decisions TEXT NOT NULL,
    host TEXT NOT NULL, pid INTEGER NOT NULL, process_started TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX parts_of_session ON parts (session_id, message_id);
CREATE INDEX parts_unfinished ON parts (status) WHERE status IN ('pending', 'running');
CREATE INDEX calls_of_session ON parts (session_id) WHERE tool IS NOT NULL;
CREATE TABLE decisions (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time INTEGER NOT NULL, data TEXT NOT NULL);
CREATE INDEX decisions_of_session ON decisions (session_id);
CREATE TABLE todos (session_id TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE notebooks (
    host TEXT NOT NULL, pid INTEGER NOT NULL, process_started TEXT NOT NULL, path TEXT NOT NULL,
    PRIMARY KEY (host, pid, process_started));
CREATE INDEX notebooks_by_path ON notebooks (path)
"""
FIRST_VERSION = 3
"""The version of `_TABLES`; a file keeps its own in ``PRAGMA user_version``."""
MIGRATIONS: list[str | Callable[[sqlite3.Connection], None]] = []
"""Step n brings a file from version `FIRST_VERSION` + n to the next."""


class UnknownVersionError(Exception):
    """The file was written by another release, whose tables this one does not know."""


def is_corrupt(error: BaseException) -> bool:
    """Return whether SQLite reports that the file's content is damaged (or is no database at all)."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def open_database(path: Path | None, busy_ms: int = 3000) -> sqlite3.Connection:
    """Connect, bring the tables up to date, end what dead processes left open.

    Args:
        path: the file; made, readable by its owner alone, if it is not there. None is memory.
        busy_ms: how long a statement waits for another process's transaction.

    Raises:
        sqlite3.Error: the file can't be opened, written or understood.
        OSError: its folder can't be made or the file can't be created.
        UnknownVersionError: another release, whose tables this one does not know, wrote it.
    """
    if path is not None:
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(":memory:" if path is None else path, isolation_level=None)
    try:
        connection.execute(f"PRAGMA busy_timeout = {busy_ms:d}")
        if path is not None:
            _set_wal(connection, busy_ms)
        # NORMAL survives a killed process; FULL waits for the disk too, so it survives a power failure
        connection.execute(f"PRAGMA synchronous = {'FULL' if flag(SYNC) else 'NORMAL'}")
        _migrate(connection)
        _end_abandoned(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def inode(path: Path | None) -> int | None:
    """The number of the file that is there now; None if there is none."""
    try:
        return None if path is None else path.stat().st_ino
    except OSError:
        return None


def move_aside(path: Path) -> Path | None:
    """Rename a damaged file, and what belongs to it, to ``NAME.corrupt-DATE``.

    Returns:
        The new name; None if it could not be renamed.
    """
    target = path.with_name(f"{path.name}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    try:
        path.replace(target)
        for suffix in ("-wal", "-shm"):
            beside = path.with_name(path.name + suffix)
            if beside.exists():
                beside.replace(target.with_name(target.name + suffix))
    except OSError as error:
        log.warning("%s is damaged and could not be renamed: %s", path, error)
        return None
    log.warning("%s is damaged; it was renamed to %s and a new one was created", path, target.name)
    return target


def _set_wal(connection: sqlite3.Connection, busy_ms: int) -> None:
    # SQLite does not wait for this lock by itself when two processes make a new file at once.
    deadline = time.monotonic() + busy_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(connection: sqlite3.Connection) -> None:
    newest = FIRST_VERSION + len(MIGRATIONS)
    version = _version(connection)
    if version == newest:
        return
    if version and not FIRST_VERSION <= version < newest:
        raise UnknownVersionError(f"it has version {version}, this release knows {FIRST_VERSION} to {newest}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # asked again under the lock: another process may have been quicker
        for step in MIGRATIONS[version - FIRST_VERSION :] if version else [_TABLES, *MIGRATIONS]:
            if callable(step):
                step(connection)
            else:
                for statement in filter(str.strip, step.split(";")):
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {newest:d}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _end_abandoned(connection: sqlite3.Connection) -> None:
    """Turn unfinished calls of dead processes into errors."""
    rows = connection.execute(
        "SELECT id, host, pid, process_started, written, outcome, data FROM parts "
        "WHERE status IN ('pending', 'running')"
    ).fetchall()
    if not rows:
        return
    now = time.time_ns() // 1_000_000
    here = this_process().host
    alive: dict[ProcessIdentity, bool] = {}
    ended: list[tuple[str, int, str, str]] = []
    for part_id, host, pid, started, written, outcome, data in rows:
        writer = ProcessIdentity(host, pid, started)
        if host != here:
            is_running = now - written < FOREIGN_HOURS * 3_600_000
        else:
            if writer not in alive:
                alive[writer] = is_alive(writer)
            is_running = alive[writer]
        if not is_running:
            waited = outcome == CallOutcome.WAITING
            end, error = (CallOutcome.CANCELLED, CANCELLED) if waited else (CallOutcome.ENDED, ABORTED)
            ended.append((end, now, _aborted(data, now, error), part_id))
    if not ended:
        return
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "UPDATE parts SET status = 'error', outcome = ?, \"end\" = ?, data = ? "
        "WHERE id = ? AND status IN ('pending', 'running')",
        ended,
    )
    connection.execute("COMMIT")


def _aborted(data: str, now: int, error: str) -> str:
    part = json.loads(data)
    state = part.get("state") or {}
    start = (state.get("time") or {}).get("start", now)
    part["state"] = {
        "status": "error",
        "input": state.get("input", {}),
        "error": error,
        "time": {"start": start, "end": now},
    }
    if state.get("metadata") is not None:
        part["state"]["metadata"] = state["metadata"]
    return json.dumps(part, separators=(",", ":"))
