"""The asks of one workspace: what rules decide at once, what waits for a person, what a person said before."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from os.path import isabs
from typing import Any, NoReturn

from .. import ids
from ..call_state import now_ms
from ..errors import (
    ArgumentsRevisedError,
    PermissionCorrectedError,
    PermissionDeniedError,
    PermissionHookError,
    PermissionRejectedError,
    ToolError,
)
from ..events import Bus
from ..hooks import PERMISSION, Hooks
from ..pending_requests import UNANSWERABLE, PendingRequests, no_mask
from .decision import Answer, Decision, Rule
from .request import (
    DOOM_LOOP,
    SANDBOX,
    TRUST,
    PermissionRequest,
    Reply,
    RequestOutcome,
    WaitingRequest,
    decision_of,
    earlier_approval,
    parse_reply,
    with_decision,
)
from .rules import NOT_ANALYSED, PATH_PERMISSIONS, STRICT, evaluate, guard_file_rule, relevant, resolve_unanalysed

log = logging.getLogger(__name__)
Approve = Callable[[PermissionRequest], Reply | Awaitable[Reply]]

NOBODY_TO_STOP_A_LOOP = (
    "The same calls were made again and again, and nobody can decide whether they should continue: the workspace has "
    'no approve function and nothing subscribes to permission.asked. To allow repeated calls, add {"permission": '
    '{"doom_loop": "allow"}} to the configuration.'
)
REVISED = "asked again with other arguments"
"""The word of a decision that ended because a person changed the arguments."""
HISTORY = 10_000
"""Decisions kept in memory."""


class PermissionService:
    """Decides every `ask`, by rule or by reply.

    Any thread may call `reply`, `pending`, `reject_all` and `close`; the first answer to a request counts. Events are
    published, and waiting calls go on, on the loop that asked.

    Attributes:
        approved: rules of this session, from "always" replies or added by hand. They come after the rules an ask is
            made with, so they decide before those, but a deny among those stands whatever is here.
        approve: called with each request when it was announced; its answer counts like a reply that comes first.
            A plain function runs on the loop and holds it up while it thinks.
        hooks: those named ``permission.ask`` may answer in a person's place, where a rule asks. What a rule denies
            stays denied, and whether code is trusted only a person says.
        history: the last decisions, oldest first.
        other_spelling: gives a path relative to the worktree as an absolute one, and the other way round. Rules are
            matched against both.
        kept: the real path of the folder where the product keeps its data: changing a file there needs approval.
    """

    def __init__(
        self, bus: Bus, approve: Approve | None = None, hooks: Hooks | None = None, kept: str | None = None
    ) -> None:
        self.bus = bus
        self.approve = approve
        self.hooks = hooks
        self.approved: list[Rule] = []
        self.other_spelling: Callable[[str], str] | None = None
        self.kept = kept
        self.mask: Callable[[Any], Any] = no_mask
        self.history: deque[Decision] = deque(maxlen=HISTORY)
        self._pending: PendingRequests[PermissionRequest, Decision] = PendingRequests()

    @property
    def answerable(self) -> bool:
        """True if anybody learns of a request: `approve`, or a subscriber to ``permission.asked``."""
        return self.approve is not None or self.bus.has_subscribers("permission.asked")

    # ---- asking

    async def ask(
        self,
        *,
        session_id: str,
        permission: str,
        patterns: Sequence[str],
        always: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        also: Sequence[str] = (),
        path: str | None = None,
        ruleset: Sequence[Rule],
        tool: Mapping[str, str] | None = None,
        id: str | None = None,
        agent: str = "",
        earlier: Sequence[Decision] = (),
    ) -> Decision:
        """Return when the call may go on. All patterns are judged first; at most one request is made for them.

        Args:
            session_id: ``ses_...``; "always" and "reject" also answer the session's other requests (`reply`).
            permission: the key, such as ``bash``.
            patterns: what the call needs it for; none means nothing to allow.
            always: patterns to remember if the person says "for this session".
            metadata: for the card.
            also: what the call needs it for besides (`judge`): judged too, named where the rules are stricter with it.
            path: the absolute path of the file or folder that the patterns are looked for in.
            ruleset: the agent's rules and the session's, in that order.
            tool: ``{"messageID", "callID"}`` of the call.
            id: id for the request, ``per_...``; a new one if left out.
            agent: for whom the call runs.
            earlier: decisions of the same call before a person changed its arguments. Who submits other arguments
                approves them, so nothing is asked that no other rule asks for.

        Raises:
            PermissionDeniedError: a rule denies one of the patterns. Nothing was asked then.
            PermissionRejectedError: the person said no, or no answer can come any more.
            PermissionCorrectedError: the person said no and why.
            ValueError: `session_id` or `id` has a wrong form, or `approve` gave no valid reply.
        """
        patterns, rules, besides = self.judge(permission, patterns, also, ruleset, path)
        asking: Rule | None = None
        for rule in rules:
            if rule.action != "allow":
                if rule.action == "deny":
                    self._deny(session_id, permission, patterns, rules, ruleset, rule)
                asking = asking or rule
        if asking is None:
            made = Decision(permission, list(patterns), "allow", rules, time=now_ms(), session_id=session_id)
            decision: Decision = self.mask(made)
            self.history.append(decision)
            return decision
        request = PermissionRequest(
            id=ids.ascending("permission", id),
            session_id=ids.ascending("session", session_id),
            permission=permission,
            patterns=patterns,
            also=besides,
            metadata=dict(metadata or {}),
            always=list(always),
            tool=dict(tool) if tool is not None else None,
            agent=agent,
            rule=asking,
            asked=now_ms(),
            rules=rules,
        )
        request = request.masked(self.mask)
        if self.hooks is not None and permission != TRUST and self.hooks.has_hooks(PERMISSION):
            decided = await self._by_hooks(self.hooks, request)
            if decided is not None:
                return decided
        for decision in earlier:
            approved = earlier_approval(decision, request, self.mask(self.check(permission, besides, ruleset, path)))
            if approved is not None:
                self.history.append(approved)
                return approved
        return await self._wait(request)

    async def _by_hooks(self, hooks: Hooks, request: PermissionRequest) -> Decision | None:
        """The decision of hooks on a request; None if they leave it to a person.

        Raises:
            PermissionHookError: one says no.
            HookRefusedError: one raised.
        """
        output: dict[str, Any] = {"status": "ask"}
        plugin = await hooks.trigger_decision(PERMISSION, request.to_wire(), output, "status")
        status = output.get("status")
        if status not in ("allow", "deny"):
            return None
        decision = Decision(
            permission=request.permission,
            patterns=request.patterns,
            action="allow" if status == "allow" else "deny",
            rules=request.rules,
            reply="once" if status == "allow" else "reject",
            by=f"plugin {plugin}" if plugin else "hook",
            time=now_ms(),
            session_id=request.session_id,
        )
        self.history.append(decision)
        if status == "deny":
            raise with_decision(PermissionHookError(PERMISSION, plugin or "this workspace"), decision)
        return decision

    def judge(
        self,
        permission: str,
        patterns: Sequence[str],
        also: Sequence[str],
        ruleset: Sequence[Rule],
        path: str | None = None,
    ) -> tuple[list[str], list[Rule], list[str]]:
        """The patterns a request would name, the rule that decides each, and what would have to be allowed as well.

        Args:
            permission: the key.
            patterns: what OpenCode names.
            also: what it does not name though the call does it (the place that a file is moved to). One is named where
                a rule is stricter with it than with all of `patterns`, so that no rule is got round by leaving it out.
            ruleset: as in `ask`.
            path: as in `ask`.
        """
        named = [patterns] if isinstance(patterns, str) else list(patterns)
        rules = self.check(permission, named, ruleset, path)
        if not also:
            return named, rules, []
        limit = max((STRICT[rule.action] for rule in rules), default=0)
        besides = []
        for pattern, rule in zip(also, self.check(permission, also, ruleset), strict=True):
            if STRICT[rule.action] > limit:
                named.append(pattern)
                rules.append(rule)
            elif rule.action != "allow":
                besides.append(pattern)
        return named, rules, besides

    def check(
        self, permission: str, patterns: Sequence[str], ruleset: Sequence[Rule], path: str | None = None
    ) -> list[Rule]:
        """The rule that would decide each pattern now. Asks nothing, records nothing."""
        if isinstance(patterns, str):
            patterns = [patterns]
        approved = self.approved
        if permission in (TRUST, SANDBOX):  # what was allowed without a word about these (mode bypass) is not meant
            approved = [rule for rule in approved if rule.permission == permission]
            ruleset = [rule for rule in ruleset if rule.permission == permission or rule.action != "allow"]
        rules: list[Rule] = []
        for pattern in patterns:
            others = self._spellings(permission, pattern, path)
            rule = evaluate(permission, pattern, ruleset, spellings=others)
            if rule.approval:  # of the session's mode: a deny stands
                firm = evaluate(permission, pattern, [r for r in ruleset if not r.approval], spellings=others)
                rule = firm if firm.action == "deny" else rule
            if approved and rule.action != "deny":
                rule = evaluate(permission, pattern, ruleset, _after(approved, rule), spellings=others)
            if rule.action == "allow" and pattern.startswith(NOT_ANALYSED):
                rule = resolve_unanalysed(permission, pattern, rule, ruleset, approved)
            elif rule.action == "allow" and permission in ("edit", "read"):
                bypassed = rule.permission == "*" and (rule.approval or rule in approved)
                kept = permission == "edit" and any(map(self._is_kept, (pattern, *others)))
                kept = kept and not self._is_kept(rule.pattern)  # such as an agent's plans
                rule = rule if bypassed else guard_file_rule(permission, pattern, rule, kept=kept)
            rules.append(rule)
        return rules

    def _is_kept(self, path: str) -> bool:
        """Whether a path is in the folder that the product keeps its own data in."""
        return self.kept is not None and isabs(path) and os.path.normpath(path).startswith(self.kept + os.sep)

    def _spellings(self, permission: str, pattern: str, path: str | None = None) -> list[str]:
        """Other spellings under which rules may name what a pattern is for."""
        other = self.other_spelling
        if other is None:
            return []
        if path is None:
            if permission not in PATH_PERMISSIONS or pattern == "*":
                return []
            spelled = other(pattern)
            if "\0" in pattern:
                return [spelled]  # no path at all
            return [pattern, spelled, os.path.realpath(pattern if isabs(pattern) else spelled)]
        paths = [path, os.path.realpath(path)]
        if permission == "glob":
            paths.append(os.path.normpath(os.path.join(path, pattern)))
        paths = [spelling for name in paths for spelling in (name, other(name)) if spelling]
        return list(dict.fromkeys([*paths, *(f"{name}/{pattern}" for name in paths)]))

    def _deny(
        self,
        session_id: str,
        permission: str,
        patterns: Sequence[str],
        rules: list[Rule],
        ruleset: Sequence[Rule],
        decider: Rule,
    ) -> NoReturn:
        decision = self.mask(Decision(permission, list(patterns), "deny", rules, time=now_ms(), session_id=session_id))
        self.history.append(decision)
        concerned = relevant(permission, ruleset)
        if not any(rule is decider for rule in concerned):  # denied by a rule of this session
            concerned.append(decider)
        raise with_decision(PermissionDeniedError(concerned, decider), decision)

    async def _wait(self, request: PermissionRequest) -> Decision:
        if request.permission == DOOM_LOOP and not self.answerable:
            decision = decision_of(WaitingRequest(request), RequestOutcome("reject", "policy", NOBODY_TO_STOP_A_LOOP))
            self.history.append(decision)
            raise with_decision(PermissionRejectedError(NOBODY_TO_STOP_A_LOOP), decision)
        entry = self._pending.add(request, PermissionRejectedError)

        def announce() -> None:
            if self.bus.has_subscribers("permission.asked"):
                self.bus.publish("permission.asked", request.to_wire())
            elif self.approve is None:
                log.warning(UNANSWERABLE, "permission", request.permission, "permissions", request.id)

        def withdraw(error: BaseException) -> None:
            stopped = isinstance(error, asyncio.CancelledError)
            reason = "The call was stopped" if stopped else f"approve failed: {error}"
            refusal = error if isinstance(error, ToolError) else None
            if self._pending.take(request.id):
                self._finish(entry, RequestOutcome("reject", "cancelled", reason, refusal))

        decision, error = await entry.outcome(
            announce,
            self.approve,
            lambda answer: self.reply(request.id, answer, by="approve"),
            lambda: PermissionRejectedError("Nobody could answer: the approver was stopped."),
            withdraw,
        )
        if error is not None:
            raise error
        return decision

    # ---- answering

    def pending(self) -> list[PermissionRequest]:
        """The requests that wait for an answer, oldest first."""
        return self._pending.requests()

    def reply(
        self,
        request_id: str,
        reply: Reply,
        message: str | None = None,
        *,
        patterns: Sequence[str] | None = None,
        by: str = "",
        error: ToolError | None = None,
    ) -> bool:
        """Answer a request. May be called from any thread.

        ``once`` lets that call go on. ``always`` also remembers the request's ``always`` patterns, and lets the
        session's other pending requests go on that they cover. ``reject`` also rejects the session's other
        pending requests; with a message the refused call fails with that word to the model.

        Args:
            request_id: which.
            reply: the answer; ``("reject", "why")`` is short for a reject with a message.
            message: a word about it.
            patterns: with ``always``: what to remember instead, as edited by the person.
            by: through which way the answer came, for the history.
            error: with ``reject``: raise this in the refused call instead (nobody was there to ask); calls refused
                along with it say the same.

        Returns:
            False if nothing waits under that id (any more).

        Raises:
            ValueError: the reply is not one of the three, or `patterns` is not a list of texts.
        """
        answer, message = parse_reply(reply, message)
        if patterns is not None and (isinstance(patterns, str) or not all(isinstance(p, str) for p in patterns)):
            raise ValueError(f"patterns must be a list of texts, not {patterns!r}")
        by = by or "reply"
        with self._pending.lock:
            entry = self._pending.take(request_id)
            if entry is None:
                return False
            request = entry.request
            if answer == "always":
                remembered, key = request.remembered(patterns), request.permission
                self.approved += [Rule(key, p, "allow", "this session", source="session") for p in remembered]
            others = self._take_along(answer, request)
        refusal: ToolError | None = None
        if answer == "reject":
            refusal = error or (PermissionCorrectedError(message) if message else PermissionRejectedError())
        self._settle(entry, RequestOutcome(answer, by, message, refusal))
        reason = str(error) if error is not None else None
        for other in others:
            refusal = PermissionRejectedError(reason) if answer == "reject" else None
            self._settle(other, RequestOutcome(answer, by, error=refusal, together=True))
        return True

    def revise(self, request_id: str, arguments: dict[str, Any], *, by: str = "reply") -> bool:
        """End a request because the person wants other arguments: its call begins again with them, and asks again.

        Other requests of the session go on waiting. May be called from any thread; `Call.revise` checks the arguments.

        Returns:
            False if nothing waits under that id (any more).
        """
        entry = self._pending.take(request_id)
        if entry is None:
            return False
        self._settle(entry, RequestOutcome("reject", by, REVISED, ArgumentsRevisedError(arguments)))
        return True

    def _take_along(self, answer: Answer, request: PermissionRequest) -> list[WaitingRequest]:
        """Take the requests of the same session that this answer settles too out of the pending ones."""
        if answer == "once":
            return []
        session = request.session_id
        return self._pending.take_where(
            lambda other: other.session_id == session and (answer == "reject" or self._covered(other))
        )

    def _covered(self, request: PermissionRequest) -> bool:
        """Return whether the session's rules, alone, allow all that is asked."""
        request = request.exact or request
        key = request.permission
        asked = zip(request.patterns, request.rules, strict=False) if request.rules else ()
        approved = {p: _after(self.approved, rule) for p, rule in asked}
        return all(
            evaluate(key, p, approved.get(p, self.approved), spellings=self._spellings(key, p)).action == "allow"
            for p in [*request.patterns, *request.also]
        )

    def reject_all(
        self,
        reason: str | None = None,
        *,
        session_id: str | None = None,
        by: str = "closed",
    ) -> int:
        """Reject every pending request, or those of one session; `reason` becomes the errors' message.

        Returns:
            How many there were.
        """
        entries = self._pending.take_where(lambda request: session_id in (None, request.session_id))
        for entry in entries:
            self._settle(entry, RequestOutcome("reject", by, reason, PermissionRejectedError(reason)))
        return len(entries)

    def close(self, reason: str = "The workspace was closed before the request was answered.") -> None:
        """Reject what is pending and everything that would have to be asked from now on."""
        self._pending.closed = reason
        self.reject_all(reason)

    # ---- rules of this session

    def remember(self, rule: Rule) -> None:
        """Add a rule for this session; it decides before older ones. Requests that wait already are not touched."""
        with self._pending.lock:
            self.approved.append(rule)

    def revoke(self, rule: Rule) -> bool:
        """Forget a rule of this session, every copy of it. False if there was none."""
        with self._pending.lock:
            remaining = [r for r in self.approved if r != rule]
            revoked = len(remaining) < len(self.approved)
            self.approved[:] = remaining
            return revoked

    # ---- ending a wait

    def _settle(self, entry: WaitingRequest, outcome: RequestOutcome) -> None:
        """Finish on the loop that waits."""
        if not entry.run_on_waiting_loop(lambda: self._finish(entry, outcome)):
            self.history.append(decision_of(entry, outcome))

    def _finish(self, entry: WaitingRequest, outcome: RequestOutcome) -> None:
        request = entry.request
        if self.bus.has_subscribers("permission.replied"):
            self.bus.publish(
                "permission.replied",
                {
                    "sessionID": request.session_id,
                    "requestID": request.id,
                    "reply": outcome.reply,
                },
            )
        decision = decision_of(entry, outcome)
        self.history.append(decision)
        if outcome.error is not None:
            outcome.error.decision = decision
        entry.end(decision, outcome.error)


def _after(approved: Sequence[Rule], rule: Rule) -> Sequence[Rule]:
    """The approvals that came after a rule of a session's mode; all of them for another rule."""
    return (
        [approval for approval in approved if not any(approval is old for old in rule.over)] if rule.over else approved
    )
