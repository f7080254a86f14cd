"""The statements that write sessions, messages, parts and decisions."""

from __future__ import annotations

import dataclasses
import json
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_json

from ..call_state import ToolPart, now_ms
from .process_identity import ProcessIdentity

Statement = tuple[str, tuple[Any, ...]]

EXTRA = "opencode_jupyter"
"""The key of a part's wire form that carries what OpenCode's own form has no place for."""

_PUT_SESSION = (
    "INSERT INTO sessions (id, parent_id, updated, directory, title, data) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET parent_id = excluded.parent_id, updated = excluded.updated, "
    "directory = excluded.directory, title = excluded.title, data = excluded.data"
)
_PUT_MESSAGE = (
    "INSERT INTO messages (id, session_id, data) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
    "session_id = excluded.session_id, data = excluded.data"
)
_PART_COLUMNS = [
    *("id", "session_id", "message_id", "parent_id", "tool", "status", "title", "start", '"end"', "written"),
    *("agent", '"by"', "outcome", "waited", "decisions", "host", "pid", "process_started", "data"),
]
_PUT_PART = (  # the names above and nothing else
    f"INSERT INTO parts ({', '.join(_PART_COLUMNS)}) VALUES ({', '.join('?' * len(_PART_COLUMNS))}) "  # noqa: S608
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _PART_COLUMNS[1:])}"
)
_PUT_DECISION = "INSERT OR REPLACE INTO decisions (id, session_id, time, data) VALUES (?, ?, ?, ?)"
_PUT_TODOS = "INSERT OR REPLACE INTO todos (session_id, data) VALUES (?, ?)"
_FAMILY = (
    "(WITH RECURSIVE family (id) AS (VALUES (?) UNION SELECT s.id FROM sessions s JOIN family f ON s.parent_id = f.id) "
    "SELECT id FROM family)"
)


def encode(value: Any) -> str:
    """JSON of `value`; what JSON does not know becomes text. Any Python string can be kept."""
    for attempt in range(3):
        try:
            return _encode_plain(value) if _is_plain(value) else _encode(value)
        except RuntimeError as error:
            # A tool may change its metadata while it is being written here; the next put brings the end state.
            if isinstance(error, RecursionError) or attempt == 2:
                break
        except (TypeError, ValueError):
            break
    return json.dumps({"unserialisable": ascii(type(value).__name__)})


def _is_plain(value: Any) -> bool:
    """Return whether there is nothing in it but what JSON has."""
    kind = type(value)
    if kind is dict:
        if not _STRINGS.issuperset(map(type, value)):
            return False
        value = value.values()
    elif kind is not list:
        return kind in _SCALARS
    for item in value:  # noqa: SIM110 - `all` would take twice as long, and this looks at every row
        if type(item) not in _SCALARS and not _is_plain(item):
            return False
    return True


def _encode_plain(value: Any) -> str:
    """JSON of what `_is_plain`, in a quarter of the time."""
    try:
        return to_json(value).decode()
    except ValueError:  # half of a surrogate pair, which UTF-8 has no form for: ASCII has
        return _encode(value)


def _to_plain(value: Any) -> Any:
    if callable(getattr(value, "to_wire", None)):
        return value.to_wire()
    if callable(getattr(value, "model_dump", None)):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)


_STRINGS = frozenset({str})
_SCALARS = frozenset({str, int, float, bool, type(None)})
_encode = json.JSONEncoder(separators=(",", ":"), default=_to_plain, skipkeys=True).encode


def session_row(info: Mapping[str, Any]) -> Statement:
    """The statement that keeps a session."""
    updated = _integer((info.get("time") or {}).get("updated"))
    return _PUT_SESSION, (
        info["id"],
        info.get("parentID"),
        now_ms() if updated is None else updated,
        text_of(info.get("directory")) or "",
        text_of(info.get("title")) or "",
        encode(info),
    )


def message_row(info: Mapping[str, Any]) -> Statement:
    """The statement that keeps a message."""
    return _PUT_MESSAGE, (info["id"], info["sessionID"], encode(info))


def part_row(part: ToolPart | Mapping[str, Any], writer: ProcessIdentity) -> Statement:
    """The statement that keeps a part: a tool part with its extra columns, or any part in wire form."""
    if isinstance(part, ToolPart):
        wire = part.to_wire()
        facts: tuple[Any, ...] = (part.agent, part.by, part.outcome, part.waited, list(part.decisions), part.parent_id)
    else:
        wire = dict(part)
        extra = wire.pop(EXTRA, None) or {}
        facts = tuple(map(extra.get, ("agent", "by", "outcome", "waited", "decisions", "parentID")))
    who, by, outcome, waited, decisions, parent = facts
    state = _as_mapping(wire.get("state"))  # another release's part may have something else there
    times = _as_mapping(state.get("time"))
    tool = wire.get("tool")
    data = encode(wire)
    if data.startswith('{"unserialisable"'):
        wire["state"] = {**state, "input": {}, "metadata": {"unserialisable": ascii(reprlib.repr(state))}}
        data = encode(wire)
    return _PUT_PART, (
        wire["id"],
        wire["sessionID"],
        wire["messageID"],
        parent,
        text_of(tool) if isinstance(tool, str) else None,
        text_of(state.get("status")),
        text_of(state.get("title")),
        _integer(times.get("start")),
        _integer(times.get("end")),
        now_ms(),
        text_of(who) or "",
        text_of(by) or "",
        text_of(outcome) or "",
        float(waited or 0.0),
        encode([decision_wire(d) for d in decisions]) if decisions else "[]",
        writer.host,
        writer.pid,
        writer.started,
        data,
    )


def decision_row(identifier: str, decision: Any) -> Statement:
    """The statement that keeps a permission decision."""
    wire = decision_wire(decision)
    made = _integer(wire.get("time"))
    return _PUT_DECISION, (
        identifier,
        wire.get("sessionID") or wire.get("session_id") or "",
        now_ms() if made is None else made,
        encode(wire),
    )


def decision_wire(decision: Any) -> dict[str, Any]:
    """A decision as a dict; its rules keep where they come from."""
    if isinstance(decision, Mapping):
        wire = dict(decision)
    elif dataclasses.is_dataclass(decision) and not isinstance(decision, type):
        wire = {f.name: getattr(decision, f.name) for f in dataclasses.fields(decision)}
    else:
        return {"decision": str(decision)}
    rules = wire.get("rules")
    if isinstance(rules, (list, tuple)):
        wire["rules"] = [_rule(r) for r in rules]
    return wire


def _rule(rule: Any) -> Any:
    if isinstance(rule, Mapping) or not hasattr(rule, "pattern"):
        return rule
    names = ("permission", "pattern", "action", "origin")
    return {name: getattr(rule, name) for name in names if hasattr(rule, name)}


def todos_row(session_id: str, todos: list[Any]) -> Statement:
    """The statement that replaces a session's task list."""
    return _PUT_TODOS, (session_id, encode(todos))


def delete_rows(session_id: str) -> list[Statement]:
    """The statements that remove a session, the sessions started by it, and all that belongs to them."""
    owned = ("messages", "parts", "decisions", "todos")
    columns = [*((table, "session_id") for table in owned), ("sessions", "id")]
    return [(f"DELETE FROM {table} WHERE {column} IN {_FAMILY}", (session_id,)) for table, column in columns]  # noqa: S608


def delete_message_rows(message_id: str) -> list[Statement]:
    """The statements that remove a message and its parts."""
    session = "(SELECT session_id FROM messages WHERE id = ?)"  # the parts' index begins with it
    return [
        (f"DELETE FROM parts WHERE session_id IN {session} AND message_id = ?", (message_id, message_id)),  # noqa: S608
        ("DELETE FROM messages WHERE id = ?", (message_id,)),
    ]


def delete_part_rows(part_id: str) -> list[Statement]:
    """The statement that removes a part."""
    return [("DELETE FROM parts WHERE id = ?", (part_id,))]


def notebook_row(path: str, writer: ProcessIdentity) -> Statement:
    """The notebook that a process is the kernel of."""
    values = (writer.host, writer.pid, writer.started, text_of(path))
    return "INSERT OR REPLACE INTO notebooks (host, pid, process_started, path) VALUES (?, ?, ?, ?)", values


def session_rows(
    info: Mapping[str, Any],
    messages: Iterable[Mapping[str, Any]],
    parts: Iterable[Mapping[str, Any]],
    writer: ProcessIdentity,
) -> list[Statement]:
    """The statements that write a whole session in place of what is stored under its id."""
    owned = ("messages", "parts", "todos")
    removals: list[Statement] = [
        (f"DELETE FROM {table} WHERE session_id = ?", (info["id"],))  # noqa: S608  (the names above)
        for table in owned
    ]
    return [
        *removals,
        session_row(info),
        *map(message_row, messages),
        *(part_row(part, writer) for part in parts),
    ]


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def _integer(value: Any) -> int | None:
    if type(value) is int and -(2**63) < value < 2**63:
        return value
    if isinstance(value, (int, float)) and abs(value) < 2**63:  # also false for NaN
        return int(value)
    return None


def text_of(value: Any) -> str | None:
    """A value as text that SQLite takes: half of a surrogate pair is written as an escape."""
    if value is None or (type(value) is str and value.isascii()):
        return value
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")
