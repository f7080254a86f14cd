"""The part of a batch that runs where the user is, when Dask's workers do the work.

What comes from workers are events of a topic of the batch: they ask for the kit, tell what they begin, bring asks.
What goes to them besides jobs are direct calls (`Client.run`). Results are fetched as they come, and counted once.
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

from ...core.errors import ToolError
from ...core.paths import make_private_folder
from ...core.permission import PermissionRequest
from . import kit, worker
from .asking import Person
from .carried import Carried, unpack
from .jobs import Job
from .outcome import Lost, Outcome, WorkerLostError

if TYPE_CHECKING:
    from ...core.workspace import Workspace
    from .mapping import Settings

STOP_WAIT = 2.0
"""Seconds the workers have to say that they ended what was stopped."""
FETCHING = 4
"""Threads that fetch results. Where a worker died with some, fetching them blocks until others have made them anew."""
TALKING = 4
"""Threads for everything else: what the others need to make them anew must never wait behind the fetching."""


async def on_cluster(
    workspace: Workspace, jobs: list[Job], settings: Settings, tell: Callable[[Any], None], person: Person
) -> None:
    """Have Dask's workers do the jobs, and tell each outcome as it comes.

    Raises:
        ToolError: Dask is not installed, or something can't be sent to its workers.
        TypeError: the client is none of Dask's, or a model is no name.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ToolError("client= needs Dask: pip install opencode-jupyter[dask]") from error
    if not isinstance(settings.client, Client):
        raise TypeError(f"client= takes a distributed.Client, not {type(settings.client).__name__}")
    token = f"runs-{settings.batch}.token"
    mark = workspace.data_dir / token
    batch = Cluster(workspace, settings, tell, person, kit.packed(workspace, settings, token))
    sent = {job.index: _sendable(job) for job in jobs}
    make_private_folder(mark.parent)
    mark.touch(mode=0o600)
    try:
        await batch.run(jobs, sent)
    finally:
        mark.unlink(missing_ok=True)


class Cluster:
    """One batch on Dask."""

    def __init__(
        self, workspace: Workspace, settings: Settings, tell: Callable[[Any], None], person: Person, data: bytes
    ) -> None:
        self._workspace = workspace
        self._client = settings.client
        self._settings = settings
        self._tell = tell
        self._person = person
        self._kit = data
        self._loop = asyncio.get_running_loop()
        self._attempts: dict[int, dict[str, Lost]] = {}
        self._asks: dict[str, asyncio.Task[None]] = {}
        self._replies: dict[str, Any] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._futures: dict[int, Any] = {}
        self._fetchers = ThreadPoolExecutor(FETCHING, "opencode-dask-fetch")
        self._talkers = ThreadPoolExecutor(TALKING, "opencode-dask-talk")

    async def run(self, jobs: list[Job], sent: dict[int, Job]) -> None:
        """See `on_cluster`."""
        name, client = self._settings.batch, self._client
        await self._on_client(client.subscribe_topic, name, self._heard)
        limit = anyio.Semaphore(self._settings.concurrency or max(1, len(jobs)))
        whole = False
        try:
            async with anyio.create_task_group() as group:
                for job in jobs:
                    group.start_soon(self._one, job, sent[job.index], limit)
            whole = True
        finally:
            with anyio.CancelScope(shield=True):
                if not whole:
                    await self._quietly(client.cancel, list(self._futures.values()))
                for task in [*self._asks.values(), *self._others]:
                    task.cancel()
                await self._quietly(client.run, worker.close, name, on_error="ignore")
                await self._quietly(client.unsubscribe_topic, name)
                for pool in (self._fetchers, self._talkers):
                    pool.shutdown(wait=False, cancel_futures=True)

    async def _one(self, job: Job, sent: Job, limit: anyio.Semaphore) -> None:
        name = self._settings.batch
        async with limit:
            # The key is the run's own: given twice to Dask, it would still be one run.
            key = f"opencode-run-{name}-{job.index}"
            future = await self._on_client(self._client.submit, worker.run_job, name, sent, key=key, pure=False)
            self._futures[job.index] = future
            over = asyncio.Event()
            future.add_done_callback(lambda _: self._loop.call_soon_threadsafe(over.set))
            await over.wait()
            try:
                try:
                    carried: Carried = await self._on_client(future.result, pool=self._fetchers)
                finally:  # at once: Dask begins a run anew whose worker dies while its result is still wanted
                    await self._on_client(future.release)
                outcome = unpack(self._workspace, carried, job.request)
                _validate(outcome, job.options.get("format"))
                lost = {**self._attempts.get(job.index, {})}
                lost.pop(carried.attempt, None)
            except Exception as error:
                outcome = Outcome(job.index, job.request, error=_lost(error), ended="failed")
                lost = self._attempts.get(job.index, {})
            outcome.lost = list(lost.values())
            outcome.attempts = len(lost) + (outcome.error is None or not isinstance(outcome.error, WorkerLostError))
            del self._futures[job.index]
            self._tell(outcome)

    # ------------------------------------------------------------------ what workers say

    def _heard(self, event: tuple[float, dict[str, Any]]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._hear, event[1])

    def _hear(self, message: dict[str, Any]) -> None:
        kind, address = message["kind"], message["worker"]
        if kind == "kit":
            self._send(worker.deliver, self._settings.batch, self._kit, to=address)
        elif kind == "begun":
            self._attempts.setdefault(message["index"], {})[message["attempt"]] = Lost(address)
        elif kind == "call":
            attempt = self._attempts.setdefault(message["index"], {}).setdefault(message["attempt"], Lost(address))
            attempt.calls.append(message["call"])
        elif kind == "ask" and message["id"] in self._replies:  # the answer was lost on its way
            self._send(worker.answer, self._settings.batch, message["id"], self._replies[message["id"]], to=address)
        elif kind == "ask" and message["id"] not in self._asks:
            task = asyncio.ensure_future(self._ask(message["id"], json.loads(message["wire"]), address))
            self._asks[message["id"]] = task

    async def _ask(self, id: str, wire: dict[str, Any], address: str) -> None:
        """Ask here and send the answer there; said again, it waits for the same answer."""
        run = str(wire.pop("run", None) or wire["sessionID"])
        on_ask = self._settings.on_ask
        if "questions" in wire:
            reply: Any = await self._person.question(wire, run)
        elif callable(on_ask):
            reply = on_ask(_request(wire))
            if inspect.isawaitable(reply):
                reply = await reply
        else:
            reply = await self._person.permission(wire, run)
        self._replies[id] = reply
        self._send(worker.answer, self._settings.batch, id, reply, to=address)

    def _send(self, function: Callable[..., Any], *arguments: Any, to: str) -> None:
        task = asyncio.ensure_future(
            self._quietly(self._client.run, function, *arguments, workers=[to], on_error="ignore")
        )
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    # ------------------------------------------------------------------ calls of the client

    async def _quietly(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
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
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), home))
        return await self._loop.run_in_executor(pool or self._talkers, partial(function, *arguments, **options))


def _sendable(job: Job) -> Job:
    """A job as it stands in the task graph: plain data, the request itself left out.

    Raises:
        TypeError: a model is no name, or it goes on in a session, which is not there.
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
    """Make the value what was asked for: workers are sent a type's schema, not the type."""
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


def _lost(error: Exception) -> Exception:
    from distributed.scheduler import KilledWorker

    if not isinstance(error, KilledWorker):
        return error
    return WorkerLostError(
        "every worker that was assigned this run ended during it (out of memory, or ended by the run itself), so it is "
        "not retried"
    )
