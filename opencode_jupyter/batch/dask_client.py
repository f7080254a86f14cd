"""The part of a batch that runs where the user is, when Dask's workers do the work.

A plugin brings the batch to the workers. They send events of the batch's topic: what they begin, and their permission
requests, which are answered by direct calls (`Client.run`). Results are fetched as they come, and counted once.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from ..core.errors import ToolError
from ..core.paths import make_private_folder
from ..core.permission import PermissionRequest
from ..core.threads import call_soon, run_on_loop
from .approvals import HumanApprover
from .jobs import BatchJob
from .options import BatchSettings
from .results import Lost, Outcome, WorkerLostError
from .serialization import RunResult, unpack

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .map import Report


STOP_WAIT = 2.0
"""Seconds the workers have to end what was stopped."""
FETCH_THREADS = 4
"""Threads that fetch results. Where a worker died with some, fetching them blocks until others have made them anew."""
CLIENT_THREADS = 4
"""Threads for everything else, which must never wait for the fetching."""


async def run_on_dask(
    workspace: ToolHost, jobs: list[BatchJob], settings: BatchSettings, report: Report, person: HumanApprover
) -> None:
    """Run the jobs on Dask's workers and report each outcome as it comes.

    Raises:
        ToolError: Dask is not installed, or something can't be sent to its workers.
        TypeError: the client is none of Dask's, or a model is no name.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ToolError("client= needs Dask: pip install opencode-jupyter[dask]") from error
    if not isinstance(settings.options.client, Client):
        raise TypeError(f"client= takes a distributed.Client, not {type(settings.options.client).__name__}")
    token = f"runs-{settings.batch}.token"
    marker = workspace.data_dir / token
    from . import dask_worker  # here: it needs Dask

    context = dask_worker.pack_context(workspace, settings, token)
    batch = DaskBatch(workspace, settings, report, person, context)
    sent = {job.index: _plain_job(job) for job in jobs}
    make_private_folder(marker.parent)
    marker.touch(mode=0o600)
    try:
        await batch.run(jobs, sent, dask_worker.BatchPlugin(settings.batch))
    finally:
        marker.unlink(missing_ok=True)


class DaskBatch:
    """One batch on Dask."""

    def __init__(
        self, workspace: ToolHost, settings: BatchSettings, report: Report, person: HumanApprover, context: bytes
    ) -> None:
        self._context = context
        self._workspace = workspace
        self._client = settings.options.client
        self._settings = settings
        self._report = report
        self._person = person
        self._loop = asyncio.get_running_loop()
        self._attempts: dict[int, dict[str, Lost]] = {}
        self._replies: set[asyncio.Task[None]] = set()
        self._futures: dict[int, Any] = {}
        self._fetch_threads = ThreadPoolExecutor(FETCH_THREADS, "opencode-dask-fetch")
        self._client_threads = ThreadPoolExecutor(CLIENT_THREADS, "opencode-dask-talk")

    async def run(self, jobs: list[BatchJob], sent: dict[int, BatchJob], plugin: Any) -> None:
        """See `run_on_dask`."""
        name, client = self._settings.batch, self._client
        await self._on_client(client.subscribe_topic, name, self._receive)
        limit = anyio.Semaphore(self._settings.options.concurrency or max(1, len(jobs)))
        complete = False
        try:
            await self._on_client(client.register_plugin, plugin)
            async with anyio.create_task_group() as group:
                for job in jobs:
                    group.start_soon(self._run_job, job, sent[job.index], limit)
            complete = True
        finally:
            with anyio.CancelScope(shield=True):
                if not complete:
                    await self._try_on_client(client.cancel, list(self._futures.values()))
                for task in self._replies:
                    task.cancel()
                await self._try_on_client(client.unregister_worker_plugin, name)
                await self._try_on_client(client.unsubscribe_topic, name)
                for pool in (self._fetch_threads, self._client_threads):
                    pool.shutdown(wait=False, cancel_futures=True)

    async def _run_job(self, job: BatchJob, sent: BatchJob, limit: anyio.Semaphore) -> None:
        from .dask_worker import run_job

        name = self._settings.batch
        async with limit:
            # The key is the run's own: given twice to Dask, it would still be one run.
            key = f"opencode-run-{name}-{job.index}"
            future = await self._on_client(self._client.submit, run_job, name, sent, key=key, pure=False)
            self._futures[job.index] = future
            ended = asyncio.Event()
            future.add_done_callback(lambda _: call_soon(self._loop, ended.set))
            await ended.wait()
            try:
                try:
                    result: RunResult = await self._on_client(future.result, pool=self._fetch_threads)
                finally:  # at once: Dask starts a run again if its worker dies while its result is still needed
                    await self._on_client(future.release)
                outcome = await unpack(self._workspace, result, job.request)
                _validate(outcome, job.options.get("format"))
                lost = {**self._attempts.get(job.index, {})}
                lost.pop(result.attempt, None)
            except Exception as error:
                outcome = Outcome(job.index, job.request, error=_worker_lost(error), ended="failed")
                lost = self._attempts.get(job.index, {})
            outcome.lost = list(lost.values())
            outcome.attempts = len(lost) + (outcome.error is None or not isinstance(outcome.error, WorkerLostError))
            del self._futures[job.index]
            self._report(outcome)

    # ------------------------------------------------------------------ events of the workers

    def _receive(self, event: tuple[float, dict[str, Any]]) -> None:
        call_soon(self._loop, self._handle, event[1])

    def _handle(self, message: dict[str, Any]) -> None:
        if message["kind"] in ("ask", "context"):
            self._replies.add(task := asyncio.ensure_future(self._reply(message)))
            task.add_done_callback(self._replies.discard)
            return
        attempts = self._attempts.setdefault(message["index"], {})
        attempt = attempts.setdefault(message["attempt"], Lost(message["worker"]))
        if message["kind"] == "call":
            attempt.calls.append(message["call"])

    async def _reply(self, message: dict[str, Any]) -> None:
        """Answer a worker's request by a direct call, which the scheduler forwards and does not keep."""
        from .dask_worker import send_reply

        reply = self._context if message["kind"] == "context" else await self._ask(json.loads(message["wire"]))
        arguments = (send_reply, self._settings.batch, message["id"], reply)
        await self._try_on_client(self._client.run, *arguments, workers=[message["worker"]], on_error="ignore")

    async def _ask(self, wire: dict[str, Any]) -> Any:
        """The reply of `on_ask` or a person to a run's request."""
        run = str(wire.pop("run", None) or wire["sessionID"])
        if "questions" in wire:
            return await self._person.question(wire, run)
        on_ask = self._settings.options.on_ask
        if callable(on_ask):
            reply = on_ask(_request(wire))
            return await reply if inspect.isawaitable(reply) else reply
        return await self._person.permission(wire, run)

    # ------------------------------------------------------------------ calls of the client

    async def _try_on_client(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Something that may fail because a worker, or the whole cluster, is gone; it may take `STOP_WAIT` seconds."""
        with contextlib.suppress(Exception), anyio.move_on_after(STOP_WAIT):
            await self._on_client(function, *arguments, **options)

    async def _on_client(
        self, function: Callable[..., Any], *arguments: Any, pool: ThreadPoolExecutor | None = None, **options: Any
    ) -> Any:
        """Call a method of the client where it belongs: an async client's on its loop, another's on a thread."""
        home = self._client.loop.asyncio_loop

        async def call() -> Any:
            outcome = function(*arguments, **options)
            return await outcome if inspect.iscoroutine(outcome) else outcome  # Dask's futures are awaitable too

        if home is self._loop:
            return await call()
        if self._client._asynchronous:
            return await run_on_loop(home, call())
        return await self._loop.run_in_executor(pool or self._client_threads, partial(function, *arguments, **options))


def _plain_job(job: BatchJob) -> BatchJob:
    """A job in plain data for the task graph, without the request itself.

    Raises:
        TypeError: a model is no name, or the job continues a session, which the worker does not have.
    """
    options = dict(job.options)
    model, form = options.get("model"), options.get("format")
    if model is not None and not isinstance(model, str):
        raise TypeError(f"request {job.index}: on Dask a model must be given by name, not as {type(model).__name__}")
    if options.get("session") is not None:
        raise TypeError(f"request {job.index}: a run on Dask always starts its own session: remove session=")
    if form is not None and not isinstance(form, dict):
        from pydantic import TypeAdapter

        options["format"] = TypeAdapter(form).json_schema()
    return replace(job, request=None, options=options)


def _validate(outcome: Outcome, form: Any) -> None:
    """Convert the value to the requested type: workers receive a type's schema, not the type."""
    if outcome.error is None and form is not None and not isinstance(form, dict):
        from pydantic import TypeAdapter

        outcome.value = TypeAdapter(form).validate_python(outcome.value)


def _request(wire: dict[str, Any]) -> PermissionRequest:
    return PermissionRequest(
        wire["id"],
        wire["sessionID"],
        wire["permission"],
        list(wire["patterns"]),
        dict(wire.get("metadata") or {}),
        list(wire.get("always") or ()),
        wire.get("tool"),
    )


def _worker_lost(error: Exception) -> Exception:
    from distributed.scheduler import KilledWorker

    if not isinstance(error, KilledWorker):
        return error
    return WorkerLostError(
        "every worker that was assigned this run ended during it (out of memory, or ended by the run itself), so it is "
        "not retried"
    )
