"""The permission requests of one workspace: what rules decide at once, what waits for a reply, what was approved."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from os.path import isabs
from typing import Any

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
    Judgement,
    PendingPermission,
    PermissionQuery,
    PermissionRequest,
    Reply,
    RequestOutcome,
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
"""The message of a decision that ended because a person changed the arguments."""
HISTORY = 10_000
"""Decisions kept in memory."""


class PermissionService:
    """Decides every query, by rule or by reply.

    Any thread may call `reply`, `pending`, `reject_all` and `close`; the first reply to a request counts. Events are
    published, and waiting calls continue, on the loop that made the request.

    Attributes:
        approved: rules of this session, from "always" replies or added by hand. They come after the rules of a query,
            so they decide before those, but a deny among those is never overruled.
        approve: called with each request when it was announced; its answer counts like a reply that comes first.
            A plain function runs on the loop and blocks it.
        hooks: those named ``permission.ask`` may reply in a person's place, where a rule asks. What a rule denies
            stays denied, and only a person decides whether code is trusted.
        history: the last decisions, oldest first.
        other_spelling: gives a path relative to the worktree as an absolute one, and the other way round. Rules are
            matched against both.
        data_folder: the real path of the folder where the product keeps its data: changing a file there needs approval.
    """

    def __init__(
        self, bus: Bus, approve: Approve | None = None, hooks: Hooks | None = None, data_folder: str | None = None
    ) -> None:
        self.bus = bus
        self.approve = approve
        self.hooks = hooks
        self.approved: list[Rule] = []
        self.other_spelling: Callable[[str], str] | None = None
        self.data_folder = data_folder
        self.mask: Callable[[Any], Any] = no_mask
        self.history: deque[Decision] = deque(maxlen=HISTORY)
        self._pending: PendingRequests[PermissionRequest, Decision] = PendingRequests()

    @property
    def answerable(self) -> bool:
        """True if anybody learns of a request: `approve`, or a subscriber to ``permission.asked``."""
        return self.approve is not None or self.bus.has_subscribers("permission.asked")

    # ---- deciding

    async def ask(self, query: PermissionQuery) -> Decision:
        """Return when the call may continue. All patterns are judged first; at most one request is made for them.

        Raises:
            PermissionDeniedError: a rule denies one of the patterns. No request was made then.
            PermissionRejectedError: the person denied it, or no reply can come any more.
            PermissionCorrectedError: the person denied it with a reason.
            ValueError: `session_id` or `id` has a wrong form, or `approve` gave no valid reply.
        """
        patterns, rules, also = self.judge(query)
        asking: Rule | None = None
        for rule in rules:
            if rule.action != "allow":
                if rule.action == "deny":
                    raise self._denial(query, patterns, rules, rule)
                asking = asking or rule
        if asking is None:
            decision: Decision = self.mask(
                Decision(query.permission, patterns, "allow", rules, time=now_ms(), session_id=query.session_id)
            )
            self.history.append(decision)
            return decision
        request = PermissionRequest(
            id=ids.ascending("permission", query.id),
            session_id=ids.ascending("session", query.session_id),
            permission=query.permission,
            patterns=patterns,
            also=also,
            metadata=dict(query.metadata or {}),
            always=list(query.always),
            tool=dict(query.tool) if query.tool is not None else None,
            agent=query.agent,
            rule=asking,
            asked=now_ms(),
            rules=rules,
        ).masked(self.mask)
        if self.hooks is not None and query.permission != TRUST and self.hooks.has_hooks(PERMISSION):
            hook_decision = await self._decide_by_hooks(self.hooks, request)
            if hook_decision is not None:
                return hook_decision
        for earlier in query.earlier:
            also_rules = self.mask(self.check(query.permission, also, query.ruleset, query.path))
            approval = earlier_approval(earlier, request, also_rules)
            if approval is not None:
                self.history.append(approval)
                return approval
        return await self._wait(request)

    async def _decide_by_hooks(self, hooks: Hooks, request: PermissionRequest) -> Decision | None:
        """The decision of hooks on a request; None if they leave it to a person.

        Raises:
            PermissionHookError: one denies it.
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

    def judge(self, query: PermissionQuery) -> Judgement:
        """Apply the rules to a query. No request is made, nothing is recorded.

        A pattern of `also` is named where a rule is stricter with it than with all of `patterns`, so that no rule is
        bypassed by leaving it out.
        """
        patterns = [query.patterns] if isinstance(query.patterns, str) else list(query.patterns)
        rules = self.check(query.permission, patterns, query.ruleset, query.path)
        if not query.also:
            return Judgement(patterns, rules, [])
        limit = max((STRICT[rule.action] for rule in rules), default=0)
        unnamed = []
        for pattern, rule in zip(query.also, self.check(query.permission, query.also, query.ruleset), strict=True):
            if STRICT[rule.action] > limit:
                patterns.append(pattern)
                rules.append(rule)
            elif rule.action != "allow":
                unnamed.append(pattern)
        return Judgement(patterns, rules, unnamed)

    def check(
        self, permission: str, patterns: Sequence[str], ruleset: Sequence[Rule], path: str | None = None
    ) -> list[Rule]:
        """The rule that would decide each pattern now."""
        if isinstance(patterns, str):
            patterns = [patterns]
        approved = self.approved
        if permission in (TRUST, SANDBOX):  # an approval that does not name these (mode bypass) does not cover them
            approved = [rule for rule in approved if rule.permission == permission]
            ruleset = [rule for rule in ruleset if rule.permission == permission or rule.action != "allow"]
        rules: list[Rule] = []
        for pattern in patterns:
            spellings = self._spellings(permission, pattern, path)
            rule = evaluate(permission, pattern, ruleset, spellings=spellings)
            if rule.approval:  # of the session's mode: it overrules no deny
                firm = evaluate(permission, pattern, [r for r in ruleset if not r.approval], spellings=spellings)
                rule = firm if firm.action == "deny" else rule
            if approved and rule.action != "deny":
                rule = evaluate(permission, pattern, ruleset, _approved_after(approved, rule), spellings=spellings)
            if rule.action == "allow" and pattern.startswith(NOT_ANALYSED):
                rule = resolve_unanalysed(permission, pattern, rule, ruleset, approved)
            elif rule.action == "allow" and permission in ("edit", "read"):
                bypassed = rule.permission == "*" and (rule.approval or rule in approved)
                own_data = permission == "edit" and any(map(self._is_own_data, (pattern, *spellings)))
                own_data = own_data and not self._is_own_data(rule.pattern)  # such as an agent's plans
                rule = rule if bypassed else guard_file_rule(permission, pattern, rule, own_data=own_data)
            rules.append(rule)
        return rules

    def _is_own_data(self, path: str) -> bool:
        folder = self.data_folder
        return folder is not None and isabs(path) and os.path.normpath(path).startswith(folder + os.sep)

    def _spellings(self, permission: str, pattern: str, path: str | None = None) -> list[str]:
        """Other spellings under which rules may name what a pattern is for."""
        respell = self.other_spelling
        if respell is None:
            return []
        if path is None:
            if permission not in PATH_PERMISSIONS or pattern == "*":
                return []
            other = respell(pattern)
            if "\0" in pattern:
                return [other]  # no path at all
            return [pattern, other, os.path.realpath(pattern if isabs(pattern) else other)]
        paths = [path, os.path.realpath(path)]
        if permission == "glob":  # its pattern starts from its path
            paths.append(os.path.normpath(os.path.join(path, pattern)))
        paths = [spelling for name in paths for spelling in (name, respell(name)) if spelling]
        return list(dict.fromkeys([*paths, *(f"{name}/{pattern}" for name in paths)]))

    def _denial(self, query: PermissionQuery, patterns: list[str], rules: list[Rule], decider: Rule) -> ToolError:
        """The error of a query that a rule denies; its decision is recorded."""
        decision = self.mask(
            Decision(query.permission, patterns, "deny", rules, time=now_ms(), session_id=query.session_id)
        )
        self.history.append(decision)
        relevant_rules = relevant(query.permission, query.ruleset)
        if not any(rule is decider for rule in relevant_rules):  # denied by a rule of this session
            relevant_rules.append(decider)
        return with_decision(PermissionDeniedError(relevant_rules, decider), decision)

    async def _wait(self, request: PermissionRequest) -> Decision:
        if request.permission == DOOM_LOOP and not self.answerable:
            outcome = RequestOutcome("reject", "policy", NOBODY_TO_STOP_A_LOOP)
            decision = decision_of(PendingPermission(request), outcome)
            self.history.append(decision)
            raise with_decision(PermissionRejectedError(NOBODY_TO_STOP_A_LOOP), decision)
        pending = self._pending.add(request, PermissionRejectedError)

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
                self._finish(pending, RequestOutcome("reject", "cancelled", reason, refusal))

        decision, error = await pending.wait(
            announce,
            self.approve,
            lambda answer: self.reply(request.id, answer, by="approve"),
            lambda: PermissionRejectedError("Nobody could answer: the approver was stopped."),
            withdraw,
        )
        if error is not None:
            raise error
        return decision

    # ---- replying

    def pending(self) -> list[PermissionRequest]:
        """The pending requests, oldest first."""
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
        """Reply to a request. May be called from any thread.

        ``once`` lets that call continue. ``always`` also remembers the request's ``always`` patterns, and approves the
        session's other pending requests that they cover. ``reject`` also rejects the session's other pending requests;
        with a message the denied call fails with that reason for the model.

        Args:
            request_id: which.
            reply: the reply; ``("reject", "why")`` is short for a reject with a message.
            message: the reason.
            patterns: with ``always``: what to remember instead, as edited by the person.
            by: the channel through which the reply came, for the history.
            error: with ``reject``: raise this in the denied call instead (nobody was there to reply); calls denied
                along with it have the same message.

        Returns:
            False if no request of that id is pending (any more).

        Raises:
            ValueError: the reply is not one of the three, or `patterns` is not a list of texts.
        """
        answer, message = parse_reply(reply, message)
        if patterns is not None and (isinstance(patterns, str) or not all(isinstance(p, str) for p in patterns)):
            raise ValueError(f"patterns must be a list of texts, not {patterns!r}")
        by = by or "reply"
        with self._pending.lock:
            pending = self._pending.take(request_id)
            if pending is None:
                return False
            request = pending.request
            if answer == "always":
                remembered, key = request.remembered(patterns), request.permission
                self.approved += [Rule(key, p, "allow", "this session", source="session") for p in remembered]
            others = self._take_covered(answer, request.session_id)
        refusal: ToolError | None = None
        if answer == "reject":
            refusal = error or (PermissionCorrectedError(message) if message else PermissionRejectedError())
        self._settle(pending, RequestOutcome(answer, by, message, refusal))
        reason = str(error) if error is not None else None
        for other in others:
            refusal = PermissionRejectedError(reason) if answer == "reject" else None
            self._settle(other, RequestOutcome(answer, by, error=refusal, together=True))
        return True

    def revise(self, request_id: str, arguments: dict[str, Any], *, by: str = "reply") -> bool:
        """End a request whose arguments the person changed: its call starts again with the new ones.

        Other requests of the session stay pending. May be called from any thread; `Call.revise` checks the arguments.

        Returns:
            False if no request of that id is pending (any more).
        """
        pending = self._pending.take(request_id)
        if pending is None:
            return False
        self._settle(pending, RequestOutcome("reject", by, REVISED, ArgumentsRevisedError(arguments)))
        return True

    def _take_covered(self, answer: Answer, session_id: str) -> list[PendingPermission]:
        """Take the session's other requests that this reply decides too out of the pending ones."""
        if answer == "once":
            return []
        return self._pending.take_where(
            lambda other: other.session_id == session_id and (answer == "reject" or self._is_approved(other))
        )

    def _is_approved(self, request: PermissionRequest) -> bool:
        """Return whether the session's rules, alone, allow the whole request."""
        request = request.exact or request
        key = request.permission
        decided = zip(request.patterns, request.rules, strict=False) if request.rules else ()
        approved = {pattern: _approved_after(self.approved, rule) for pattern, rule in decided}
        return all(
            evaluate(key, p, approved.get(p, self.approved), spellings=self._spellings(key, p)).action == "allow"
            for p in request.everything
        )

    def reject_all(self, reason: str | None = None, *, session_id: str | None = None, by: str = "closed") -> int:
        """Reject every pending request, or those of one session; `reason` becomes the errors' message.

        Returns:
            How many there were.
        """
        rejected = self._pending.take_where(lambda request: session_id in (None, request.session_id))
        for pending in rejected:
            self._settle(pending, RequestOutcome("reject", by, reason, PermissionRejectedError(reason)))
        return len(rejected)

    def close(self, reason: str = "The workspace was closed before the request was answered.") -> None:
        """Reject what is pending, and every later request."""
        self._pending.closed = reason
        self.reject_all(reason)

    # ---- rules of this session

    def remember(self, rule: Rule) -> None:
        """Add a rule for this session; it decides before older ones. Pending requests are not affected."""
        with self._pending.lock:
            self.approved.append(rule)

    def revoke(self, rule: Rule) -> bool:
        """Remove a rule of this session, every copy of it. False if there was none."""
        with self._pending.lock:
            remaining = [r for r in self.approved if r != rule]
            revoked = len(remaining) < len(self.approved)
            self.approved[:] = remaining
            return revoked

    # ---- ending a wait

    def _settle(self, pending: PendingPermission, outcome: RequestOutcome) -> None:
        """Finish on the loop that waits."""
        if not pending.run_on_waiting_loop(lambda: self._finish(pending, outcome)):
            self.history.append(decision_of(pending, outcome))

    def _finish(self, pending: PendingPermission, outcome: RequestOutcome) -> None:
        request = pending.request
        if self.bus.has_subscribers("permission.replied"):
            reply = {"sessionID": request.session_id, "requestID": request.id, "reply": outcome.reply}
            self.bus.publish("permission.replied", reply)
        decision = decision_of(pending, outcome)
        self.history.append(decision)
        if outcome.error is not None:
            outcome.error.decision = decision
        pending.end(decision, outcome.error)


def _approved_after(approved: Sequence[Rule], rule: Rule) -> Sequence[Rule]:
    """The approvals that came after a rule of a session's mode; all of them for another rule."""
    if not rule.over:
        return approved
    return [approval for approval in approved if not any(approval is old for old in rule.over)]
