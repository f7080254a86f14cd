"""How a call ended, in the words of its card and in the text that its part keeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .context import DryRunEnd
from .errors import (
    REFUSING,
    HookRefusedError,
    InvalidArgumentsError,
    PermissionCorrectedError,
    PermissionDeniedError,
    PermissionRejectedError,
    QuestionRejectedError,
    ToolAbortedError,
    ToolError,
    full_text,
)

if TYPE_CHECKING:
    from .call import Call


def outcome_of(error: BaseException, reason: str | None = None) -> str:
    """How a call ended, in the words a card shows."""
    match error:
        case HookRefusedError():
            return "refused by a hook" if error.hook in REFUSING else "failed"
        case PermissionDeniedError():
            return "denied by a rule"
        case PermissionRejectedError() | PermissionCorrectedError():
            return "denied by you"
        case QuestionRejectedError():
            return "dismissed by you"
        case InvalidArgumentsError():
            return "invalid arguments"
        case ToolAbortedError() | asyncio.CancelledError() | KeyboardInterrupt():
            words = {"timeout": "timed out", "interrupted": "interrupted", "closed": "ended"}
            return words.get(reason or "interrupted", "stopped")
        case DryRunEnd():
            return "dry run"
        case _:
            return "failed"


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
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def why_cancelled(parent: Call | None) -> str:
    """Why a cancel reached a call from outside: what ended a call that it is part of, else an interrupt."""
    while parent is not None:
        if parent.signal.reason is not None:
            return parent.signal.reason
        if parent.overdue:
            return "timeout"
        parent = parent.parent
    return "interrupted"
