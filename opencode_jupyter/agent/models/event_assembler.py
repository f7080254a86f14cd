"""Makes events (`agent.events`) of a provider's stream: an answer's texts, reasoning and calls, put together."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)


class OpenCall:
    """A call whose arguments are still coming."""

    __slots__ = ("arguments", "ended", "id", "index", "metadata", "name", "provider_id", "started")

    def __init__(self, index: int, provider_id: str, name: str) -> None:
        self.index = index
        self.provider_id = provider_id
        """The provider's id; "" if it sent none."""
        self.id = provider_id
        """The id we give it: the provider's where that is fit for use."""
        self.name = name
        self.arguments: list[str] = []
        self.started = self.ended = False
        self.metadata: dict[str, Any] | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments so far."""
        if len(self.arguments) > 1:
            self.arguments = ["".join(self.arguments)]
        return self.arguments[0] if self.arguments else ""

    @property
    def is_complete(self) -> bool:
        """True if the arguments so far are a whole JSON object."""
        if not self.arguments_text.rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads(self.arguments_text), dict)
        except ValueError:
            return False


class EventAssembler:
    """The events of one answer; the parser of a wire format passes it what the provider streams.

    Args:
        tool_names: names of the tools that were offered, as they are on the wire.
        original_names: name on the wire -> our name, where they differ.
        read_call_ids: the ids of all calls of the conversation; only asked when the answer has a call.
    """

    def __init__(
        self,
        tool_names: Collection[str],
        original_names: Mapping[str, str],
        read_call_ids: Callable[[], Collection[str]],
    ) -> None:
        self._tool_names, self._original_names = tool_names, original_names
        self._read_call_ids = read_call_ids
        self._used_ids: set[str] | None = None
        self._next = 0
        self._text: int | None = None
        self._reasoning: int | None = None
        self.calls: list[OpenCall] = []
        self.has_content = False
        """True if anything came at all."""
        self._events: list[Event] = []

    def take_events(self) -> list[Event]:
        """The events since the last call of this method."""
        events, self._events = self._events, []
        return events

    # ------------------------------------------------------------------ text and reasoning

    def add_text(self, text: str) -> None:
        """Add text of the answer."""
        if not text:
            return
        self.end_reasoning()
        if self._text is None:
            self._text = self._new_index()
            self._events.append(TextStart(self._text))
        self._events.append(TextDelta(self._text, text))

    def end_text(self, metadata: dict[str, Any] | None = None) -> None:
        """End the text, if one is open."""
        if self._text is not None:
            self._events.append(TextEnd(self._text, metadata))
            self._text = None

    def add_reasoning(self, text: str, *, begin: bool = False) -> None:
        """Add reasoning; `begin` starts a part without a text, which may have a signature only."""
        if not text and not begin:
            return
        self.end_text()
        if self._reasoning is None:
            self._reasoning = self._new_index()
            self._events.append(ReasoningStart(self._reasoning))
        if text:
            self._events.append(ReasoningDelta(self._reasoning, text))

    def end_reasoning(self, metadata: dict[str, Any] | None = None) -> None:
        """End the reasoning, if a part is open."""
        if self._reasoning is not None:
            self._events.append(ReasoningEnd(self._reasoning, metadata))
            self._reasoning = None

    @property
    def is_reasoning(self) -> bool:
        """True if a part of reasoning is open."""
        return self._reasoning is not None

    # ------------------------------------------------------------------ calls

    def has_tool(self, name: str) -> bool:
        """Return whether a tool of this name was offered."""
        return name in self._tool_names

    def start_call(self, provider_id: str, name: str) -> OpenCall:
        """Start a call; more of its name may follow (`add_name`)."""
        self.end_text()
        self.end_reasoning()
        call = OpenCall(self._new_index(), provider_id, "")
        self.calls.append(call)
        self.add_name(call, name)
        return call

    def add_name(self, call: OpenCall, piece: str) -> None:
        """Add to a call's name; some servers repeat the whole name."""
        if not piece or call.started or piece == call.name:
            return
        if piece.startswith(call.name) and piece in self._tool_names:
            call.name = piece  # sent again from its beginning
        else:
            call.name += piece
        longer = any(name != call.name and name.startswith(call.name) for name in self._tool_names)
        if call.name in self._tool_names and not longer:
            self._start(call)

    def add_arguments(self, call: OpenCall, text: str) -> None:
        """Add to a call's arguments."""
        if not text:
            return
        self._start(call)
        call.arguments.append(text)
        self._events.append(CallDelta(call.index, text))

    def end_call(self, call: OpenCall) -> None:
        """End a call, whose arguments are complete."""
        if call.ended:
            return
        self._start(call)
        call.ended = True
        name = self._original_names.get(call.name, call.name)
        self._events.append(CallEnd(call.index, call.id, name, call.arguments_text, call.metadata))

    def end_all(self) -> None:
        """End the answer, and every part that is still open."""
        self.end_text()
        self.end_reasoning()
        for call in self.calls:
            self.end_call(call)

    def _start(self, call: OpenCall) -> None:
        if call.started:
            return
        call.started = True
        if self._used_ids is None:
            self._used_ids = set(self._read_call_ids())
        if not call.id or call.id in self._used_ids:
            call.id = f"call_{secrets.token_hex(12)}"
        self._used_ids.add(call.id)
        self._events.append(CallStart(call.index, call.id, self._original_names.get(call.name, call.name)))

    def _new_index(self) -> int:
        index, self._next = self._next, self._next + 1
        self.has_content = True
        return index
