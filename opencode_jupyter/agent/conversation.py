"""A session's messages in memory: the only writer, which also stores them and publishes events."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..core.call_state import ToolPart
from ..core.messages import Message, Part, part_id, part_to_wire
from ..core.sessions import Session
from .history import after_summary, turns_of
from .turns import Turn

if TYPE_CHECKING:
    from ..core.host import ToolHost

PART = "message.part.updated"
DELTA = "message.part.delta"


class Conversation:
    """Writes a session's messages.

    The session's ``messages`` list is changed in place.
    """

    def __init__(self, workspace: ToolHost, session: Session) -> None:
        self.workspace = workspace
        self.session = session

    # ------------------------------------------------------------------ writing

    def add(self, message: Message) -> Message:
        """Put a message, with the parts it has, at the end."""
        message.parts[:] = map(self._masked, message.parts)
        self.session.messages.append(message)
        self.changed(message)
        for part in message.parts:
            self._store_part(part)
        return message

    def changed(self, message: Message) -> None:
        """A message's info has changed."""
        message.turns = None
        workspace = self.workspace
        message.info.update(workspace.masked(message.info))
        workspace.publish("message.updated", lambda: {"info": dict(message.info)})
        if workspace.store is not None:
            # A copy: the store writes it later, on its own thread.
            workspace.store.put_message(dict(message.info))

    def put(self, message: Message, part: Part) -> None:
        """Put a part into a message: at its end, or in the place of the one with the same id."""
        message.turns = None
        part = self._masked(part)
        id = part_id(part)
        for i in range(len(message.parts) - 1, -1, -1):
            if part_id(message.parts[i]) == id:
                message.parts[i] = part
                break
        else:
            message.parts.append(part)
        self._store_part(part)

    def publish_delta(self, part: dict[str, Any], field: str, delta: str) -> None:
        """A part has grown by `delta`; the part itself is written when it is whole."""
        bus = self.workspace.bus
        if bus.has_subscribers(DELTA):
            ids = {"sessionID": part["sessionID"], "messageID": part["messageID"], "partID": part["id"]}
            bus.publish(DELTA, {**ids, "field": field, "delta": delta})

    def drop(self, message: Message, ids: Collection[str]) -> None:
        """Remove parts from a message (those of a broken stream)."""
        if not ids:
            return
        message.turns = None
        message.parts[:] = [part for part in message.parts if part_id(part) not in ids]
        if self.workspace.store is not None:
            self.workspace.store.delete_parts(list(ids))
        for id in ids:
            self._publish_removal("message.part.removed", {"messageID": message.id, "partID": id})

    def remove(self, ids: Collection[str]) -> None:
        """Remove whole messages."""
        self.session.messages[:] = [message for message in self.session.messages if message.id not in ids]
        if self.workspace.store is not None:
            self.workspace.store.delete_messages(list(ids))
        for id in ids:
            self._publish_removal("message.removed", {"messageID": id})

    def _masked(self, part: Part) -> Part:
        """The same part, its secrets masked; a tool's part takes none in."""
        if isinstance(part, dict):
            part.update(self.workspace.masked(part))
        return part

    def _publish_removal(self, event: str, ids: dict[str, str]) -> None:
        self.workspace.publish(event, lambda: {"sessionID": self.session.id, **ids})

    def _store_part(self, part: Part) -> None:
        workspace = self.workspace
        if workspace.store is not None:
            workspace.store.put_part(part if isinstance(part, ToolPart) else dict(part))
        workspace.publish(PART, lambda: {"part": part_to_wire(part)})

    # ------------------------------------------------------------------ reading

    def turns(self) -> list[Turn]:
        """The messages to send to a model: everything after the last summary.

        The turns of a message are made once and kept until it changes, so that providers' own forms of them can be kept
        too.
        """
        messages = self.session.messages
        turns: list[Turn] = []
        for i, message in enumerate(messages[after_summary(messages) :]):
            if message.turns is None or (i == 0 and any(message.of_type("compaction"))):
                message.turns = turns_of(message, first=i == 0)
            turns += message.turns
        return turns
