"""A session's messages as the turns that a model is sent (docs/opencode/core.md 9.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..core.call_state import CallOutcome, Completed, Failed, ToolPart
from ..core.messages import Message
from ..core.result import Attachment
from .structured import NUDGE
from .turns import CallPiece, MediaPiece, Piece, ReasoningPiece, ResultPiece, TextPiece, Turn

CLEARED = "[Old tool result content cleared]"
"""Replaces a result that was pruned; OpenCode's text."""
INTERRUPTED = "[Tool execution was interrupted]"
"""The result of a call that never ended; OpenCode's text. Every call needs a result."""
SUMMARY_QUESTION = "What did we do so far?"
"""The user's message that a compaction part means: the one that a summary answers."""
ABORTED = "MessageAbortedError"
NOTICE = {"notice": True}
"""Metadata of a text part that is a notice of the agent loop for the model, not a prompt."""


def is_notice(part: Mapping[str, Any]) -> bool:
    """Whether a text part is such a notice; those of earlier sessions are known by their text."""
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
            piece = media_of(str(part.get("mime", "")), str(part.get("url", "")), part.get("filename"))
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
    if not any(not isinstance(piece, ReasoningPiece) for piece in pieces):
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
        media = tuple(m for m in map(_media_of_attachment, state.attachments) if m is not None)
        return ResultPiece(part.call_id, part.tool, state.output, media)
    if isinstance(state, Failed):
        return ResultPiece(part.call_id, part.tool, state.error, failed=True, outcome=part.outcome)
    return ResultPiece(part.call_id, part.tool, INTERRUPTED, failed=True, outcome=CallOutcome.INTERRUPTED)


def _media_of_attachment(attachment: Attachment) -> MediaPiece | None:
    return media_of(attachment.mime, attachment.url, attachment.filename)


def media_of(mime: str, url: str, filename: Any = None) -> MediaPiece | None:
    """A file part as a piece: only pictures and PDF files in base64 are sent."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    if not (mime.startswith("image/") or mime == "application/pdf"):
        return None
    return MediaPiece(mime, data, filename if isinstance(filename, str) else None)
