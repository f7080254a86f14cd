"""A call as data: the tool part, its states (docs/opencode/core.md 9.1), and how it ended.

States are replaced, never changed in place, so that a reader on another thread (the store's
writer) always sees a whole one. mypy holds everyone to it (`Final`); to be held by Python (``frozen=True``) would
take a tenth of a call's time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from .errors import (
    REFUSING,
    DryRunEnd,
    HookRefusedError,
    InvalidArgumentsError,
    PermissionCorrectedError,
    PermissionDeniedError,
    PermissionRejectedError,
    QuestionRejectedError,
    ToolAbortedError,
    ToolError,
    full_text,
    shorten,
)
from .repair import INVALID

if TYPE_CHECKING:
    from .permission.decision import Decision
    from .question_request import Answered
    from .result import Attachment, ToolResult

Status = Literal["pending", "running", "completed", "error"]

FOR_PERSON = "errorForPerson"
"""The key in the metadata of a failed call under which the error's text for a person is, where it is another one."""
ERROR_CODE = "errorCode"
"""The key there under which the code of a `ToolError` is (docs/errors.md); absent for one without a page of its own."""
UNSUCCESSFUL = "unsuccessful"
"""Key in the metadata of a batch: how many calls failed, commands with an exit code other than 0 too."""
FAILURE_KEYS = ("exit", "signal", "failed", UNSUCCESSFUL, "totalCalls")
"""Keys of a completed call's metadata that `failure_of` reads."""
_POLICY = "policy"
"""`Decision.by` and `Answered.by` where nobody was there to answer."""


class CallOutcome(StrEnum):
    """How a call ended; the values are stored, and a card shows them."""

    COMPLETED = "completed"
    FAILED = "failed"
    DENIED_BY_RULE = "denied by a rule"
    DENIED_BY_PERSON = "denied by you"
    DENIED_BY_POLICY = "denied by policy"
    REFUSED_BY_HOOK = "refused by a hook"
    DISMISSED = "dismissed by you"
    UNANSWERED = "unanswered"
    INVALID_ARGUMENTS = "invalid arguments"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    """Its process ended before it did anything."""
    ENDED = "ended"
    """Its workspace was closed, or its process ended."""
    DRY_RUN = "dry run"
    WAITING = "waiting for approval"
    """It has not ended: it waits for its first approval and has done nothing yet."""

    __repr__ = str.__repr__  # lists of outcomes read as before: ['completed', 'failed']


def now_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Pending:
    """Asked for, its arguments perhaps still being written by a model."""

    status: ClassVar[Literal["pending"]] = "pending"
    input: Final[dict[str, Any]]
    raw: Final[str] = ""

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's ``ToolStatePending``."""
        return {"status": self.status, "input": self.input, "raw": self.raw}


@dataclass(slots=True)
class Running:
    """At work, or waiting for permission."""

    status: ClassVar[Literal["running"]] = "running"
    input: Final[dict[str, Any]]
    start: Final[int]
    title: Final[str | None] = None
    metadata: Final[dict[str, Any] | None] = None

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's ``ToolStateRunning``."""
        wire: dict[str, Any] = {"status": self.status, "input": self.input, "time": {"start": self.start}}
        if self.title is not None:
            wire["title"] = self.title
        if self.metadata is not None:
            wire["metadata"] = self.metadata
        return wire


@dataclass(slots=True)
class Completed:
    """Done, with its result."""

    status: ClassVar[Literal["completed"]] = "completed"
    input: Final[dict[str, Any]]
    start: Final[int]
    end: Final[int]
    title: Final[str]
    output: Final[str]
    metadata: Final[dict[str, Any]]
    attachments: Final[list[Attachment]] = field(default_factory=list)
    compacted: Final[int | None] = None

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's ``ToolStateCompleted``."""
        times: dict[str, int] = {"start": self.start, "end": self.end}
        if self.compacted is not None:
            times["compacted"] = self.compacted
        wire: dict[str, Any] = {
            "status": self.status,
            "input": self.input,
            "output": self.output,
            "title": self.title,
            "metadata": self.metadata,
            "time": times,
        }
        if self.attachments:
            wire["attachments"] = [a.to_wire() for a in self.attachments]
        return wire


@dataclass(slots=True)
class Failed:
    """Ended by an error; `metadata` keeps the last live metadata (a stopped command's output).

    `error` is the text for a model, `for_person` the one for a person.
    """

    status: ClassVar[Literal["error"]] = "error"
    input: Final[dict[str, Any]]
    start: Final[int]
    end: Final[int]
    error: Final[str]
    metadata: Final[dict[str, Any] | None] = None

    @property
    def for_person(self) -> str:
        """The error's text for a person in a notebook."""
        return str((self.metadata or {}).get(FOR_PERSON) or self.error)

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's ``ToolStateError``."""
        wire: dict[str, Any] = {
            "status": self.status,
            "input": self.input,
            "error": self.error,
            "time": {"start": self.start, "end": self.end},
        }
        if self.metadata is not None:
            wire["metadata"] = self.metadata
        return wire


State = Pending | Running | Completed | Failed


@dataclass(slots=True)
class ToolPart:
    """One call of a tool within a message of a session."""

    id: str
    session_id: str
    message_id: str
    call_id: str
    tool: str
    state: State
    agent: str = "build"
    by: Literal["user", "model"] = "user"
    """The caller: a person in a cell, or a model."""
    waited: float = 0.0
    """Seconds spent waiting for a person's answer so far."""
    decisions: list[Decision] = field(default_factory=list)
    """Every permission decision of this call, in order."""
    answered: list[Answered] = field(default_factory=list)
    """The questions that this call put to a person, and what came of them."""
    outcome: str = ""
    """A `CallOutcome`; empty until it has ended. Another release may have stored other words."""
    parent_id: str | None = None
    """The part of the call that made this one (batch, task)."""
    result: ToolResult | None = None
    """The result object of a completed call."""
    provider_metadata: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None
    """Keys that another release wrote and that have no field here, nested as in its wire form."""

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's ``ToolPart``."""
        wire: dict[str, Any] = {
            "id": self.id,
            "sessionID": self.session_id,
            "messageID": self.message_id,
            "type": "tool",
            "callID": self.call_id,
            "tool": self.tool,
            "state": self.state.to_wire(),
        }
        if self.provider_metadata is not None:
            wire["metadata"] = self.provider_metadata
        if self.extra:
            state = self.extra.get("state", {})
            wire["state"] = {**state, **wire["state"]}
            if "time" in state and "time" in wire["state"]:
                wire["state"]["time"] = {**state["time"], **wire["state"]["time"]}
            return {**self.extra, **wire}
        return wire


def failure_of(tool: str, metadata: Mapping[str, Any] | None) -> str:
    """What failed in a call that is completed in OpenCode's terms, as a card shows it; empty if nothing did.

    It goes by the tool's name: the keys are OpenCode's, and mean something else in the metadata of other tools. Stored
    calls, also those of other programs, are judged without their tools.
    """
    metadata = metadata or {}
    if tool == INVALID:
        return "failed"
    code = metadata.get("exit")
    if tool == "bash" and isinstance(code, int) and code:
        return f"exit code {code}"
    if tool == "bash" and metadata.get("signal"):
        return f"ended by {metadata['signal']}"
    if tool == "bash" and "exit" in metadata and code is None:  # by its time limit, or by a limit of its output
        return "ended early"
    failed, total = metadata.get(UNSUCCESSFUL, metadata.get("failed")), metadata.get("totalCalls")
    if tool == "batch" and isinstance(failed, int) and isinstance(total, int) and failed:
        return f"{failed} of {total} failed"
    return ""


_BY_REASON = {
    "timeout": CallOutcome.TIMED_OUT,
    "interrupted": CallOutcome.INTERRUPTED,
    "closed": CallOutcome.ENDED,
}


def outcome_of(error: BaseException, reason: str | None = None) -> CallOutcome:
    """How a call ended.

    Args:
        error: what ended it.
        reason: why it was aborted, if it was.
    """
    match error:
        case HookRefusedError():
            return CallOutcome.REFUSED_BY_HOOK if error.hook in REFUSING else CallOutcome.FAILED
        case PermissionDeniedError():
            return CallOutcome.DENIED_BY_RULE
        case PermissionRejectedError() | PermissionCorrectedError():
            by_policy = error.decision is not None and error.decision.by == _POLICY
            return CallOutcome.DENIED_BY_POLICY if by_policy else CallOutcome.DENIED_BY_PERSON
        case QuestionRejectedError():
            unanswered = error.answered is not None and error.answered.by == _POLICY
            return CallOutcome.UNANSWERED if unanswered else CallOutcome.DISMISSED
        case InvalidArgumentsError():
            return CallOutcome.INVALID_ARGUMENTS
        case ToolAbortedError() | asyncio.CancelledError() | KeyboardInterrupt():
            return _BY_REASON.get(reason or "interrupted", CallOutcome.STOPPED)
        case DryRunEnd():
            return CallOutcome.DRY_RUN
        case _:
            return CallOutcome.FAILED


def error_text(error: BaseException, *, for_person: bool = False) -> str:
    """An error as the part keeps it: as a model reads it, or as a person does."""
    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt)):
        return "Tool execution aborted"
    if isinstance(error, ToolError):
        return full_text(error, for_person=for_person)
    try:
        text = str(error)
    except Exception as broken:  # an exception of a tool's own may be wrong itself
        text = f"(its message can't be had: {type(broken).__name__})"
    return f"{type(error).__name__}: {shorten(text)}" if text else type(error).__name__


def error_code(error: BaseException) -> str:
    """The code of an error that docs/errors.md explains; "" for any other, whose message says all there is."""
    code = type(error).code if isinstance(error, ToolError) else ""
    return "" if code == ToolError.code else code
