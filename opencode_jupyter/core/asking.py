"""How a call asks a person: for permission, for trust, for answers; and the clock that stands still meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .context import DryRunEnd
from .errors import PermissionCorrectedError, PermissionDeniedError, PermissionRejectedError
from .permission import Action, Decision, Rule
from .permission.modes import rules_of
from .question_request import Answers
from .state import now_ms

if TYPE_CHECKING:
    import asyncio

    import anyio

    from .agents import Agent
    from .call import By, Call
    from .sessions import Session
    from .state import ToolPart
    from .workspace import Workspace


class Asking:
    """The part of a `Call` that asks."""

    __slots__ = ("_asked_at", "_remaining", "asked")

    _asked_at: float
    _remaining: float | None
    asked: int

    if TYPE_CHECKING:
        _agent: Agent
        _by: By
        _loop: asyncio.AbstractEventLoop | None
        _scope: anyio.CancelScope | None
        _workspace: Workspace
        dry_run: bool
        parent: Call | None
        part: ToolPart
        session: Session
        timeout: float | None

        def _changed(self) -> None: ...

    @property
    def ruleset(self) -> list[Rule]:
        """The rules this call is judged by: the agent's, then the session's."""
        rules = self._agent.model_permission if self._by == "model" else self._agent.permission
        own = self._workspace.rules
        if own or self.session.permission or self.session.parent_id is not None:
            return [*rules, *own, *rules_of(self._workspace, self.session)]
        return rules

    async def ask_trust(self, permission: str, pattern: str, metadata: dict[str, Any]) -> Decision:
        """Ask a person before code of the project is loaded; no rule of a config file answers it (`core.trust`).

        Raises:
            PermissionRejectedError: the person said no, or nobody is there.
            PermissionCorrectedError: the person said no and why.
            DryRunEnd: this is a dry run; what the code would ask can't be known before it is loaded.
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
    ) -> Decision:
        part = self.part
        rules = self.ruleset if ruleset is None else ruleset
        if self.dry_run:
            return self._note(permission, patterns, rules)
        self._pause()
        self.asked += 1
        try:
            decision = await self._workspace.permissions.ask(
                session_id=part.session_id,
                permission=permission,
                patterns=patterns,
                always=always,
                metadata=metadata,
                ruleset=rules,
                tool={"messageID": part.message_id, "callID": part.call_id},
                agent=part.agent,
            )
        except (PermissionDeniedError, PermissionRejectedError, PermissionCorrectedError):
            history = self._workspace.permissions.history
            if history and history[-1].permission == permission:
                self._decided(history[-1])
            raise
        finally:
            self.asked -= 1
            self._resume()
        self._decided(decision)
        if decision.waited:
            self._changed()
        return decision

    async def _question(self, questions: Sequence[Any]) -> Answers:
        part = self.part
        if self.dry_run:
            raise DryRunEnd
        self._pause()
        self.asked += 1
        try:
            answered = await self._workspace.questions.put(
                session_id=part.session_id,
                questions=questions,
                tool={"messageID": part.message_id, "callID": part.call_id},
                ended=part.answered.append,
            )
        finally:
            self.asked -= 1
            self._resume()
        self._changed()
        return answered.answers or []

    def _decided(self, decision: Decision) -> None:
        self.part.decisions.append(decision)
        if self._workspace.store is not None and decision.by != "rule":  # what rules allow stands in the part
            self._workspace.store.put_decision(decision)

    def _note(self, permission: str, patterns: list[str], ruleset: list[Rule] | None = None) -> Decision:
        rules = self._workspace.permissions.check(permission, patterns, self.ruleset if ruleset is None else ruleset)
        actions = {rule.action for rule in rules}
        action: Action = "deny" if "deny" in actions else "ask" if "ask" in actions else "allow"
        decision = Decision(permission, patterns, action, rules, None, "dry run", None, 0.0, now_ms())
        self.part.decisions.append(decision)
        return decision

    def _pause(self) -> None:
        """Time spent waiting for a person does not count against the call's limit, nor against its parent's."""
        if self.parent is not None:
            self.parent._pause()
            self.parent.asked += 1
        if self.asked == 0:
            self._asked_at = time.monotonic()
        if self.timeout is not None and self.asked == 0 and self._scope is not None and self._loop is not None:
            self._remaining = self._scope.deadline - self._loop.time()
            self._scope.deadline = float("inf")

    def _resume(self) -> None:
        if self.parent is not None:
            self.parent.asked -= 1
            self.parent._resume()
        if self.asked == 0:
            self.part.waited += time.monotonic() - self._asked_at
        if self._remaining is not None and self.asked == 0 and self._scope is not None and self._loop is not None:
            self._scope.deadline = self._loop.time() + self._remaining
            self._remaining = None
