"""The calls of one process, for a timeline that is kept up to date: rows from a place on, without their outputs."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from ._store_process import Writer
from .outcome import FAILURE_KEYS, failure_of
from .repair import requested_tool

_OWN = "tool IS NOT NULL AND pid = ? AND host = ? AND process_started = ?"
_FACTS = ", ".join(
    f"'{key}', json_extract(data, '$.state.{'input' if key == 'tool' else 'metadata'}.{key}')"
    for key in (*FAILURE_KEYS, "tool")
)
"""What of a completed call tells how it ended, and which tool it asked for, without its output."""
_COLUMNS = (
    "rowid, id, parent_id, session_id, tool, status, outcome, CASE WHEN title = '' THEN NULL ELSE title END, "
    'coalesce(start, written), "end", waited, agent, "by", decisions, '
    "CASE WHEN coalesce(title, '') = '' THEN data END, "
    f"CASE WHEN tool IN ('bash', 'batch', 'invalid') AND status = 'completed' THEN json_object({_FACTS}) END"
)
OPEN = ("pending", "running")


def read_own_calls(connection: sqlite3.Connection, writer: Writer, since: int, limit: int) -> dict[str, Any]:
    """The calls of one process from a place on, oldest first; of more than `limit`, the newest.

    Args:
        connection: the store's.
        writer: the process.
        since: where an earlier answer said to go on; 0 for all.
        limit: most calls.

    Returns:
        ``calls`` and ``since``: the place to go on from, so that what has not ended yet is told again. A call without
        a title has ``given``: its arguments. The outcome of a completed call says what failed in it.
    """
    who = (writer.pid, writer.host, writer.started)
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM parts WHERE rowid >= ? AND {_OWN} ORDER BY rowid DESC LIMIT ?",  # noqa: S608
        (since, *who, limit),
    ).fetchall()
    calls = [_call(row) for row in reversed(rows)]
    unfinished = [row[0] for row in rows if row[5] in OPEN]
    return {
        "calls": calls,
        "since": min(unfinished) if unfinished else max((row[0] for row in rows), default=since - 1) + 1,
    }


def _call(row: tuple[Any, ...]) -> dict[str, Any]:
    _, part_id, parent, session, tool, status, outcome, title, start, end, waited, agent, by, decisions, data, facts = (
        row
    )
    known = json.loads(facts) if facts else {}
    given = json.loads(data).get("state", {}).get("input") if data else None
    return {
        **({"given": given} if isinstance(given, dict) else {}),
        "id": part_id,
        "parent": parent,
        "session": session,
        "tool": requested_tool(tool, known),
        "state": status,
        "outcome": (failure_of(tool, known) if facts else "") or outcome,
        "title": title or "",
        "start": start,
        "end": end,
        "waited": round((waited or 0) * 1000),
        "waits": _waits(decisions) or _answered(tool, end, waited),
        "agent": agent,
        "by": by,
    }


def _answered(tool: str, end: int | None, waited: float | None) -> list[list[int]]:
    """The wait of a question, of which no decision tells: it ends with the answer, and the call with it."""
    return [[round(end - waited * 1000), end]] if tool == "question" and end and waited else []


def _waits(decisions: str) -> list[list[int]]:
    """Begin and end of each wait for a person, in Unix milliseconds."""
    found = []
    for decision in json.loads(decisions) if decisions not in ("", "[]") else []:
        waited, ended = decision.get("waited"), decision.get("time")
        if waited and ended:
            found.append([round(ended - waited * 1000), ended])
    return found
