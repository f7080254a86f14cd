"""A session with its messages as plain data, out of the store or out of memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.call_state import ToolPart
from ...core.messages import Message, Part
from ...core.sessions import Session
from ...core.store import rows

if TYPE_CHECKING:
    from ...core.host import ToolHost

EXTRA = rows.EXTRA
"""The key under which a part carries what OpenCode's own form has no place for (agent, by, parentID, decisions)."""

Data = dict[str, Any]


async def read(workspace: ToolHost, session: str | Session) -> tuple[Data, list[Data]]:
    """A session's info and its messages (``{"info", "parts"}``), all JSON; parts have their `EXTRA`.

    Raises:
        KeyError: there is none of that id.
    """
    id = session if isinstance(session, str) else session.id
    store = workspace.store
    info = await store.session(id) if store is not None else None
    if store is None or info is None:
        opened = await workspace.sessions.open(session)
        return plain(opened.to_wire()), [plain(message_data(message)) for message in opened.messages]
    messages: list[Data] = [{"info": message_info, "parts": []} for message_info in await store.messages(id)]
    by_id = {message["info"]["id"]: message for message in messages}
    for part in await store.parts(id):
        if part["messageID"] in by_id:
            by_id[part["messageID"]]["parts"].append(plain(part) if _has_nan(part) else part)
    return info, messages


def without_extra(messages: Sequence[Data]) -> list[Data]:
    """The same messages in OpenCode's own form: without what is under `EXTRA`."""
    return [
        {"info": message["info"], "parts": [{k: v for k, v in part.items() if k != EXTRA} for part in message["parts"]]}
        for message in messages
    ]


def plain(value: Any) -> Any:
    """A value as JSON has it: what JSON does not know becomes text, NaN and infinities null."""
    return json.loads(rows.encode(value), parse_constant=lambda _: None)


def _has_nan(part: Data) -> bool:
    try:
        json.dumps(part, allow_nan=False)
    except ValueError:
        return True
    return False


def message_data(message: Message) -> Data:
    """A message with its parts as plain data; parts have their `EXTRA`."""
    return {"info": message.info, "parts": [part_data(part) for part in message.parts]}


def part_data(part: Part) -> Data:
    """A part in wire form; a tool's with its `EXTRA`."""
    if not isinstance(part, ToolPart):
        return part
    decisions = [rows.decision_wire(decision) for decision in part.decisions]
    extra = {"agent": part.agent, "by": part.by, "waited": part.waited, "outcome": part.outcome}
    return {**part.to_wire(), EXTRA: {**extra, "decisions": decisions, "parentID": part.parent_id}}
