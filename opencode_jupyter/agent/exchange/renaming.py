"""New ids for a session, its messages and their parts, the same everywhere they are spoken of."""

from __future__ import annotations

from typing import Any

from ...core import ids
from .reading import EXTRA

Data = dict[str, Any]


class Renaming:
    """Old ids and the new ones in their place. Messages and parts get ids that sort as they stand.

    Args:
        session_id: the old id of the session.
    """

    def __init__(self, session_id: str) -> None:
        self._new = {session_id: ids.create("session", descending=True)}

    def _made(self, id: str, kind: str) -> str:
        if id not in self._new:
            self._new[id] = ids.create(kind)
        return self._new[id]

    def _of(self, id: Any) -> Any:
        return self._new.get(id, id) if isinstance(id, str) else id

    def session(self, info: Data) -> Data:
        """A session's info; call it after `messages`, since it may name some (``revert``)."""
        made = {**info, "id": self._of(info["id"])}
        if isinstance(info.get("revert"), dict):
            made["revert"] = self._named(info["revert"], ("messageID", "partID"))
        return made

    def messages(self, messages: list[Data]) -> list[Data]:
        """Messages with their parts."""
        for message in messages:
            self._made(message["info"]["id"], "message")
            for part in message["parts"]:
                self._made(part["id"], "part")
        return [
            {
                "info": self._named(message["info"], ("id", "sessionID", "parentID")),
                "parts": [self._part(part) for part in message["parts"]],
            }
            for message in messages
        ]

    def _named(self, data: Data, keys: tuple[str, ...]) -> Data:
        return {**data, **{key: self._of(data[key]) for key in keys if key in data}}

    def _part(self, part: Data) -> Data:
        made = self._named(part, ("id", "sessionID", "messageID", "tail_start_id"))
        if isinstance(part.get(EXTRA), dict):
            made[EXTRA] = self._named(part[EXTRA], ("parentID",))
        state = part.get("state")
        if part.get("type") != "tool" or not isinstance(state, dict):
            return made
        made["state"] = dict(state)
        if isinstance(state.get("metadata"), dict):
            made["state"]["metadata"] = self._named(state["metadata"], ("parentSessionId",))
        if state.get("attachments"):
            made["state"]["attachments"] = [
                {**self._named(file, ("sessionID", "messageID")), "id": self._made(file.get("id") or "", "part")}
                if file.get("id")
                else self._named(file, ("sessionID", "messageID"))
                for file in state["attachments"]
            ]
        return made
