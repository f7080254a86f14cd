"""How a permission request ends: what its waiter is told, and the decision that is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..errors import ArgumentsRevisedError, ToolError
from ..pending import PendingRequest
from ..state import now_ms
from .request import Decision, PermissionRequest
from .rules import Rule

Answer = Literal["once", "always", "reject"]


class RequestOutcome(NamedTuple):
    """The result that the waiter of a request receives."""

    reply: Answer
    by: str
    message: str | None = None
    error: ToolError | None = None
    together: bool = False


WaitingRequest = PendingRequest[PermissionRequest, Decision]


def decision_of(entry: WaitingRequest, outcome: RequestOutcome) -> Decision:
    """The decision that a request ended with."""
    request = entry.request
    return Decision(
        permission=request.permission,
        patterns=request.patterns,
        action="deny" if outcome.reply == "reject" else "allow",
        rules=request.rules,
        reply=outcome.reply,
        by=outcome.by,
        message=outcome.message,
        waited=entry.waited,
        time=now_ms(),
        session_id=request.session_id,
        request_id=request.id,
        revised=isinstance(outcome.error, ArgumentsRevisedError),
        together=outcome.together,
    )


def earlier_approval(earlier: Decision, request: PermissionRequest, besides: Sequence[Rule]) -> Decision | None:
    """The approval of a request that a person gave before, in the same call; None if the request is another one.

    Args:
        earlier: how a request of the call ended: the person submitted other arguments instead of an answer, which
            approves what the same rules ask for; or approved the very same.
        request: what the call with the new arguments needs.
        besides: the rules that decide its `also`.
    """
    if earlier.permission != request.permission:
        return None
    if earlier.revised:
        if not all(rule.action == "allow" or rule in earlier.rules for rule in (*request.rules, *besides)):
            return None
    elif earlier.reply != "once" or not set(request.everything) <= set(earlier.patterns):
        return None
    return Decision(
        permission=request.permission,
        patterns=request.patterns,
        action="allow",
        rules=request.rules,
        reply="once",
        by=earlier.by,
        time=now_ms(),
        session_id=request.session_id,
    )


def with_decision(error: ToolError, decision: Decision) -> ToolError:
    """The error with the decision that it stands for."""
    error.decision = decision
    return error


def parse_reply(reply: Any, message: str | None) -> tuple[Answer, str | None]:
    """A reply and its message, checked.

    Raises:
        ValueError: it is no reply.
    """
    if isinstance(reply, tuple | list) and len(reply) == 2 and reply[0] == "reject":
        reply, message = "reject", reply[1]
    if reply not in ("once", "always", "reject"):
        raise ValueError(f'{reply!r} is not a reply: use "once", "always", "reject" or ("reject", "the reason")')
    if message is not None and not isinstance(message, str):
        raise ValueError(f"the message must be text, not {message!r}")
    return reply, message or None
