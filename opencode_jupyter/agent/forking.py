"""Forking a session: a new one with copies of its messages, which goes its own way from there."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from ..core.call_state import now_ms
from ..core.errors import InvalidArgumentsError
from ..core.messages import Message
from .exchange.importing import store_session
from .exchange.session_data import NewIds, aborted_state, read

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .sessions import AgentSession

_FORKED = re.compile(r"(.*) \(fork #(\d+)\)", re.DOTALL)
_INHERITED = ("directory", "path", "projectID", "agent", "model", "permission", "metadata")
"""Keys of a session's info that a fork inherits; summary, share, revert and costs stay with the old one."""


async def fork(workspace: ToolHost, session: str | AgentSession, at: str | int | Message | None = None) -> AgentSession:
    """A new session with copies of a session's messages, stored. Files are not touched.

    `at` is the first message that is not copied: the message itself, its id or its index (-1 is the last); None copies
    all.

    Raises:
        UnknownSessionError: there is no such session.
        InvalidArgumentsError: there is no such message in it.
    """
    source = await workspace.sessions.open(session)
    info, messages = await read(workspace, source)
    messages = messages[: _index_of(messages, at, source)]
    made_info, made_messages = await asyncio.to_thread(_copy, info, messages)
    return await store_session(workspace, made_info, made_messages)


def forked_title(title: str) -> str:
    """A fork's title: ``... (fork #1)``, and of a fork the next number."""
    match = _FORKED.fullmatch(title)
    return f"{match[1]} (fork #{int(match[2]) + 1})" if match else f"{title} (fork #1)"


def _index_of(messages: list[dict[str, Any]], at: str | int | Message | None, session: AgentSession) -> int:
    count = len(messages)
    if at is None:
        return count
    if isinstance(at, int) and not isinstance(at, bool):
        if not -count <= at <= count:
            raise InvalidArgumentsError(f"{session.title!r} has {count} messages; none has the number {at}.")
        return at % count if at < 0 else at
    message_id = at.id if isinstance(at, Message) else str(at)
    for index, message in enumerate(messages):
        if message["info"]["id"] == message_id:
            return index
    raise InvalidArgumentsError(f"{session.title!r} has no message {message_id}; it has {count} messages.")


def _copy(info: dict[str, Any], messages: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    new_ids = NewIds(info["id"])
    copies = new_ids.messages(
        [{**message, "parts": [_abort_if_running(part) for part in message["parts"]]} for message in messages]
    )
    now = now_ms()
    copied_info = new_ids.session({"id": info["id"], **{key: info[key] for key in _INHERITED if key in info}})
    return {
        **copied_info,
        "title": forked_title(info.get("title") or ""),
        "version": info.get("version") or "",
        "time": {"created": now, "updated": now},
    }, copies


def _abort_if_running(part: dict[str, Any]) -> dict[str, Any]:
    """A part for the new session: a call that still runs belongs to the old one, so it is aborted here."""
    state = part.get("state")
    if part.get("type") != "tool" or not isinstance(state, dict) or state.get("status") not in ("pending", "running"):
        return part
    return {**part, "state": aborted_state(state, now_ms(), now_ms())}
