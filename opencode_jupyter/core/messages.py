"""Messages of a session and their parts, in OpenCode's wire form (docs/opencode/core.md 6 to 9).

A message's info, and every part but a tool's, is a plain dict as OpenCode writes it, so that nothing is lost of what
another release put into it. A tool's part is a `ToolPart`, since calls change it while they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from . import ids
from .call_state import CallOutcome, Completed, Failed, Pending, Running, State, ToolPart, now_ms
from .result import Attachment

Part = ToolPart | dict[str, Any]
"""A tool's part, or another one (text, reasoning, file, step-start, step-finish, patch, compaction, ...)."""

NO_TOKENS: Mapping[str, Any] = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}

_FILE_KEYS = frozenset({"id", "sessionID", "messageID", "type", "mime", "url", "filename"})


@dataclass(slots=True)
class Message:
    """One message: its author (`info`) and contents (`parts`)."""

    info: dict[str, Any]
    parts: list[Part] = field(default_factory=list)
    turns: Any = field(default=None, repr=False, compare=False)
    """The message in the form a model is sent, cached by `agent.conversation` until it changes."""

    @property
    def id(self) -> str:
        """Its id (``msg_...``)."""
        return str(self.info["id"])

    @property
    def role(self) -> Literal["user", "assistant"]:
        """The role of the author: ``user`` or ``assistant``."""
        return "assistant" if self.info.get("role") == "assistant" else "user"

    @property
    def text(self) -> str:
        """Its text parts, each a paragraph; what was put in for the model alone is left out."""
        texts = [str(part.get("text", "")) for part in self.of_type("text") if not part.get("synthetic")]
        return "\n\n".join(text for text in texts if text.strip())

    @property
    def calls(self) -> list[ToolPart]:
        """Its tool parts, in order."""
        return [part for part in self.parts if isinstance(part, ToolPart)]

    def of_type(self, type: str) -> Iterator[dict[str, Any]]:
        """Its parts of this type; of tools' parts see `calls`."""
        return (part for part in self.parts if isinstance(part, dict) and part.get("type") == type)

    def to_wire(self) -> dict[str, Any]:
        """``{"info", "parts"}``, as OpenCode's API and its exports have it."""
        return {"info": self.info, "parts": [part_to_wire(part) for part in self.parts]}

    def __repr__(self) -> str:
        return f"<{self.role} message {self.id}: {len(self.parts)} parts>"


def user_message(
    session_id: str, agent: str, model: Mapping[str, str], *, id: str | None = None, **more: Any
) -> Message:
    """A new, empty message of the user's for an agent and a model (``{"providerID", "modelID"}``) to answer.

    `more` are other keys of OpenCode's user messages (``system``, ``tools``, ``format``, ``variant``).
    """
    info = {
        "id": id or ids.create("message"),
        "sessionID": session_id,
        "role": "user",
        "time": {"created": now_ms()},
        "agent": agent,
        "model": dict(model),
        **more,
    }
    return Message(info)


def assistant_message(
    session_id: str,
    parent_id: str,
    agent: str,
    model: Mapping[str, str],
    *,
    cwd: str,
    root: str,
    id: str | None = None,
    **more: Any,
) -> Message:
    """A new, empty message of the model's that answers the user's message `parent_id`.

    `more` are other keys of OpenCode's assistant messages (``summary``, ``variant``).
    """
    info = {
        "id": id or ids.create("message"),
        "sessionID": session_id,
        "role": "assistant",
        "time": {"created": now_ms()},
        "parentID": parent_id,
        "mode": agent,
        "agent": agent,
        "path": {"cwd": cwd, "root": root},
        "cost": 0,
        "tokens": {**NO_TOKENS, "cache": {"read": 0, "write": 0}},
        "modelID": model["modelID"],
        "providerID": model["providerID"],
        **more,
    }
    return Message(info)


def new_part(message: Message, type: str, **fields: Any) -> dict[str, Any]:
    """A part for a message, not yet put into it."""
    return {
        "id": ids.create("part"),
        "sessionID": message.info["sessionID"],
        "messageID": message.id,
        "type": type,
        **fields,
    }


def part_id(part: Part) -> str:
    """A part's id."""
    return part.id if isinstance(part, ToolPart) else str(part["id"])


def part_to_wire(part: Part) -> dict[str, Any]:
    """A part as OpenCode has it."""
    return part.to_wire() if isinstance(part, ToolPart) else part


def part_from_wire(wire: Mapping[str, Any]) -> Part:
    """A part from OpenCode's form, as the store or a file has it.

    Raises:
        ValueError: it is an invalid part of a tool; the message has the reason.
    """
    if wire.get("type") != "tool":
        return dict(wire)
    try:
        return _tool_part(wire)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a tool part that can't be read: {type(error).__name__} {error}") from error


def _tool_part(wire: Mapping[str, Any]) -> ToolPart:
    extra = wire.get("opencode_jupyter") or {}
    part = ToolPart(
        wire["id"],
        wire["sessionID"],
        wire["messageID"],
        wire["callID"],
        wire["tool"],
        _state(wire["state"]),
        extra.get("agent") or "build",
        "user" if extra.get("by") == "user" else "model",
        parent_id=extra.get("parentID"),
        waited=extra.get("waited") or 0.0,
        provider_metadata=wire.get("metadata"),
    )
    ended = isinstance(part.state, (Completed, Failed))
    ending = CallOutcome.FAILED if isinstance(part.state, Failed) else CallOutcome.COMPLETED
    part.outcome = extra.get("outcome") or (ending if ended else "")
    part.extra = _unknown_keys(wire, part.to_wire())
    part.extra.pop("opencode_jupyter", None)
    return part


def _unknown_keys(wire: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a tool part, its state and its time that `ToolPart` has no field for: another release wrote them."""
    extra = {key: value for key, value in wire.items() if key not in written}
    for key in ("state", "time"):
        if isinstance(wire.get(key), Mapping) and key in written and (inner := _unknown_keys(wire[key], written[key])):
            extra[key] = inner
    return extra


def _state(wire: Mapping[str, Any]) -> State:
    times = wire.get("time") or {}
    start = int(times.get("start", 0))
    status, input = wire["status"], wire.get("input") or {}
    if status == "pending":
        return Pending(input, wire.get("raw") or "")
    if status == "running":
        return Running(input, start, wire.get("title"), wire.get("metadata"))
    if status == "error":
        return Failed(input, start, int(times.get("end", start)), str(wire.get("error", "")), wire.get("metadata"))
    if status != "completed":
        raise KeyError(f"status {status!r}")
    attachments = [
        Attachment(
            a["mime"],
            a["url"],
            a.get("filename"),
            a.get("id", ""),
            a.get("sessionID", ""),
            a.get("messageID", ""),
            {key: value for key, value in a.items() if key not in _FILE_KEYS} or None,
        )
        for a in wire.get("attachments") or ()
    ]
    return Completed(
        input,
        start,
        int(times.get("end", start)),
        wire.get("title") or "",
        wire.get("output") or "",
        wire.get("metadata") or {},
        attachments,
        times.get("compacted"),
    )
