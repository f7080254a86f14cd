"""Sessions, messages, parts, task lists and permission decisions in one SQLite file.

Writing is deferred: `put_*` only notes the object, and the store's thread writes a few milliseconds
later what there is then, so the three states of a short call cost one row. A call waits
for `committed` before it is reported as ended; calls that end together share one transaction. Several
processes (kernels) may use one file. Whatever goes wrong with the file, a call never fails by it:
the store continues in memory, reports it in `Store.problem`, and tries the file again now and then.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..call_state import ToolPart
from ..ids import create
from ..permission import Decision
from ..threads import resolve_all
from . import queries, rows
from .database import UnknownVersionError, inode, is_corrupt, move_aside, open_database
from .process_identity import this_process

log = logging.getLogger(__name__)
T = TypeVar("T")

COALESCE_S = 0.005
"""How long the writer waits for more after the first change."""
RETRY_S = 30.0
"""How long after a failure the file is tried again."""
RESCUE_BYTES = 64 * 1024 * 1024
"""Up to this size the file's content is copied when the store has to continue in memory."""

_ROW_ERRORS = (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError, OverflowError, UnicodeError)
_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_inherited: list[sqlite3.Connection | None] = []


class Store:
    """Storage of calls, requests and decisions across restarts (SQLite).

    Any thread may call any method. Objects given to `put_*` are written as they are when the
    writer comes to them, so a caller that changes one puts it again.

    Attributes:
        path: the file; None keeps everything in memory.
        problem: why the file is not in use at the moment, for people; None while all is well.
        moved_aside: where a damaged file was kept; None if there was none.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.problem: str | None = None
        self.moved_aside: Path | None = None
        self._parts: dict[str, ToolPart | dict[str, Any]] = {}
        self._others: dict[str, Callable[[], rows.Statement]] = {}
        self._commands: deque[tuple[Callable[[sqlite3.Connection], Any], Future[Any]]] = deque()
        self._waiters: list[asyncio.Future[None]] = []
        self._awake = False
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._lock = threading.Lock()
        self._closed = False
        self._unsaved: dict[str, list[rows.Statement]] = {}
        self._retry_at = 0.0
        self._is_unusable = False
        self._row_error_logged = False
        self._connection: sqlite3.Connection
        self._thread = threading.Thread(target=self._run, name="opencode-store", daemon=True)
        self._thread.start()
        _stores.add(self)

    # Writing: returns at once.

    def put_part(self, part: ToolPart | dict[str, Any]) -> None:
        """Keep a part: a tool part, or any part in wire form (extra columns under ``opencode_jupyter``)."""
        self._parts[part["id"] if isinstance(part, dict) else part.id] = part
        if not self._awake:
            self._wake.set()

    def put_session(self, info: dict[str, Any]) -> None:
        """Keep a session's info (``id``, ``parentID``, ``time.updated``, ...)."""
        self._put(info["id"], partial(rows.session_row, info))

    def put_message(self, info: dict[str, Any]) -> None:
        """Keep a message's info (``id``, ``sessionID``, ...)."""
        self._put(info["id"], partial(rows.message_row, info))

    def put_decision(self, decision: Decision | dict[str, Any]) -> None:
        """Keep a permission decision, under its request's id; one without gets an id of its own."""
        id = decision.get("id") if isinstance(decision, dict) else decision.request_id
        id = id or create("permission")
        self._put(id, partial(rows.decision_row, id, decision))

    def put_notebook(self, path: str) -> None:
        """Note the notebook that this process is the kernel of."""
        self._put("notebook", lambda: rows.notebook_row(path, this_process()))

    async def replace_todos(self, session_id: str, todos: list[Any]) -> None:
        """Make `todos` the session's task list."""
        self._put("todos:" + session_id, partial(rows.todos_row, session_id, list(todos)))

    def _put(self, key: str, make_row: Callable[[], rows.Statement]) -> None:
        """Note what is no part; `make_row` is called when it is written."""
        self._others[key] = make_row
        if not self._awake:
            self._wake.set()

    # Reading: sees everything put before.

    async def sessions(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Sessions, the one changed last first."""
        sql = "SELECT data FROM sessions ORDER BY updated DESC, rowid DESC LIMIT ?"
        return await self._query(lambda c: queries.read_data(c, sql, (-1 if limit is None else limit,)))

    async def session(self, session_id: str) -> dict[str, Any] | None:
        """One session's info; None if there is none."""
        infos = await self._query(
            lambda c: queries.read_data(c, "SELECT data FROM sessions WHERE id = ?", (session_id,)),
        )
        return infos[0] if infos else None

    async def list_sessions(self, directory: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """Sessions for a list, the one changed last first: of one folder, or of all.

        Returns:
            Rows with info, messages and calls (how many of each) and cost (US dollars, of the messages).
        """
        return await self._query(lambda c: queries.list_sessions(c, directory, limit))

    async def find_sessions(self, name: str, limit: int = 20) -> list[dict[str, Any]]:
        """The infos of the sessions of this id, else whose id begins so, else of this title."""
        return await self._query(lambda c: queries.find_sessions(c, name, limit))

    async def children(self, session_id: str) -> list[dict[str, Any]]:
        """The infos of the sessions that this one started, oldest first."""
        return await self._query(lambda c: queries.children(c, session_id))

    async def ids_of_others(self, session_id: str, ids: Collection[str]) -> list[str]:
        """Which of these ids of messages and parts belong to other sessions."""
        return await self._query(lambda c: queries.ids_of_others(c, session_id, ids))

    async def messages(self, session_id: str) -> list[dict[str, Any]]:
        """A session's messages, oldest first."""
        sql = "SELECT data FROM messages WHERE session_id = ? ORDER BY rowid"
        return await self._query(lambda c: queries.read_data(c, sql, (session_id,)))

    async def parts(
        self, session_id: str | None = None, message_id: str | None = None, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Parts in OpenCode's wire form, oldest first; of more than `limit`, the newest.

        Under ``opencode_jupyter`` each carries agent, by, waited (seconds), outcome, decisions and parentID.
        """
        return await self._query(lambda c: queries.read_parts(c, session_id, message_id, limit))

    async def calls(
        self,
        limit: int = 50,
        *,
        own: bool = False,
        folder: str | None = None,
        label: Callable[[dict[str, Any]], str] | None = None,
        notebook: str | None = None,
    ) -> list[dict[str, Any]]:
        """The newest tool calls, newest first.

        Args:
            limit: most calls.
            own: only those of this process and, with `notebook`, of every kernel of that notebook.
            folder: only those of sessions in this folder or below it.
            label: makes a call's title from its part in wire form; runs on the store's thread.
            notebook: a notebook's path, as given to `put_notebook`.

        Returns:
            Rows with time (Unix ms), tool, title, state, outcome, failure (`call_state.failure_of`),
            seconds (None until it has ended), waited (seconds), agent, by, session, id.
        """
        writer = this_process() if own else None
        return await self._query(lambda c: queries.read_calls(c, limit, writer, folder, label, notebook))

    async def own_calls(self, since: int = 0, limit: int = 5_000) -> dict[str, Any]:
        """The calls of this process from a place on (`queries.read_own_calls`)."""
        writer = this_process()
        return await self._query(lambda c: queries.read_own_calls(c, writer, since, limit))

    async def decisions(self, limit: int = 50) -> list[dict[str, Any]]:
        """The newest permission decisions, newest first."""
        sql = "SELECT data FROM decisions ORDER BY time DESC, rowid DESC LIMIT ?"
        return await self._query(lambda c: queries.read_data(c, sql, (limit,)))

    async def todos(self, session_id: str) -> list[Any]:
        """A session's task list; empty if it has none."""
        lists = await self._query(
            lambda c: queries.read_data(c, "SELECT data FROM todos WHERE session_id = ?", (session_id,)),
        )
        return list(lists[0]) if lists else []

    async def write_session(
        self, info: dict[str, Any], messages: Sequence[dict[str, Any]], parts: Sequence[dict[str, Any]]
    ) -> None:
        """Keep a whole session, in place of what is there under its id, in one transaction."""
        batch = {"session:" + info["id"]: rows.session_rows(info, messages, parts, this_process())}
        await self._query(lambda _: self._write(batch))

    async def delete_session(self, session_id: str) -> None:
        """Remove a session, the sessions started by it, and all that belongs to them."""
        batch = {"delete:" + session_id: rows.delete_rows(session_id)}
        await self._query(lambda _: self._write(batch))

    def delete_messages(self, ids: Collection[str]) -> Future[None]:
        """Remove messages and their parts. Returns at once; the future ends with the removal."""
        return self._delete(ids, rows.delete_message_rows)

    def delete_parts(self, ids: Collection[str]) -> Future[None]:
        """Remove parts. Returns at once; the future ends with the removal."""
        return self._delete(ids, rows.delete_part_rows)

    def _delete(self, ids: Collection[str], statements: Callable[[str], list[rows.Statement]]) -> Future[None]:
        # By a command, not by a put: what was put before must be written first, or it would come back.
        batch = {"delete:" + id: statements(id) for id in ids}
        try:
            return self._submit(lambda _: self._write(batch))
        except RuntimeError:  # closed: nothing is written any more, as with `put_*`
            ended: Future[None] = Future()
            ended.set_result(None)
            return ended

    # Waiting and closing.

    async def committed(self) -> None:
        """Wait until everything put before is committed; waits at the same time share the transaction."""
        future = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._closed:
                return
            self._waiters.append(future)
        if not self._hurry.is_set():
            self._hurry.set()
        if not self._awake:
            self._wake.set()
        await future

    async def flush(self) -> None:
        """Wait until everything put before is in the file."""
        await self._query(lambda _: None)

    def close(self) -> None:
        """Write the rest and close the file. Closing twice is fine."""
        with self._lock:
            self._closed = True
        self._hurry.set()
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=15)

    def disown(self) -> None:
        """In a forked child: neither use nor close the file, which is the parent's."""
        # Threads and SQLite connections do not survive a fork, so the lock and the thread may not be touched either.
        self._closed = True
        self.problem = "this store belongs to the process that opened it"
        self._thread = threading.current_thread()
        self._lock = threading.Lock()
        _inherited.append(getattr(self, "_connection", None))

    # Between the threads.

    async def _query(self, command: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.wrap_future(self._submit(command))

    def _submit(self, command: Callable[[sqlite3.Connection], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the store is closed")
            self._commands.append((command, future))
        self._hurry.set()
        self._wake.set()
        return future

    # Everything below runs on the writer's thread.

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            # Nobody may wait for a thread that is gone.
            log.exception("the store's writer ended; nothing is stored from now on")
            with self._lock:
                self._closed = True
                self.problem = f"nothing is kept any more: {error}"
                resolve_all(self._waiters)
            for _, future in self._commands:
                future.set_exception(RuntimeError(self.problem))

    def _serve(self) -> None:
        self._connection = self._open()
        while True:
            # The order matters: a put between the two lines is seen by the second, one after it sets the event.
            self._awake = False
            if not (self._parts or self._others or self._commands or self._waiters or self._closed):
                self._wake.wait()
            self._awake = True
            self._wake.clear()
            self._hurry.wait(COALESCE_S)
            self._hurry.clear()
            closing = self._closed
            commands = [self._commands.popleft() for _ in range(len(self._commands))]
            with self._lock:
                waiters, self._waiters = self._waiters, []
            self._guarded(self._drain)
            resolve_all(waiters)
            for command, future in commands:
                self._answer(command, future)
            if closing and not self._commands:
                break
        if self._unsaved:
            self._retry_at = 0.0
            self._guarded(self._retry)
        self._guarded(self._connection.close)

    def _guarded(self, step: Callable[[], None]) -> None:
        """The writer must survive any error, or every later `flush` would hang."""
        try:
            step()
        except Exception:
            log.exception("the store's writer failed; rows may be missing")

    def _answer(self, command: Callable[[sqlite3.Connection], Any], future: Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            try:
                answer = command(self._connection)
            except sqlite3.Error as error:
                self._leave_file(error)
                answer = command(self._connection)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(answer)

    def _drain(self) -> None:
        """Write what was put; removed item by item, since other threads continue to put."""
        writer = this_process()
        batch: dict[str, list[rows.Statement]] = {}
        makers = _take(self._others)
        makers += [(key, partial(rows.part_row, part, writer)) for key, part in _take(self._parts)]
        for key, make_row in makers:
            try:
                batch[key] = [make_row()]
            except Exception as error:
                self._row_failed(error)
        if batch:
            self._write(batch)

    def _write(self, batch: Mapping[str, list[rows.Statement]]) -> None:
        if self._unsaved and time.monotonic() >= self._retry_at:
            self._retry()
        try:
            self._transaction(self._connection, batch)
        except sqlite3.Error as error:
            self._leave_file(error)
            self._transaction(self._connection, batch)
        if self.problem and not self._is_unusable:
            for key, statements in batch.items():
                self._unsaved.pop(key, None)  # so that it comes after a deletion in between
                self._unsaved[key] = statements

    def _transaction(self, connection: sqlite3.Connection, batch: Mapping[str, list[rows.Statement]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statements in batch.values():
                for sql, parameters in statements:
                    try:
                        connection.execute(sql, parameters)
                    except _ROW_ERRORS as error:
                        self._row_failed(error)
            connection.execute("COMMIT")
        except BaseException:
            # A full disk has rolled back by itself.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _row_failed(self, error: BaseException) -> None:
        if not self._row_error_logged:
            self._row_error_logged = True
            log.warning("a row could not be stored (logged once): %s: %s", type(error).__name__, error)

    # Problems with the file.

    def _open(self) -> sqlite3.Connection:
        try:
            return self._open_file()
        except Exception as error:
            self._set_problem(error)
            return open_database(None)

    def _open_file(self, busy_ms: int = 3000) -> sqlite3.Connection:
        before = inode(self.path)
        try:
            return open_database(self.path, busy_ms)
        except sqlite3.DatabaseError as error:
            if self.path is None or not is_corrupt(error):
                raise
            # Another process may have met the same damage and already started a new file.
            if inode(self.path) == before:
                self.moved_aside = move_aside(self.path) or self.moved_aside
            return open_database(self.path, busy_ms)

    def _leave_file(self, error: sqlite3.Error) -> None:
        """Continue with a new file if this one is damaged, else in memory with what can be rescued."""
        if self.path is None or self.problem:
            raise error
        old = self._connection
        if is_corrupt(error):
            old.close()
            self.moved_aside = move_aside(self.path) or self.moved_aside
            self._connection = self._open()
            return
        self._set_problem(error)
        self._connection = open_database(None)
        try:
            if old.in_transaction:
                old.execute("ROLLBACK")
            if self.path.stat().st_size <= RESCUE_BYTES:
                old.backup(self._connection)
        except (sqlite3.Error, OSError):
            self._connection.close()
            self._connection = open_database(None)
        old.close()

    def _set_problem(self, error: BaseException) -> None:
        self.problem = f"the history is kept in memory only: {self.path}: {error}"
        self._is_unusable = isinstance(error, UnknownVersionError)
        self._retry_at = time.monotonic() + RETRY_S
        log.warning("%s", self.problem)

    def _retry(self) -> None:
        """Try to use the file again, and write what it missed."""
        self._retry_at = time.monotonic() + RETRY_S
        connection = None
        try:
            connection = self._open_file(busy_ms=200)
            self._transaction(connection, self._unsaved)
        except Exception as error:
            log.debug("%s still can't be used: %s", self.path, error)
            if connection is not None:
                connection.close()
            return
        self._connection.close()
        self._connection = connection
        self._unsaved = {}
        self.problem = None
        log.info("the history is written to %s again", self.path)


def _take(items: dict[str, T]) -> list[tuple[str, T]]:
    entries = []
    while items:
        entries.append(items.popitem())
    entries.reverse()
    return entries


@atexit.register
def _close_all() -> None:
    for store in list(_stores):
        store.close()


def _after_fork() -> None:
    for store in list(_stores):
        store.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
