"""`Workspace.map`: many prompts or tool calls at once."""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from ..core.errors import ToolError
from ..core.threads import call_soon, run_on_loop, submit
from .approvals import HumanApprover, ReplyRouter, ReplySource
from .jobs import BatchJob, create_jobs
from .options import BatchSettings, MapOptions
from .results import Outcome, Results, Tracker
from .run_folders import RunFolders
from .runner import STOP_SECONDS, ProviderPauses, Runner, aborted_error, local_approver

if TYPE_CHECKING:
    from ..core.host import ToolHost


CONCURRENCY = 8
"""Simultaneous runs in this process by default."""
Report = Callable[[Outcome], None]
"""Receives each outcome; any thread may call it."""


def map_runs(workspace: ToolHost, requests: Iterable[Any], **options: Any) -> Batch:
    """Run many prompts or tool calls side by side, each in a session of its own.

    Args:
        workspace: where they run.
        requests: texts (prompts); dicts with ``text``, or with ``tool`` and ``arguments``, and with options of their
            own (`jobs.PROMPT_OPTIONS`, ``directory``, ``timeout``); pairs of a tool's name and its arguments.
        **options: see `MapOptions`.

    Returns:
        `Batch`: await it for the `Results`, or iterate over it (``async for``) for outcomes as they come.

    Raises:
        TypeError: something is no request.
        ValueError: an option has a wrong value.
    """
    run_options = MapOptions(**options)
    defaults = {**run_options.prompt_options(), "model": run_options.model, "files": run_options.files}
    jobs = create_jobs(requests, defaults, run_options.timeout)
    return Batch(workspace, jobs, BatchSettings(run_options, run_options.on_error))


class Batch:
    """Many runs. Nothing begins before it is awaited or iterated over.

    Attributes:
        jobs: the requests.
        results: the outcomes so far, in the order of the requests; a failed `await` leaves them here.
    """

    def __init__(
        self, workspace: ToolHost, jobs: list[BatchJob], settings: BatchSettings, previous: Sequence[Outcome] = ()
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
        return Results((self._done[index] for index in sorted(self._done)), self._retry_failed)

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
        tracker = Tracker(len(jobs), self.settings.options.on_progress)
        tracker.start()

        def report(outcome: Outcome | None) -> None:
            call_soon(cell_loop, outcomes.put_nowait, outcome)

        def on_cell_loop(work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
            # in the cell's context, so that a card appears in that cell
            return asyncio.wrap_future(cell_context.copy().run(submit, cell_loop, work))

        person = HumanApprover(self.workspace, on_cell_loop)
        running = asyncio.ensure_future(run_on_loop(self.workspace.loop, self._run(jobs, report, person)))
        running.add_done_callback(lambda _: report(None))
        try:
            while (outcome := await outcomes.get()) is not None:
                if outcome.index in self._done:
                    continue  # each result counts once, whatever comes back again
                self._done[outcome.index] = outcome
                tracker.add(outcome)
                if outcome.error is not None and self.settings.on_error == "raise":
                    raise outcome.error
                yield outcome
            running.result()
            if self._reason is not None and len(self._done) < len(self.jobs):
                raise aborted_error(self._reason)
        finally:
            if not running.done():
                self.abort("interrupted")
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({running}, timeout=STOP_SECONDS + 1)

    async def _run(self, jobs: list[BatchJob], report: Report, person: HumanApprover) -> None:
        """Run the jobs, on the workspace's loop."""
        self._home = asyncio.get_running_loop()
        with anyio.CancelScope() as self._scope:
            if self._reason is not None:
                self._scope.cancel()
            if self.settings.options.client is not None:
                from .dask_client import run_on_dask

                await run_on_dask(self.workspace, jobs, self.settings, report, person)
            else:
                await self._run_here(jobs, report, person)

    async def _run_here(self, jobs: list[BatchJob], report: Report, person: HumanApprover) -> None:
        settings, workspace = self.settings, self.workspace
        folders = RunFolders(workspace, settings.batch, settings.options.isolate)
        runner = Runner(folders, workspace.service(ProviderPauses), settings)
        ask_person = local_approver(runner, person) if workspace.present is not None else None
        queue = deque(jobs)

        async def run_queued() -> None:
            while queue:
                report(await runner.run(queue.popleft()))

        # where neither can answer, the workspace must not look as if somebody could: a doom loop would wait for ever
        has_answers = settings.options.on_ask is not None or ask_person is not None
        source = ReplySource(runner.has_session, settings.options.on_ask, ask_person)
        with workspace.service(ReplyRouter).using(source) if has_answers else nullcontext():
            async with anyio.create_task_group() as group:
                for _ in range(min(settings.options.concurrency or CONCURRENCY, len(jobs))):
                    group.start_soon(run_queued)

    def _retry_failed(self, results: Results) -> Batch:
        settings = replace(self.settings, batch=secrets.token_hex(6))
        succeeded = [outcome for outcome in self._done.values() if outcome.ok]
        return Batch(self.workspace, self.jobs, settings, succeeded)
