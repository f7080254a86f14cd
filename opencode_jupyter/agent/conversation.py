"""A session's messages in memory: written (`Conversation`), as a model is sent them (turns), as tools see them.

`Conversation` is the only writer; it also stores what it writes and publishes events. `StreamedParts` passes it the
texts of a model's stream.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..core.call_state import CallOutcome, Completed, Failed, ToolPart, now_ms
from ..core.messages import Message, Part, new_part, part_id, part_to_wire
from ..core.sessions import Session
from .events import Event, ReasoningDelta, ReasoningEnd, TextDelta, TextEnd
from .structured import NUDGE
from .turns import CallPiece, MediaPiece, Piece, ReasoningPiece, ResultPiece, TextPiece, Turn

if TYPE_CHECKING:
    from ..core.host import ToolHost

PART = "message.part.updated"
DELTA = "message.part.delta"
CLEARED = "[Old tool result content cleared]"
"""Replaces a result that was pruned; OpenCode's text."""
INTERRUPTED = "[Tool execution was interrupted]"
"""The result of a call that never ended; OpenCode's text. Every call needs a result."""
SUMMARY_QUESTION = "What did we do so far?"
"""The user's message that a compaction part means: the one that a summary answers."""
ABORTED = "MessageAbortedError"
"""The name of the error of an answer that was stopped."""
NOTICE = {"notice": True}
"""Metadata of a text part that is a notice of the agent loop for the model, not a prompt."""


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


# ---------------------------------------------------------------------- as turns (docs/opencode/core.md 9.2)


def is_notice(part: Mapping[str, Any]) -> bool:
    """Return whether a text part is a notice of the agent loop; those of earlier sessions are known by their text."""
    return part.get("metadata") == NOTICE or bool(part.get("synthetic") and part.get("text") == NUDGE)


def turns_of(message: Message, *, first: bool = False) -> tuple[Turn, ...]:
    """The turns of one message; none if it is not sent to a model.

    Args:
        message: the message.
        first: whether it is the message at `after_summary`: then its request for a summary was answered. A request
            that was never answered (the kernel ended) is omitted.
    """
    return _user_turns(message, first) if message.role == "user" else _assistant_turns(message)


def after_summary(messages: Sequence[Message]) -> int:
    """Index of the first message that a model still has to see: the question of the last whole summary, else 0."""
    answered: set[str] = set()
    for i in range(len(messages) - 1, -1, -1):
        message = messages[i]
        info = message.info
        if message.role == "assistant":
            if info.get("summary") is True and info.get("finish") and not info.get("error"):
                answered.add(str(info.get("parentID")))
        elif message.id in answered and any(message.of_type("compaction")):
            return i
    return 0


def _user_turns(message: Message, summarised: bool) -> tuple[Turn, ...]:
    pieces: list[Piece] = []
    purpose: Literal["", "summary", "notice"] = ""
    for part in message.parts:
        if isinstance(part, ToolPart):
            continue
        kind = part.get("type")
        if kind == "text" and not part.get("ignored") and part.get("text"):
            pieces.append(TextPiece(part["text"]))
            purpose = "notice" if is_notice(part) else purpose
        elif kind == "file":
            piece = _media_of(str(part.get("mime", "")), str(part.get("url", "")), part.get("filename"))
            if piece is not None:
                pieces.append(piece)
        elif kind == "compaction" and summarised:
            pieces.append(TextPiece(SUMMARY_QUESTION))
            purpose = "summary"
        elif kind == "subtask":
            pieces.append(TextPiece("The following tool was executed by the user"))
    return (Turn("user", tuple(pieces), purpose=purpose),) if pieces else ()


def _assistant_turns(message: Message) -> tuple[Turn, ...]:
    if message.info.get("error") and not _is_worth_keeping(message):
        return ()
    origin = (str(message.info.get("providerID", "")), str(message.info.get("modelID", "")))
    pieces: list[Piece] = []
    results: list[ResultPiece] = []
    for part in message.parts:
        if isinstance(part, ToolPart):
            pieces.append(CallPiece(part.call_id, part.tool, part.state.input, part.provider_metadata))
            results.append(_result(part))
        elif part.get("type") == "text":
            if part.get("text"):
                pieces.append(TextPiece(part["text"]))
        elif part.get("type") == "reasoning" and (part.get("text") or part.get("metadata")):
            pieces.append(ReasoningPiece(part.get("text") or "", part.get("metadata")))
    if all(isinstance(piece, ReasoningPiece) for piece in pieces):
        return ()  # reasoning alone: providers accept no such answer
    turn = Turn("assistant", tuple(pieces), origin)
    return (turn, Turn("tool", tuple(results))) if results else (turn,)


def _is_worth_keeping(message: Message) -> bool:
    """True for an answer that ended in an error but is sent: it was stopped after its first text or call."""
    if (message.info.get("error") or {}).get("name") != ABORTED:
        return False
    return any(isinstance(p, ToolPart) or p.get("type") not in ("step-start", "reasoning") for p in message.parts)


def _result(part: ToolPart) -> ResultPiece:
    state = part.state
    if isinstance(state, Completed):
        if state.compacted is not None:
            return ResultPiece(part.call_id, part.tool, CLEARED)
        media = tuple(m for m in (_media_of(a.mime, a.url, a.filename) for a in state.attachments) if m is not None)
        return ResultPiece(part.call_id, part.tool, state.output, media)
    if isinstance(state, Failed):
        return ResultPiece(part.call_id, part.tool, state.error, failed=True, outcome=part.outcome)
    return ResultPiece(part.call_id, part.tool, INTERRUPTED, failed=True, outcome=CallOutcome.INTERRUPTED)


def _media_of(mime: str, url: str, filename: Any = None) -> MediaPiece | None:
    """A file part as a piece: only pictures and PDF files in base64 are sent."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    if not (mime.startswith("image/") or mime == "application/pdf"):
        return None
    return MediaPiece(mime, data, filename if isinstance(filename, str) else None)


# ---------------------------------------------------------------------- as tools see them


class LazyMessages(list[dict[str, Any]]):
    """``ctx.messages``: the messages of a run's session so far, each ``{"info", "parts"}`` (docs/opencode/core.md 2).

    A list by type, since tools are promised one; its items are made at each look, so that calls that do not look cost
    nothing.
    """

    def __init__(self, workspace: ToolHost, session: Session) -> None:
        super().__init__()
        self._workspace = workspace
        self._session = session
        self._ids: set[str] | None = None
        self._wires: dict[str, tuple[Any, dict[str, Any]]] = {}

    def free_call_id(self, id: str) -> str:
        """The provider's id of a call, changed if another call of the session or a running one has it."""
        if self._ids is None:
            self._ids = {part.call_id for message in self._session.messages for part in message.calls}
        if not id:
            id = f"call_{uuid.uuid4().hex[:20]}"
        free, number = id, 1
        while free in self._ids or free in self._workspace.calls:
            number += 1
            free = f"{id}_{number}"
        self._ids.add(free)
        return free

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self._wire(message) for message in list(self._session.messages))

    def __len__(self) -> int:
        return len(self._session.messages)

    def __getitem__(self, index: Any) -> Any:
        messages = self._session.messages[index]
        return [self._wire(m) for m in messages] if isinstance(messages, list) else self._wire(messages)

    def _wire(self, message: Message) -> dict[str, Any]:
        """A message's wire form; kept as long as its turns are, which are made anew when it changes."""
        cached = self._wires.get(message.id)
        if cached is not None and message.turns is not None and cached[0] is message.turns:
            return cached[1]
        wire = message.to_wire()
        if message.turns is not None:
            self._wires[message.id] = (message.turns, wire)
        return wire

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None
