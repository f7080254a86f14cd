"""A session with its messages as plain data, out of the store or out of memory; the same with new ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core import ids
from ...core.call_state import ToolPart
from ...core.messages import Message, Part
from ...core.sessions import Session
from ...core.store import rows

if TYPE_CHECKING:
    from ...core.host import ToolHost

EXTRA = rows.EXTRA
"""The key under which a part carries what OpenCode's own form has no place for (agent, by, parentID, decisions)."""

ABORTED = "Tool execution aborted"
"""OpenCode's error text for a call that no longer runs."""
Data = dict[str, Any]


async def read(workspace: ToolHost, session: str | Session) -> tuple[Data, list[Data]]:
    """A session's info and its messages (``{"info", "parts"}``), all JSON; parts have their `EXTRA`.

    Raises:
        UnknownSessionError: there is no such session.
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


# ---------------------------------------------------------------------- for a new session


class NewIds:
    """Old ids and the new ones in their place. Messages and parts get ids that sort as they stand."""

    def __init__(self, session_id: str) -> None:
        self._new = {session_id: ids.create("session", descending=True)}

    def _new_id(self, id: str, kind: str) -> str:
        if id not in self._new:
            self._new[id] = ids.create(kind)
        return self._new[id]

    def _renamed(self, id: Any) -> Any:
        return self._new.get(id, id) if isinstance(id, str) else id

    def session(self, info: Data) -> Data:
        """A session's info; call it after `messages`, since it may name some (``revert``)."""
        renamed = {**info, "id": self._renamed(info["id"])}
        if isinstance(info.get("revert"), dict):
            renamed["revert"] = self._rename_keys(info["revert"], ("messageID", "partID"))
        return renamed

    def messages(self, messages: list[Data]) -> list[Data]:
        """Messages with their parts."""
        for message in messages:
            self._new_id(message["info"]["id"], "message")
            for part in message["parts"]:
                self._new_id(part["id"], "part")
        return [
            {
                "info": self._rename_keys(message["info"], ("id", "sessionID", "parentID")),
                "parts": [self._part(part) for part in message["parts"]],
            }
            for message in messages
        ]

    def _rename_keys(self, data: Data, keys: tuple[str, ...]) -> Data:
        return {**data, **{key: self._renamed(data[key]) for key in keys if key in data}}

    def _part(self, part: Data) -> Data:
        renamed = self._rename_keys(part, ("id", "sessionID", "messageID", "tail_start_id"))
        if isinstance(part.get(EXTRA), dict):
            renamed[EXTRA] = self._rename_keys(part[EXTRA], ("parentID",))
        state = part.get("state")
        if part.get("type") != "tool" or not isinstance(state, dict):
            return renamed
        renamed["state"] = dict(state)
        if isinstance(state.get("metadata"), dict):
            renamed["state"]["metadata"] = self._rename_keys(state["metadata"], ("parentSessionId",))
        if state.get("attachments"):
            renamed["state"]["attachments"] = [
                {
                    **self._rename_keys(file, ("sessionID", "messageID")),
                    "id": self._new_id(file.get("id") or "", "part"),
                }
                if file.get("id")
                else self._rename_keys(file, ("sessionID", "messageID"))
                for file in state["attachments"]
            ]
        return renamed


def aborted_state(state: Data, start: int, end: int) -> Data:
    """The state of a call that no longer runs; it starts at `start` if it has no time of its own."""
    start = (state.get("time") or {}).get("start") or start
    metadata = {} if state.get("metadata") is None else {"metadata": state["metadata"]}
    time = {"start": start, "end": max(start, end)}
    return {"status": "error", "input": state.get("input") or {}, "error": ABORTED, "time": time, **metadata}
