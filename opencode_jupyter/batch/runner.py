"""One run, from its job to its outcome; runs of one provider slow down together.

A run never raises for what goes wrong in it: that is the outcome's error.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from ..agent.errors import ModelError
from ..agent.events import Event
from ..agent.model import Model, ModelInfo, Request
from ..agent.sessions import sessions_of
from ..core.errors import ToolAbortedError
from .approvals import HumanApprover, apply_refusal
from .jobs import BatchJob
from .options import BatchSettings
from .results import Outcome, RunTimeoutError
from .run_folders import RunFolders, discard

if TYPE_CHECKING:
    from ..agent.answer import Answer
    from ..agent.run import Run
    from ..agent.sessions import AgentSession
    from ..core.call import Call
    from ..core.call_state import ToolPart
    from ..core.host import ToolHost


DEFAULT_WAIT = 2.0
"""Seconds that all wait where the provider did not say how long."""
MAX_WAIT = 120.0
"""Longest pause, in seconds, of all runs of a provider."""


class ProviderPauses:
    """The pauses of each provider's requests; one object for a workspace (`Workspace.service`)."""

    def __init__(self, workspace: ToolHost | None = None) -> None:
        self._until: dict[str, float] = {}

    def pause(self, provider: str, seconds: float | None) -> None:
        """Let nobody ask this provider for so long."""
        wait = DEFAULT_WAIT if seconds is None else min(max(seconds, 0.0), MAX_WAIT)
        self._until[provider] = max(self._until.get(provider, 0.0), time.monotonic() + wait)

    def seconds_left(self, provider: str) -> float:
        """Seconds until it may be asked; 0 if now."""
        return max(0.0, self._until.get(provider, 0.0) - time.monotonic())

    async def wait(self, provider: str) -> None:
        """Wait until it may be asked."""
        while (seconds := self.seconds_left(provider)) > 0:  # noqa: ASYNC110 - the clock is what it waits for
            await asyncio.sleep(seconds)


class PacedModel:
    """A model that keeps to the pace of its provider."""

    def __init__(self, model: Model, pauses: ProviderPauses) -> None:
        self._model = model
        self._pauses = pauses

    @property
    def info(self) -> ModelInfo:
        """The model's own."""
        return self._model.info

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """The model's own, once its provider may be asked.

        Raises:
            ModelError: as the model itself; one that reports too many requests pauses the others too.
        """
        provider = self._model.info.provider
        await self._pauses.wait(provider)
        try:
            async with contextlib.aclosing(self._model.stream(request)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            if error.kind in ("rate_limit", "overloaded"):
                self._pauses.pause(provider, error.retry_after)
            raise

    async def aclose(self) -> None:
        """Nothing: whoever made the model closes it."""


CHECK_SECONDS = 0.1
"""Seconds between two looks at a run's clock."""
STOP_SECONDS = 3.0
"""Seconds a run has to end when it is stopped."""


@dataclass
class Runner:
    """Runs jobs.

    Attributes:
        folders: gives each its folder.
        pauses: holds back the runs of a provider that is asked too often.
        settings: of the batch.
        keeps_parts: put the parts of a tool call into ``extra["direct"]``: here no store has them.
    """

    folders: RunFolders
    pauses: ProviderPauses
    settings: BatchSettings
    keeps_parts: bool = False

    def __post_init__(self) -> None:
        self._sessions: dict[str, ToolHost] = {}

    def has_session(self, session_id: str) -> bool:
        """Return whether a session is that of a run, or a child of one."""
        return self.run_of(session_id) is not None

    def run_of(self, session_id: str | None) -> str | None:
        """The session of the run that a session belongs to."""
        current: str | None = session_id
        for _ in range(100):  # parents of parents: as deep as agents call agents
            if current is None or current in self._sessions:
                return current
            current = next((p for p in (self._parent(w, current) for w in self._sessions.values()) if p), None)
        return None

    def title_of(self, session_id: str) -> str:
        """The title of the run of a session."""
        run = self.run_of(session_id)
        return session_id if run is None else self._sessions[run].sessions.get(run).title

    @staticmethod
    def _parent(workspace: ToolHost, session_id: str) -> str | None:
        try:
            return sessions_of(workspace).get(session_id).parent_id
        except KeyError:
            return None

    async def run(self, job: BatchJob, on_start: Callable[[str], None] | None = None) -> Outcome:
        """Run a job; only a cancel is raised. `on_start` receives the id of its session."""
        outcome = Outcome(job.index, job.request)
        since = time.monotonic()
        copied = ""
        try:
            async with self.folders.open(job) as (workspace, session, copied):
                outcome.session, outcome.directory = session.id, str(workspace.directory)
                self._sessions[session.id] = workspace
                if on_start is not None:
                    on_start(session.id)
                try:
                    if self.settings.before is not None:
                        await self.settings.before(workspace, job)
                    since = time.monotonic()
                    await self._run_request(workspace, job, session, outcome)
                    outcome.seconds = time.monotonic() - since
                    if self.settings.after is not None:
                        await self.settings.after(workspace, job, outcome)
                finally:
                    del self._sessions[session.id]
        except Exception as error:
            outcome.error, outcome.ended = error, "failed"
        finally:
            if copied and not self.settings.keep:
                with anyio.CancelScope(shield=True):
                    await asyncio.to_thread(discard, Path(copied))
        outcome.seconds = outcome.seconds or time.monotonic() - since
        if copied and self.settings.keep:
            outcome.extra["copied"] = copied
        return outcome

    async def _run_request(self, workspace: ToolHost, job: BatchJob, session: AgentSession, outcome: Outcome) -> None:
        try:
            if job.tool:
                await self._call(workspace, job, session, outcome)
            else:
                await self._prompt(workspace, job, session, outcome)
        except Exception as error:
            outcome.error, outcome.ended = error, "failed"

    async def _call(self, workspace: ToolHost, job: BatchJob, session: AgentSession, outcome: Outcome) -> None:
        agent = job.options.get("agent")
        if agent is not None and agent not in workspace.agents and not workspace.registry.is_fresh():
            await workspace.registry.prepare()  # it may be a plugin's
        outcome.calls = 1
        call = workspace.start(job.tool, job.arguments, agent=agent, session=session, timeout=job.timeout)
        try:
            result = await call.run()
        finally:
            if self.keeps_parts:
                outcome.extra["direct"] = _all_parts(call)
        outcome.text, outcome.value, outcome.ended = result.output, result, "done"

    async def _prompt(self, workspace: ToolHost, job: BatchJob, session: AgentSession, outcome: Outcome) -> None:
        options = {name: value for name, value in job.options.items() if name not in ("session", "title")}
        if options.get("model") is not None:
            options["model"] = await self._paced_model(workspace, options["model"])
        run = sessions_of(workspace).prompt(job.text, session=session, **options)
        try:
            answer = await _with_time_limit(run, job.timeout, lambda: self._is_waiting(workspace, session.id))
            outcome.answer, outcome.text, outcome.value = answer, answer.text, answer.value
            outcome.ended, outcome.model = answer.ended, answer.model.full
        finally:
            outcome.steps, outcome.tokens, outcome.cost = run.step, run.usage.whole, run.cost
            outcome.calls = len(run.calls)
            model = getattr(run, "model", None)
            outcome.model = outcome.model or (model.info.full if model is not None else "")

    async def _paced_model(self, workspace: ToolHost, model: Any) -> Any:
        if isinstance(model, str):
            from ..agent.models import resolve

            model = await resolve(workspace, model)
        return model if isinstance(model, PacedModel) else PacedModel(model, self.pauses)

    def _is_waiting(self, workspace: ToolHost, session_id: str) -> bool:
        asking = {request.session_id for request in workspace.permissions.pending()}
        asking |= {request.session_id for request in workspace.questions.pending()}
        return any(self.run_of(asker) == session_id for asker in asking)


def _all_parts(call: Call) -> list[ToolPart]:
    """A call's part and those of the calls inside it."""
    return [call.part, *(part for child in call.children for part in _all_parts(child))]


async def _with_time_limit(run: Run, timeout: float | None, waits: Callable[[], bool]) -> Answer:
    """A run's answer within its time limit; time spent waiting for a person does not count.

    Raises:
        RunTimeoutError: its time is up.
        ToolError: as the run.
    """
    task = asyncio.ensure_future(run)
    seconds_left = float("inf") if timeout is None else timeout
    try:
        while True:
            began = time.monotonic()
            await asyncio.wait({task}, timeout=None if timeout is None else min(CHECK_SECONDS, max(seconds_left, 0.0)))
            if task.done():
                return task.result()
            if not waits():
                seconds_left -= time.monotonic() - began
            if seconds_left <= 0:
                run.abort("timeout")
                await asyncio.wait({task}, timeout=STOP_SECONDS)
                assert timeout is not None
                raise RunTimeoutError(timeout) from None
    finally:
        if not task.done():  # whoever waits was cancelled
            run.abort("interrupted")
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task}, timeout=STOP_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()  # seen


def aborted_error(reason: str) -> ToolAbortedError:
    """The error for whoever waits for runs that were stopped."""
    return ToolAbortedError(f"the runs were {'interrupted' if reason == 'interrupted' else 'stopped'}", reason=reason)


def local_approver(runner: Runner, person: HumanApprover) -> Callable[[Any], Awaitable[Any]]:
    """Puts the asks of runs in this process to a person."""

    async def ask(request: Any) -> Any:
        run, wire = runner.title_of(request.session_id), request.to_wire()
        if "questions" in wire:
            return await person.question(wire, run)
        return apply_refusal(runner.folders.workspace.permissions, request, await person.permission(wire, run))

    return ask
