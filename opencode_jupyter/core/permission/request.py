"""Permission requests, replies and decisions: what a call needs, how a request ends, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..call_state import now_ms
from ..errors import ArgumentsRevisedError, ToolError
from ..pending_requests import PendingRequest
from .decision import Answer, Decision, Rule

Reply = Answer | tuple[Literal["reject"], str]
"""A reply to a permission request. The tuple carries the reason for the model."""

TRUST = "trust"
"""Permission of the request for code that a project brings (`core.trust`). No rule decides it: a project's could."""
SANDBOX = "sandbox"
"""Permission of the request to run a command again without the sandbox that blocked it."""
DOOM_LOOP = "doom_loop"
"""Permission of the request for a call that repeats itself."""


@dataclass(slots=True, kw_only=True)
class PermissionQuery:
    """What a call needs permission for, and the rules that decide it.

    Attributes:
        session_id: ``ses_...``; "always" and "reject" also answer the session's other requests.
        permission: the key, such as ``bash``.
        patterns: what the call needs it for, as OpenCode names it; none means nothing to allow.
        ruleset: the agent's rules and the session's, in that order.
        always: patterns to remember if the person replies "for this session".
        metadata: for the card.
        also: what the call needs it for besides, which OpenCode does not name (the place that a file is moved to).
        path: the absolute path of the file or folder that the patterns are looked for in.
        tool: ``{"messageID", "callID"}`` of the call.
        agent: for whom the call runs.
        earlier: decisions of the same call before a person changed its arguments. Who submits other arguments approves
            them, so nothing is requested that no other rule asks for.
        id: for the request, ``per_...``; a new one if left out.
    """

    session_id: str
    permission: str
    patterns: Sequence[str]
    ruleset: Sequence[Rule]
    always: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None
    also: Sequence[str] = ()
    path: str | None = None
    tool: Mapping[str, str] | None = None
    agent: str = ""
    earlier: Sequence[Decision] = ()
    id: str | None = None


class Judgement(NamedTuple):
    """The rules' answer to a query.

    Attributes:
        patterns: those that a request names: the query's, and those of its `also` for which a rule is stricter.
        rules: the rule that decides each.
        also: the other patterns of the query's `also` that no rule allows.
    """

    patterns: list[str]
    rules: list[Rule]
    also: list[str]


@dataclass(slots=True)
class PermissionRequest:
    """A pending request.

    Attributes:
        id: ``per_...``.
        session_id: ``ses_...``.
        permission: the requested key (``bash``, ``edit``, ...).
        patterns: everything the call needs it for, also what rules allow already.
        metadata: what a card shows (a diff, a command, a path).
        always: the patterns that "for this session" remembers.
        tool: ``{"messageID", "callID"}`` of the call, if any.
        agent: for whom the call runs.
        rule: the rule that requires approval.
        rules: the rule that decides each pattern, in the order of `patterns`.
        asked: Unix milliseconds.
        also: what the call needs besides and rules ask for too, but OpenCode does not name (where a file is moved to).
    """

    id: str
    session_id: str
    permission: str
    patterns: list[str]
    metadata: dict[str, Any] = field(default_factory=dict)
    always: list[str] = field(default_factory=list)
    tool: dict[str, str] | None = None
    agent: str = ""
    rule: Rule | None = None
    asked: int = 0
    rules: list[Rule] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    exact: PermissionRequest | None = field(default=None, repr=False, compare=False)
    """The same without masks, for the rules; None if no secret is in it."""

    @property
    def everything(self) -> list[str]:
        """`patterns` and `also` together, for a text that shows nothing else."""
        return [*self.patterns, *self.also]

    def masked(self, mask: Callable[[Any], Any]) -> PermissionRequest:
        """This request as it is shown: itself if no secret is in it."""
        shown: PermissionRequest = mask(self)
        if shown is not self:
            shown.exact = self
        return shown

    def remembered(self, patterns: Sequence[str] | None) -> list[str]:
        """The patterns for rules of the session: `always`, or those that a person selected of what was shown."""
        exact = dict(zip(self.always, (self.exact or self).always, strict=True))
        return [exact.get(pattern, pattern) for pattern in (self.always if patterns is None else patterns)]

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's form: the payload of ``permission.asked``."""
        wire: dict[str, Any] = {
            "id": self.id,
            "sessionID": self.session_id,
            "permission": self.permission,
            "patterns": list(self.patterns),
            "metadata": self.metadata,
            "always": list(self.always),
        }
        if self.tool is not None:
            wire["tool"] = dict(self.tool)
        return wire


class RequestOutcome(NamedTuple):
    """The result that the waiter of a request receives."""

    reply: Answer
    by: str
    message: str | None = None
    error: ToolError | None = None
    together: bool = False


PendingPermission = PendingRequest[PermissionRequest, Decision]


def decision_of(pending: PendingPermission, outcome: RequestOutcome) -> Decision:
    """The decision that a request ended with."""
    request = pending.request
    return Decision(
        permission=request.permission,
        patterns=request.patterns,
        action="deny" if outcome.reply == "reject" else "allow",
        rules=request.rules,
        reply=outcome.reply,
        by=outcome.by,
        message=outcome.message,
        waited=pending.waited,
        time=now_ms(),
        session_id=request.session_id,
        request_id=request.id,
        revised=isinstance(outcome.error, ArgumentsRevisedError),
        together=outcome.together,
    )


def earlier_approval(earlier: Decision, request: PermissionRequest, also_rules: Sequence[Rule]) -> Decision | None:
    """The approval of a request that a person gave before, in the same call; None if the request is another one.

    Args:
        earlier: how a request of the call ended: the person submitted other arguments instead of a reply, which
            approves what the same rules ask for; or approved the very same.
        request: what the call with the new arguments needs.
        also_rules: the rules that decide its `also`.
    """
    if earlier.permission != request.permission:
        return None
    if earlier.revised:
        if not all(rule.action == "allow" or rule in earlier.rules for rule in (*request.rules, *also_rules)):
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
