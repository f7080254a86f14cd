"""A session as rows: one for each part of each message, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...agent.exchange.reading import EXTRA, read
from ...core.call_outcome import failure_of
from ...text.visible import visible
from ..cards.labels import label_of_wire
from ..cards.wording import duration
from .history import state_of

if TYPE_CHECKING:
    from ...core.sessions import Session
    from ...workspace import Workspace

COLUMNS = ("#", "who", "part", "what", "state", "seconds")
CHARS = 2000
"""Characters of a part that a row holds."""


def display_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as people read them: without the beginnings of steps, which hold only the hash of a snapshot."""
    return [
        {**row, "seconds": "" if row["seconds"] is None else duration(row["seconds"] * 1000)}
        for row in rows
        if row["part"] != "step-start"
    ]


async def rows_of(workspace: Workspace, session: Session) -> list[dict[str, Any]]:
    """The parts of a session's messages; ``#`` counts the messages from 1. A message without parts has a row, too."""
    session_info, messages = await read(workspace, session)
    hidden_from = (session_info.get("revert") or {}).get("messageID")
    rows, hidden = [], False
    for number, message in enumerate(messages, 1):
        info = message["info"]
        hidden = hidden or info["id"] == hidden_from
        who = "user" if info.get("role") == "user" else str(info.get("agent") or info.get("mode") or "assistant")
        head = {"#": number, "who": f"{who} (undone)" if hidden else who}
        rows += [{**head, **_row(part)} for part in message["parts"]]
        error = info.get("error")
        if error or not message["parts"]:
            error_text = (error.get("data") or {}).get("message") or error.get("name") if error else ""
            rows.append({**head, "part": "error" if error else "", "what": error_text, "state": "", "seconds": None})
    return rows


def _row(part: dict[str, Any]) -> dict[str, Any]:
    kind, state = str(part.get("type")), part.get("state") or {}
    times = (state if kind == "tool" else part).get("time") or {}
    start, end = times.get("start"), times.get("end")
    what = visible(_what(kind, part, state)[:CHARS])
    kind_text = f"tool {part.get('tool')}" if kind == "tool" else kind
    seconds = (end - start) / 1000 if isinstance(start, int) and isinstance(end, int) else None
    return {"part": kind_text, "what": what, "state": _state(part, state) if kind == "tool" else "", "seconds": seconds}


def _state(part: dict[str, Any], state: dict[str, Any]) -> str:
    outcome = str((part.get(EXTRA) or {}).get("outcome") or "")
    failure = failure_of(str(part.get("tool")), state.get("metadata"))
    return state_of(str(state.get("status", "")), outcome, failure)


def _what(kind: str, part: dict[str, Any], state: dict[str, Any]) -> str:
    if kind == "tool":
        label = label_of_wire(part)
        files = "".join(f" [{file.get('mime')}]" for file in state.get("attachments") or ())
        if state.get("status") == "error":
            return f"{label}: {state.get('error')}"
        return f"{label}: {state.get('output') or ''}{files}"
    if kind in ("text", "reasoning"):
        return str(part.get("text") or "")
    if kind == "file":
        return f"{part.get('filename') or ''} [{part.get('mime')}]"
    if kind == "patch":
        return ", ".join(map(str, part.get("files") or ()))
    if kind == "step-finish":
        tokens = part.get("tokens") or {}
        return f"{part.get('reason')}: {tokens.get('input', 0)} tokens in, {tokens.get('output', 0)} out"
    left = ("id", "sessionID", "messageID", "type", EXTRA)
    return " ".join(f"{key}={value}" for key, value in part.items() if key not in left)
