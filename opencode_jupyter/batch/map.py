"""`Workspace.map`: many prompts or tool calls at once."""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import anyio

from ..core.errors import ToolError
from ..core.threads import call_soon, run_at_home, submit
from .approvals import OnAsk, Person, ReplyRouter, ReplySource
from .folders import Isolate, RunFolders
from .requests import Job, jobs_of
from .results import OnProgress, Outcome, Results, Tracker
from .runner import END, After, Before, ProviderPauses, Runner, aborted, person_for

if TYPE_CHECKING:
    from ..core.host import ToolHost


CONCURRENCY = 8
"""Simultaneous runs in this process by default."""
Report = Callable[[Outcome], None]
"""Receives each outcome; any thread may call it."""


@dataclass
class Settings:
    """How runs are done; see `map_runs`."""

    concurrency: int | None = None
    client: Any = None
    on_error: Literal["keep", "raise"] = "keep"
    on_ask: OnAsk = None
    isolate: Isolate | None = None
    on_progress: OnProgress | None = None
    before: Before | None = None
    after: After | None = None
    keep: bool = True
    batch: str = field(default_factory=lambda: secrets.token_hex(6))

    def __post_init__(self) -> None:
        if self.on_error not in ("keep", "raise"):
            raise ValueError(f'on_error={self.on_error!r}: it takes "keep" or "raise"')
        if self.isolate not in (None, "copy", "worktree", "fresh"):
            raise ValueError(f'isolate={self.isolate!r}: it takes "copy", "worktree" or None')
        if self.concurrency is not None and (not isinstance(self.concurrency, int) or self.concurrency < 1):
            raise ValueError(f"concurrency={self.concurrency!r}: it must be a whole number above 0")
        if self.on_ask is not None and self.on_ask != "reject" and not callable(self.on_ask):
            raise ValueError(f'on_ask={self.on_ask!r}: it takes "reject", a function of the request, or None')


def map_runs(
    workspace: ToolHost,
    requests: Iterable[Any],
    *,
    model: Any = None,
    agent: str | None = None,
    tools: Any = None,
    format: Any = None,
    files: Sequence[Any] | None = None,
    system: str | None = None,
    max_steps: int | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    client: Any = None,
    isolate: Isolate | None = None,
    on_error: Literal["keep", "raise"] = "keep",
    on_ask: OnAsk = None,
    on_progress: OnProgress | None = None,
) -> Many:
    """Run many prompts or tool calls side by side, each in a session of its own.

    Args:
        workspace: where they run.
        requests: texts (prompts); dicts with ``text``, or with ``tool`` and ``arguments``, and with options of their
            own (`jobs.PROMPT`, ``directory``, ``timeout``); pairs of a tool's name and its arguments.
        model: for prompts that name none: a name or a `Model`.
        agent: for requests that name none.
        tools: which tools prompts may use, as in ``sessions.prompt``.
        format: the form of the answers: a JSON schema or a pydantic type; the objects are the outcomes' ``value``.
        files: files that go with every prompt.
        system: more for the system prompt.
        max_steps: most steps of a prompt.
        timeout: seconds for each, waiting for a person not counted.
        concurrency: how many at once; 8 in this process, all that there are workers for on Dask.
        client: a ``distributed.Client``: its workers do the runs. Models must then be given by name.
        isolate: ``copy``: each run works in a copy of the project; ``worktree``: in a git worktree of its last commit;
            None: all in the same folder, whose files they had better not change side by side.
        on_error: ``keep``: a failed run's outcome carries its error; ``raise``: the first error ends them all.
        on_ask: who answers asks: ``reject``, a function of the `PermissionRequest`, None: as for any other call.
        on_progress: called with a `Progress` at the begin and after each run; left out, a notebook shows a line.

    Returns:
        `Many`: await it for the `Results`, or iterate over it (``async for``) for outcomes as they come.

    Raises:
        TypeError: something is no request.
        ValueError: an option has a value it does not take.
    """
    defaults = {"model": model, "agent": agent, "tools": tools, "format": format, "files": files}
    defaults |= {"system": system, "max_steps": max_steps}
    jobs = jobs_of(requests, defaults, timeout)
    settings = Settings(concurrency, client, on_error, on_ask, isolate, on_progress)
    return Many(workspace, jobs, settings)


class Many:
    """Many runs. Nothing begins before it is awaited or iterated over.

    Attributes:
        jobs: the requests.
        results: the outcomes so far, in the order of the requests; a failed `await` leaves them here.
    """

    def __init__(
        self, workspace: ToolHost, jobs: list[Job], settings: Settings, previous: Sequence[Outcome] = ()
    ) -> None:
        self.workspace = workspace
        self.jobs = jobs
        self.settings = settings
        self._done: dict[int, Outcome] = {outcome.index: outcome for outcome in previous}
        self._started = False
        self._reason: str | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None

    @property
    def results(self) -> Results:
        """See the class."""
        return Results((self._done[index] for index in sorted(self._done)), self._again)

    def abort(self, reason: str = "stopped") -> None:
        """End all runs. Any thread may call it; whoever waits for them gets a `ToolAbortedError`."""
        if self._reason is None:
            self._reason = reason
        if self._home is not None:
            call_soon(self._home, self._cancel)

    def _cancel(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def __await__(self) -> Generator[Any, None, Results]:
        return self._all().__await__()

    async def _all(self) -> Results:
        if not self._started:
            async for _ in self:
                pass
        elif len(self._done) < len(self.jobs):
            raise ToolError("these runs have already started: iterate to the end, or create new ones with map(...)")
        return self.results

    async def __aiter__(self) -> AsyncGenerator[Outcome, None]:
        """Outcomes as the runs end.

        Raises:
            ToolAbortedError: `abort` was called.
            ToolError: with ``on_error="raise"`` what ended the first run that failed (of any kind); or these runs have
                begun already.
        """
        if self._started:
            raise ToolError("these runs have already started; create new ones with map(...), or see .results")
        self._started = True
        cell_loop, cell_context = asyncio.get_running_loop(), contextvars.copy_context()
        outcomes: asyncio.Queue[Outcome | None] = asyncio.Queue()
        jobs = [job for job in self.jobs if job.index not in self._done]
        tracker = Tracker(len(jobs), self.settings.on_progress)
        tracker.begin()

        def report(outcome: Outcome | None) -> None:
            call_soon(cell_loop, outcomes.put_nowait, outcome)

        def on_cell_loop(work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
            # in the cell's context, so that a card appears in that cell
            return asyncio.wrap_future(cell_context.copy().run(submit, cell_loop, work))

        person = Person(self.workspace, on_cell_loop)
        running = asyncio.ensure_future(run_at_home(self.workspace, self._run(jobs, report, person)))
        running.add_done_callback(lambda _: report(None))
        try:
            while (outcome := await outcomes.get()) is not None:
                if outcome.index in self._done:
                    continue  # each result counts once, whatever comes back again
                self._done[outcome.index] = outcome
                tracker.ended(outcome)
                if outcome.error is not None and self.settings.on_error == "raise":
                    raise outcome.error
                yield outcome
            running.result()
            if self._reason is not None and len(self._done) < len(self.jobs):
                raise aborted(self._reason)
        finally:
            if not running.done():
                self.abort("interrupted")
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({running}, timeout=END + 1)

    async def _run(self, jobs: list[Job], report: Report, person: Person) -> None:
        """Run the jobs, on the workspace's loop."""
        self._home = asyncio.get_running_loop()
        with anyio.CancelScope() as self._scope:
            if self._reason is not None:
                self._scope.cancel()
            if self.settings.client is not None:
                from .cluster import on_cluster

                await on_cluster(self.workspace, jobs, self.settings, report, person)
            else:
                await self._run_here(jobs, report, person)

    async def _run_here(self, jobs: list[Job], report: Report, person: Person) -> None:
        settings, workspace = self.settings, self.workspace
        runner = Runner(
            RunFolders(workspace, settings.batch, settings.isolate),
            workspace.service(ProviderPauses),
            settings.before,
            settings.after,
            settings.keep,
        )
        ask_person = person_for(runner, person) if workspace.present is not None else None
        queue = deque(jobs)

        async def work() -> None:
            while queue:
                report(await runner.run(queue.popleft()))

        # where neither can answer, the workspace must not look as if somebody could: a doom loop would wait for ever
        has_answers = settings.on_ask is not None or ask_person is not None
        source = ReplySource(runner.covers, settings.on_ask, ask_person)
        with workspace.service(ReplyRouter).added(source) if has_answers else nullcontext():
            async with anyio.create_task_group() as group:
                for _ in range(min(settings.concurrency or CONCURRENCY, len(jobs))):
                    group.start_soon(work)

    def _again(self, results: Results) -> Many:
        settings = replace(self.settings, batch=secrets.token_hex(6))
        succeeded = [outcome for outcome in self._done.values() if outcome.ok]
        return Many(self.workspace, self.jobs, settings, succeeded)
