"""What a call requests of a person: permission, trust, answers; its time limit does not count meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .audit import audit_log, entry_of
from .call_reporting import Reporting
from .call_state import Pending, Running, now_ms
from .card_spec import renew_description
from .context import InitContext, ToolContext
from .errors import ArgumentsRevisedError, DryRunEnd, ToolError
from .permission import Action, Decision, PermissionQuery, Rule
from .permission.modes import rules_of, tool_denied
from .permission.request import DOOM_LOOP, SANDBOX, TRUST
from .schema import wire_names
from .wildcard import match

if TYPE_CHECKING:
    import anyio

    from .agents import Agent
    from .call import By
    from .host import ToolHost
    from .question_request import Answers
    from .sessions import Session
    from .tool import Tool


NOT_REVISABLE = frozenset({TRUST, SANDBOX, DOOM_LOOP})
"""Permissions that are not about the arguments: trust in code, the same call again, a call without the sandbox."""
CHANGE_KEYS = ("diff", "files")
"""Metadata of a request, and of a call, that describes how files are changed."""
WAITING_FOR = "waitingFor"
"""Metadata of a running call: the file that it waits for, because another call holds it."""
REVISED_NOTE = "\n\n(The user changed the arguments of this call before it ran; it ran with {arguments}.)"


def rules_for(workspace: ToolHost, agent: Agent, session: Session, by: By) -> list[Rule]:
    """The rules for a call, without this session's approvals: the agent's, then the session's."""
    rules = agent.model_permission if by == "model" else agent.permission
    own = workspace.rules
    if own or session.permission or session.parent_id is not None:
        return [*rules, *own, *rules_of(workspace, session)]
    return rules


class CallApproval(Reporting):
    """The part of a `Call` that requests permission and answers."""

    __slots__ = (
        *("_agent", "_by", "_call_approval", "_earlier", "_remaining", "_scope", "_waiting_since"),
        *("arguments", "ctx", "revised", "session", "timeout", "tool", "waiting", "waits"),
    )
    _agent: Agent
    _waiting_since: float
    _by: By
    _earlier: list[Decision]
    """The decisions made before a person changed the arguments."""
    _call_approval: Decision | None
    """The approval of the whole call, under the tool's own id."""
    _remaining: float | None
    _scope: anyio.CancelScope | None
    arguments: dict[str, Any]
    waiting: int
    ctx: ToolContext
    revised: bool
    """True if a person changed the arguments."""
    session: Session
    timeout: float | None
    tool: Tool | None
    waits: list[tuple[float, float]]
    """Start and end of each time it waited for a person, by the monotonic clock."""

    @property
    def ruleset(self) -> list[Rule]:
        """The rules for this call: the agent's, then the session's."""
        return rules_for(self._workspace, self._agent, self.session, self._by)

    async def ask_trust(self, permission: str, pattern: str, metadata: dict[str, Any]) -> Decision:
        """Request a person's trust before code of the project is loaded; no rule of a config file grants it.

        Raises:
            PermissionRejectedError: the person denied it, or nobody is there.
            PermissionCorrectedError: the person denied it with a reason.
            DryRunEnd: this is a dry run; what the code would request can't be known before it is loaded.
        """
        decision = await self._ask(permission, [pattern], [], metadata, [])
        if self.dry_run:
            raise DryRunEnd
        return decision

    async def _ask(
        self,
        permission: str,
        patterns: list[str],
        always: list[str],
        metadata: dict[str, Any],
        ruleset: list[Rule] | None = None,
        also: Sequence[str] = (),
        path: str | None = None,
    ) -> Decision:
        part = self.part
        rules = self.ruleset if ruleset is None else ruleset
        if permission == SANDBOX:  # a project must not let its commands out
            from .project_rules import without_project_rules

            rules = without_project_rules(rules)
        query = PermissionQuery(
            session_id=part.session_id,
            permission=permission,
            patterns=patterns,
            ruleset=rules,
            always=always,
            metadata=metadata,
            also=also,
            path=path,
            tool={"messageID": part.message_id, "callID": part.call_id},
            agent=part.agent,
        )
        if self.dry_run:
            return self._record_preview(query)
        query.earlier = earlier = self._take_earlier(permission)
        approval = self._call_approval
        if approval is not None and approval.permission == permission:
            earlier.append(replace(approval, patterns=[*patterns, *also]))
        try:
            with self._clock_stopped():
                decision = await self._workspace.permissions.ask(query)
        except ToolError as error:
            if error.decision is not None:
                self._record(error.decision)
                self._keep_denied_change(metadata)
            raise
        self._record(decision)
        if decision.waited:
            self._publish_change()
        return decision

    def _keep_denied_change(self, metadata: dict[str, Any]) -> None:
        """Keep the change that the request showed in the part of the call."""
        state, change = self.part.state, {name: metadata[name] for name in CHANGE_KEYS if metadata.get(name)}
        if change and isinstance(state, Running):
            self._set_state(replace(state, metadata={**(state.metadata or {}), **change}))

    def _take_earlier(self, permission: str) -> list[Decision]:
        """The decisions of this permission from before the person changed the arguments; each counts once."""
        decisions = [decision for decision in self._earlier if decision.permission == permission]
        self._earlier = [decision for decision in self._earlier if decision.permission != permission]
        return decisions

    async def _approve_tool(self, tool: Tool, asks: bool, arguments: dict[str, Any]) -> None:
        """Apply the rules on the tool's own id, whoever calls it.

        Built-in tools request their permission themselves; of those that use another tool's, or none, a rule that
        names their id can deny them.

        A tool that `asks` for permission under its own id itself (`Definition.asks`) is denied here only if none of
        its requests could be approved.

        Raises:
            ToolError: a rule or a person denies the tool.
        """
        name, session = tool.id, self.session
        has_switches = session.tool_rules or session.parent_id is not None
        denying = tool_denied(self._workspace, session, name) if has_switches else None
        if denying is None and tool.builtin:
            if tool.permission == name:  # its own requests apply the rules
                return
            firm = [rule for rule in self.ruleset if not (rule.stricter and rule.action == "ask")]
            matching = (rule for rule in reversed(firm) if rule.permission != "*" and match(name, rule.permission))
            last = next(matching, None)
            denying = last if last is not None and (last.pattern, last.action) == ("*", "deny") else None
        if denying is not None:
            await self._ask(name, ["*"], [], {}, [denying])
            return
        rules = self.ruleset
        if tool.builtin or self._agent.allows_all_of(name, rules):
            return
        permissions = self._workspace.permissions
        patterns = ["*"]
        if asks:
            matching = (rule for rule in (*rules, *permissions.approved) if match(name, rule.permission))
            patterns += [rule.pattern for rule in matching if rule.action != "deny"]
        actions = {rule.action for rule in permissions.check(name, patterns, rules)}
        if actions == {"allow"} or (asks and actions != {"deny"}):
            return
        self._call_approval = await self._ask(name, ["*"], ["*"], {"tool": name, "input": arguments})

    async def _question(self, questions: Sequence[Any]) -> Answers:
        part = self.part
        if self.dry_run:
            raise DryRunEnd
        with self._clock_stopped():
            answered = await self._workspace.questions.ask_request(
                session_id=part.session_id,
                questions=questions,
                tool={"messageID": part.message_id, "callID": part.call_id},
                on_end=part.answered.append,
            )
        self._publish_change()
        return answered.answers or []

    @contextmanager
    def waiting_for_file(self, name: str) -> Iterator[None]:
        """Show on the card, and stop the clock, while another call holds the file `name`.

        The other one may wait for a person, so the time does not count here either.
        """
        state = self.part.state
        if isinstance(state, Running):
            self.report(state.title, {**(state.metadata or {}), WAITING_FOR: name})
        with self._clock_stopped():
            yield
        if isinstance(state, Running):
            self.report(state.title, state.metadata)

    async def revise(self, request_id: str, arguments: dict[str, Any], *, by: str = "reply") -> bool:
        """Restart the call with other arguments, in place of a reply to its pending request.

        It goes through the whole pipeline again: hooks see the new arguments and rules judge them. The person who
        submits them approves them, so only what another rule or permission asks for is a new request. The result tells
        a model about it.

        Args:
            request_id: the pending request.
            arguments: all of them.
            by: the channel through which they came.

        Returns:
            False if no request of that id is pending (any more).

        Raises:
            InvalidArgumentsError: they do not fit the tool; the request stays pending.
            ToolError: the request is not about this call's arguments.
        """
        pending = {request.id: request for request in self._workspace.permissions.pending()}.get(request_id)
        if pending is None or self.tool is None:
            return False
        if (pending.tool or {}).get("callID") != self.part.call_id or pending.permission in NOT_REVISABLE:
            raise ToolError(f"Other arguments do not change this request ({pending.permission}); approve or deny it.")
        masker = self._workspace.masker()
        if masker is not None:  # the person saw the arguments masked
            arguments = masker.restore(arguments, self.arguments)
        bound = self.tool.static or await self.tool.init(InitContext(self._agent, self._workspace))
        arguments = wire_names(bound.definition.parameters, arguments)
        bound.validate(arguments)
        return self._workspace.permissions.revise(request_id, arguments, by=by)

    def _restart(self, revised: ArgumentsRevisedError) -> None:
        self.revised = True
        self._call_approval = None
        self._earlier = [d for d in self.part.decisions if d.permission not in NOT_REVISABLE and d.reply is not None]
        self.ctx._report, self.ctx.proceeded = None, False
        self.arguments = renew_description(self.arguments, revised.arguments)
        self._set_state(Pending(self.arguments))
        self._publish_change()

    def _record(self, decision: Decision) -> None:
        self.part.decisions.append(decision)
        if self._workspace.store is None:
            return
        audit_log(self._workspace.data_dir).append(entry_of(self.part, decision))
        if decision.by != "rule":  # what rules allow is in the part
            self._workspace.store.put_decision(decision)

    def _record_preview(self, query: PermissionQuery) -> Decision:
        """Record what a dry run would request, with the decision of the rules."""
        patterns, rules, _ = self._workspace.permissions.judge(query)
        actions = {rule.action for rule in rules}
        action: Action = "deny" if "deny" in actions else "ask" if "ask" in actions else "allow"
        decision = Decision(query.permission, patterns, action, rules, by="dry run", time=now_ms())
        self.part.decisions.append(decision)
        return decision

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        """Time of this block, in which a person is waited for, counts neither for the call's limit nor its parent's."""
        self._pause()
        try:
            yield
        finally:
            self._resume()

    def _pause(self) -> None:
        if self.parent is not None:
            self.parent._pause()
        self.waiting += 1
        if self.waiting == 1:
            self._waiting_since = time.monotonic()
            if self.timeout is not None and self._scope is not None and self._loop is not None:
                self._remaining = self._scope.deadline - self._loop.time()
                self._scope.deadline = float("inf")

    def _resume(self) -> None:
        if self.parent is not None:
            self.parent._resume()
        self.waiting -= 1
        if self.waiting == 0:
            now = time.monotonic()
            self.waits.append((self._waiting_since, now))
            self.part.waited += now - self._waiting_since
            if self._remaining is not None and self._scope is not None and self._loop is not None:
                self._scope.deadline = self._loop.time() + self._remaining
                self._remaining = None
