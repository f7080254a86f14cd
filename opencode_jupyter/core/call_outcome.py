"""How a call ended: its outcome, and the text of its error that its part keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from .call_state import CallOutcome
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

POLICY = "policy"
"""`Decision.by` and `Answered.by` where nobody was there to answer."""
UNSUCCESSFUL = "unsuccessful"
"""Key in the metadata of a batch: how many calls failed, commands with an exit code other than 0 too."""
FAILURE_KEYS = ("exit", "signal", "failed", UNSUCCESSFUL, "totalCalls")
"""Keys of a completed call's metadata that `failure_of` reads."""


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
            by_policy = error.decision is not None and error.decision.by == POLICY
            return CallOutcome.DENIED_BY_POLICY if by_policy else CallOutcome.DENIED_BY_PERSON
        case QuestionRejectedError():
            unanswered = error.answered is not None and error.answered.by == POLICY
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


def error_of_call(error: BaseException) -> BaseException:
    """What a call raises for `error`; a `GeneratorExit` from a tool would end its caller without a trace."""
    if isinstance(error, GeneratorExit):
        return ToolError("The tool raised GeneratorExit, which is for closing generators. Raise another exception.")
    return error
