"""Texts and reasoning of a model's stream, on their way into a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.call_state import now_ms
from ..core.messages import Message, new_part, part_id
from .events import Event, ReasoningDelta, ReasoningEnd, TextDelta, TextEnd

if TYPE_CHECKING:
    from .conversation import Conversation


class StreamedParts:
    """Writes the parts of one stream into a message, and removes them if it breaks off.

    `report` receives each change as `Run.on_change` does.

    Attributes:
        ids: of all parts that the stream made; the ids of its calls are added here.
    """

    def __init__(self, conversation: Conversation, message: Message, report: Callable[[str, Any], None]) -> None:
        self._conversation = conversation
        self._message = message
        self._report = report
        self._open: dict[int, tuple[dict[str, Any], list[str]]] = {}
        self.ids: list[str] = []

    def handle(self, event: Event) -> None:
        """Take an event's text; events of calls are passed over."""
        match event:
            case TextDelta(index, text):
                self._grow(index, "text", text)
            case ReasoningDelta(index, text):
                self._grow(index, "reasoning", text)
            case TextEnd(index, metadata):
                self._end(index, metadata)
            case ReasoningEnd(index, metadata):
                if metadata and index not in self._open:  # reasoning that is hidden from people still has to go back
                    self._begin(index, "reasoning")
                self._end(index, metadata)
            case _:
                pass

    def _begin(self, index: int, kind: str) -> dict[str, Any]:
        part = new_part(self._message, kind, text="", time={"start": now_ms()})
        self.ids.append(part["id"])
        self._open[index] = (part, [])
        self._conversation.put(self._message, part)
        return part

    def _grow(self, index: int, kind: str, text: str) -> None:
        if not text:
            return
        if index not in self._open:
            self._report("part", self._begin(index, kind))
        part, pieces = self._open[index]
        pieces.append(text)
        self._conversation.publish_delta(part, "text", text)
        self._report("delta", (part, text))

    def _end(self, index: int, metadata: dict[str, Any] | None = None) -> None:
        if index not in self._open:
            return
        part, pieces = self._open.pop(index)
        part["text"] = "".join(pieces)
        part["time"] = {**part["time"], "end": now_ms()}
        if metadata:
            part["metadata"] = metadata
        self._conversation.put(self._message, part)
        self._report("part", part)

    def close(self) -> None:
        """End what the stream left open."""
        for index in list(self._open):
            self._end(index)

    def remove(self) -> None:
        """Remove the parts of a broken stream, so that the next request does not double them."""
        self._open.clear()
        removed = {id for id in self.ids if any(part_id(part) == id for part in self._message.parts)}
        self.ids.clear()
        self._conversation.drop(self._message, removed)
        if removed:
            self._report("dropped", removed)
