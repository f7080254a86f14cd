"""Whole sessions in the store: the list of them, finding one by its name, writing one in a single transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from . import _store_rows as rows
from ._store_process import Writer

DIRECT = "Direct calls"
"""The title of the session that calls by hand belong to; one that no call came to is not listed."""

_COLUMNS = """
SELECT s.data,
    (SELECT count(*) FROM messages m WHERE m.session_id = s.id),
    (SELECT count(*) FROM parts p WHERE p.session_id = s.id AND p.tool IS NOT NULL),
    (SELECT total(json_extract(m.data, '$.cost')) FROM messages m WHERE m.session_id = s.id AND json_valid(m.data))
FROM sessions s WHERE (s.title != ? OR EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id))
"""
_ORDER = " ORDER BY s.updated DESC, s.rowid DESC LIMIT ?"


def add_session_columns(connection: sqlite3.Connection) -> None:
    """The second version of the store's file: what a list of 10,000 sessions needs to be quick."""
    connection.execute("ALTER TABLE sessions ADD COLUMN directory TEXT NOT NULL DEFAULT ''")
    connection.execute("ALTER TABLE sessions ADD COLUMN title TEXT NOT NULL DEFAULT ''")
    for session_id, data in connection.execute("SELECT id, data FROM sessions").fetchall():
        info = json.loads(data)
        connection.execute(
            "UPDATE sessions SET directory = ?, title = ? WHERE id = ?",
            (rows.text_of(info.get("directory")) or "", rows.text_of(info.get("title")) or "", session_id),
        )
    connection.execute("CREATE INDEX sessions_of_folder ON sessions (directory, updated)")
    connection.execute("CREATE INDEX sessions_of_parent ON sessions (parent_id)")
    connection.execute("CREATE INDEX sessions_by_time ON sessions (updated)")
    connection.execute("CREATE INDEX calls_of_session ON parts (session_id) WHERE tool IS NOT NULL")


def listed(connection: sqlite3.Connection, directory: str | None, limit: int | None) -> list[dict[str, Any]]:
    """Sessions with their counts, the one changed last first."""
    most = -1 if limit is None else limit
    if directory is None:
        return _read(connection, _ORDER, (most,))
    return _read(connection, "AND s.directory = ?" + _ORDER, (rows.text_of(directory), most))


def found(connection: sqlite3.Connection, name: str, limit: int) -> list[dict[str, Any]]:
    """Infos of sessions whose id is `name`, else begins with it (``ses_`` optional), else whose title it is."""
    wanted = rows.text_of(name) or ""
    if not wanted:
        return []
    tried: list[tuple[str, tuple[Any, ...]]] = [("id = ?", (wanted,))]
    connection.create_function("folded", 1, str.casefold, deterministic=True)
    starts = [wanted] if wanted.startswith("ses_") else [wanted, "ses_" + wanted]
    tried += [("substr(id, 1, ?) = ?", (len(start), start)) for start in starts]
    tried += [("title = ?", (wanted,)), ("folded(title) = folded(?)", (wanted,))]
    for where, values in tried:
        sql = f"SELECT data FROM sessions WHERE {where} ORDER BY updated DESC, rowid DESC LIMIT ?"  # noqa: S608
        there = rows.read_data(connection, sql, (*values, limit))
        if there:
            return there
    return []


def children(connection: sqlite3.Connection, session_id: str) -> list[dict[str, Any]]:
    """The infos of the sessions that were begun by this one, oldest first."""
    sql = "SELECT data FROM sessions WHERE parent_id = ? ORDER BY rowid"
    return rows.read_data(connection, sql, (session_id,))


def taken(connection: sqlite3.Connection, session_id: str, ids: Iterable[str]) -> list[str]:
    """Which of these ids of messages and parts belong to other sessions."""
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (id TEXT PRIMARY KEY)")
    connection.execute("DELETE FROM wanted")
    connection.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", ((one,) for one in ids))
    there = connection.execute(
        "SELECT m.id FROM messages m JOIN wanted w ON w.id = m.id WHERE m.session_id != ?1 UNION ALL "
        "SELECT p.id FROM parts p JOIN wanted w ON w.id = p.id WHERE p.session_id != ?1",
        (session_id,),
    ).fetchall()
    connection.execute("DELETE FROM wanted")
    return [row[0] for row in there]


def statements(
    info: Mapping[str, Any],
    messages: Iterable[Mapping[str, Any]],
    parts: Iterable[Mapping[str, Any]],
    writer: Writer,
) -> list[rows.Statement]:
    """What writes a session in place of what is there under its id."""
    owned = ("messages", "parts", "todos")
    gone: list[rows.Statement] = [
        (f"DELETE FROM {table} WHERE session_id = ?", (info["id"],))  # noqa: S608  (the names above)
        for table in owned
    ]
    return [
        *gone,
        rows.session_row(info),
        *map(rows.message_row, messages),
        *(rows.part_row(part, writer) for part in parts),
    ]


def _read(connection: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
    out = []
    for data, messages, calls, cost in connection.execute(_COLUMNS + where, (DIRECT, *values)):
        out.append({"info": json.loads(data), "messages": messages, "calls": calls, "cost": cost})
    return out
