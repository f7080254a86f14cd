"""Reading the store: parts, sessions, and the calls of lists and timelines. It all runs on the store's own thread."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from ..call_state import FAILURE_KEYS, failure_of
from ..repair import requested_tool
from .process_identity import ProcessIdentity
from .rows import EXTRA, text_of

DIRECT = "Direct calls"
"""The title of the session of calls without a model; it is not listed while it has none."""

_SESSION_COLUMNS = """
SELECT s.data,
    (SELECT count(*) FROM messages m WHERE m.session_id = s.id),
    (SELECT count(*) FROM parts p WHERE p.session_id = s.id AND p.tool IS NOT NULL),
    (SELECT total(json_extract(m.data, '$.cost')) FROM messages m WHERE m.session_id = s.id AND json_valid(m.data))
FROM sessions s WHERE (s.title != ? OR EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id))
"""
_ORDER = " ORDER BY s.updated DESC, s.rowid DESC LIMIT ?"
TITLE_LIMIT = 200
"""Characters of a call's input that stand in for a title it does not have."""
_OWN = "tool IS NOT NULL AND pid = ? AND host = ? AND process_started = ?"
_FACTS = ", ".join(
    f"'{key}', json_extract(data, '$.state.{'input' if key == 'tool' else 'metadata'}.{key}')"
    for key in (*FAILURE_KEYS, "tool")
)
"""The keys of a completed call that tell its outcome and its requested tool, without its output."""
UNTITLED = ("apply_patch", "batch", "todoread", "todowrite")
"""Tools whose title, which OpenCode prescribes, does not tell a person what a call did; one of ours has a better."""
_CALL_COLUMNS = (
    "rowid, id, parent_id, session_id, tool, status, outcome, CASE WHEN title = '' THEN NULL ELSE title END, "
    'coalesce(start, written), "end", waited, agent, "by", decisions, '
    f"CASE WHEN coalesce(title, '') = '' OR tool IN {UNTITLED} THEN data END, "
    f"CASE WHEN tool IN ('bash', 'batch', 'invalid') AND status = 'completed' THEN json_object({_FACTS}) END"
)
UNFINISHED = ("pending", "running")


def read_data(connection: sqlite3.Connection, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
    """The decoded first column of every row."""
    return [json.loads(row[0]) for row in connection.execute(sql, parameters)]


def read_parts(
    connection: sqlite3.Connection, session_id: str | None, message_id: str | None, limit: int | None
) -> list[dict[str, Any]]:
    """Parts, oldest first; of more than `limit`, the newest."""
    rows = connection.execute(
        'SELECT data, agent, "by", waited, outcome, decisions, parent_id FROM parts '
        "WHERE (?1 IS NULL OR session_id = ?1) AND (?2 IS NULL OR message_id = ?2) ORDER BY rowid DESC LIMIT ?3",
        (session_id, message_id, -1 if limit is None else limit),
    ).fetchall()
    parts = []
    for data, agent, by, waited, outcome, decisions, parent_id in reversed(rows):
        part = json.loads(data)
        part[EXTRA] = {
            "agent": agent,
            "by": by,
            "waited": waited,
            "outcome": outcome,
            "decisions": json.loads(decisions) if decisions != "[]" else [],
            "parentID": parent_id,
        }
        parts.append(part)
    return parts


_OF_NOTEBOOK = (
    "SELECT 1 FROM notebooks n WHERE n.path = ? AND n.pid = p.pid AND n.host = p.host "
    "AND n.process_started = p.process_started"
)


def read_calls(
    connection: sqlite3.Connection,
    limit: int,
    writer: ProcessIdentity | None = None,
    folder: str | None = None,
    label: Callable[[dict[str, Any]], str] | None = None,
    notebook: str | None = None,
) -> list[dict[str, Any]]:
    """The newest calls, newest first, one flat row each; see `Store.calls`."""
    conditions, parameters = ["p.tool IS NOT NULL"], list[Any]()
    if writer is not None:
        own = "p.pid = ? AND p.host = ? AND p.process_started = ?"
        conditions.append(f"({own} OR EXISTS ({_OF_NOTEBOOK}))" if notebook else own)
        parameters += [writer.pid, writer.host, writer.started, *([text_of(notebook)] if notebook else [])]
    if folder is not None:
        conditions.append("(s.directory = ? OR substr(s.directory, 1, ?) = ?)")
        below = folder.rstrip("/\\") + os.sep
        parameters += [folder, len(below), below]
    rows = connection.execute(
        'SELECT p.id, coalesce(p.start, p.written), p.tool, p.title, p.status, p.outcome, p.start, p."end", '  # noqa: S608
        'p.waited, p.agent, p."by", p.session_id, '
        "CASE WHEN ? OR coalesce(p.title, '') = '' THEN p.data END "
        f"FROM parts p LEFT JOIN sessions s ON s.id = p.session_id WHERE {' AND '.join(conditions)} "
        "ORDER BY p.rowid DESC LIMIT ?",
        (label is not None, *parameters, limit),
    )
    calls = []
    for part_id, at, tool, title, state, outcome, start, end, waited, agent, by, session, data in rows:
        part = json.loads(data) if data else {}
        wire = part.get("state", {})
        arguments = wire.get("input")
        calls.append(
            {
                "time": at,
                "tool": requested_tool(tool, arguments),
                "title": label(part)
                if label is not None
                else title or (json.dumps(arguments, ensure_ascii=False)[:TITLE_LIMIT] if arguments else ""),
                "state": state,
                "outcome": outcome,
                "failure": failure_of(tool, wire.get("metadata")) if state == "completed" else "",
                "seconds": None if start is None or end is None else (end - start) / 1000,
                "waited": waited,
                "agent": agent,
                "by": by,
                "session": session,
                "id": part_id,
            }
        )
    return calls


def read_own_calls(connection: sqlite3.Connection, writer: ProcessIdentity, since: int, limit: int) -> dict[str, Any]:
    """The calls of one process from a place on, oldest first; of more than `limit`, the newest.

    Args:
        connection: the store's.
        writer: the process.
        since: the ``since`` of an earlier answer; 0 for all.
        limit: most calls.

    Returns:
        ``calls`` and ``since``: where to continue, so that unfinished calls are returned again. A call whose title does
        not tell what it did has ``part``: all that is stored of it. The outcome of a completed call names what failed
        in it.
    """
    who = (writer.pid, writer.host, writer.started)
    rows = connection.execute(
        f"SELECT {_CALL_COLUMNS} FROM parts WHERE rowid >= ? AND {_OWN} ORDER BY rowid DESC LIMIT ?",  # noqa: S608
        (since, *who, limit),
    ).fetchall()
    calls = [_call(row) for row in reversed(rows)]
    unfinished = [row[0] for row in rows if row[5] in UNFINISHED]
    return {
        "calls": calls,
        "since": min(unfinished) if unfinished else max((row[0] for row in rows), default=since - 1) + 1,
    }


def _call(row: tuple[Any, ...]) -> dict[str, Any]:
    _, part_id, parent, session, tool, status, outcome, title, start, end, waited, agent, by, decisions, data, facts = (
        row
    )
    metadata = json.loads(facts) if facts else {}
    return {
        **({"part": json.loads(data)} if data else {}),
        "id": part_id,
        "parent": parent,
        "session": session,
        "tool": requested_tool(tool, metadata),
        "state": status,
        "outcome": (failure_of(tool, metadata) if facts else "") or outcome,
        "title": title or "",
        "start": start,
        "end": end,
        "waited": round((waited or 0) * 1000),
        "waits": _waits(decisions) or _question_wait(tool, end, waited),
        "agent": agent,
        "by": by,
    }


def _question_wait(tool: str, end: int | None, waited: float | None) -> list[list[int]]:
    """The wait of a question, which has no decision: it ends with the answer, and the call with it."""
    return [[round(end - waited * 1000), end]] if tool == "question" and end and waited else []


def _waits(decisions: str) -> list[list[int]]:
    """Start and end of each wait for a person, in Unix milliseconds."""
    waits = []
    for decision in json.loads(decisions) if decisions not in ("", "[]") else []:
        waited, ended = decision.get("waited"), decision.get("time")
        if waited and ended:
            waits.append([round(ended - waited * 1000), ended])
    return waits


def list_sessions(connection: sqlite3.Connection, directory: str | None, limit: int | None) -> list[dict[str, Any]]:
    """Sessions with their counts, the one changed last first."""
    most = -1 if limit is None else limit
    if directory is None:
        return _read_sessions(connection, _ORDER, (most,))
    return _read_sessions(connection, "AND s.directory = ?" + _ORDER, (text_of(directory), most))


def find_sessions(connection: sqlite3.Connection, name: str, limit: int) -> list[dict[str, Any]]:
    """Infos of sessions whose id is `name`, else begins with it (``ses_`` optional), else whose title it is."""
    text = text_of(name) or ""
    if not text:
        return []
    conditions: list[tuple[str, tuple[Any, ...]]] = [("id = ?", (text,))]
    connection.create_function("folded", 1, str.casefold, deterministic=True)
    starts = [text] if text.startswith("ses_") else [text, "ses_" + text]
    conditions += [("substr(id, 1, ?) = ?", (len(start), start)) for start in starts]
    conditions += [("title = ?", (text,)), ("folded(title) = folded(?)", (text,))]
    for where, values in conditions:
        sql = f"SELECT data FROM sessions WHERE {where} ORDER BY updated DESC, rowid DESC LIMIT ?"  # noqa: S608
        infos = read_data(connection, sql, (*values, limit))
        if infos:
            return infos
    return []


def children(connection: sqlite3.Connection, session_id: str) -> list[dict[str, Any]]:
    """The infos of the sessions that this one started, oldest first."""
    sql = "SELECT data FROM sessions WHERE parent_id = ? ORDER BY rowid"
    return read_data(connection, sql, (session_id,))


def ids_of_others(connection: sqlite3.Connection, session_id: str, ids: Iterable[str]) -> list[str]:
    """Which of these ids of messages and parts belong to other sessions."""
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS requested (id TEXT PRIMARY KEY)")
    connection.execute("DELETE FROM requested")
    connection.executemany("INSERT OR IGNORE INTO requested VALUES (?)", ((id,) for id in ids))
    rows = connection.execute(
        "SELECT m.id FROM messages m JOIN requested w ON w.id = m.id WHERE m.session_id != ?1 UNION ALL "
        "SELECT p.id FROM parts p JOIN requested w ON w.id = p.id WHERE p.session_id != ?1",
        (session_id,),
    ).fetchall()
    connection.execute("DELETE FROM requested")
    return [row[0] for row in rows]


def _read_sessions(connection: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
    rows = connection.execute(_SESSION_COLUMNS + where, (DIRECT, *values))
    return [
        {"info": json.loads(data), "messages": messages, "calls": calls, "cost": cost}
        for data, messages, calls, cost in rows
    ]
