"""The part of a batch that runs in a Dask worker: whole sessions and tool calls in a workspace of the worker's own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ...core.errors import ToolAbortedError, ToolError
from ...core.permission import PermissionRequest
from ...core.question_request import QuestionRequest
from ...core.workspace import Workspace
from .asking import Asked, Deciders, settle
from .carried import Carried, pack, pack_error
from .jobs import Job
from .kit import Kit
from .outcome import Outcome
from .pacing import Paces
from .places import Places
from .running import Runner

T = TypeVar("T")
POLL = 0.1
"""Seconds between two looks whether Dask still wants a run."""
KIT_WAIT = 120.0
"""Seconds the notebook has to send what a batch needs."""
SAY_AGAIN = 10.0
"""Seconds after which an ask, or the wish for the kit, is told once more, in case the first word was lost."""
IDLE = 60.0
"""Seconds without a run after which a batch's workspace is closed; the next run opens it again."""
STOP = 3.0
"""Seconds that the runs of a batch have to end when it is stopped."""


@dataclass(eq=False)
class Batch:
    """A batch's workspace in this worker."""

    kit: Kit
    workspace: Workspace
    runner: Runner
    worker: Any
    asks: dict[str, asyncio.Future[Any]] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[Carried]] = field(default_factory=dict)
    used: float = field(default_factory=time.monotonic)


class Home:
    """The loop of this process that runs work on, in a thread of its own; Dask's own loop must not be held up."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.kits: dict[str, concurrent.futures.Future[bytes]] = {}
        self.batches: dict[str, asyncio.Future[Batch]] = {}
        self.lock = threading.Lock()
        threading.Thread(target=self._run, name="opencode-runs", daemon=True).start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.create_task(self._sweep())
        self.loop.run_forever()

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine here."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def kit(self, batch: str) -> concurrent.futures.Future[bytes]:
        """A batch's kit, once it has come."""
        with self.lock:
            return self.kits.setdefault(batch, concurrent.futures.Future())

    async def batch(self, name: str, worker: Any) -> Batch:
        """A batch's workspace, opened at its first run."""
        found = self.batches.get(name)
        if found is None:
            found = self.batches[name] = asyncio.ensure_future(_open(name, self, worker))
        try:
            return await asyncio.shield(found)
        except BaseException:
            if found.done():
                self.batches.pop(name, None)
            raise

    async def close(self, name: str) -> None:
        """End a batch's runs and close its workspace."""
        opened = self.batches.pop(name, None)
        with self.lock:
            self.kits.pop(name, None)
        if opened is None:
            return
        batch = await opened
        for task in batch.tasks.values():
            task.cancel()
        if batch.tasks:
            await asyncio.wait(batch.tasks.values(), timeout=STOP)
        await batch.workspace.aclose()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(IDLE / 4)
            for name, opened in list(self.batches.items()):
                if not opened.done() or opened.exception() is not None:
                    continue
                if not opened.result().tasks and time.monotonic() - opened.result().used > IDLE:
                    await self.close(name)


_home: list[Home] = []
_making = threading.Lock()


def home() -> Home:
    """This process's."""
    with _making:
        if not _home:
            _home.append(Home())
        return _home[0]


async def _kit(name: str, where: Home, worker: Any) -> bytes:
    """Ask the notebook for what the batch needs, again and again in case a word was lost.

    Raises:
        TimeoutError: nothing came in `KIT_WAIT`.
    """
    coming = asyncio.wrap_future(where.kit(name))
    async with asyncio.timeout(KIT_WAIT):
        while not coming.done():
            worker.log_event(name, {"kind": "kit", "worker": worker.address})
            await asyncio.wait({coming}, timeout=SAY_AGAIN)
    return coming.result()


async def _open(name: str, where: Home, worker: Any) -> Batch:
    import cloudpickle

    kit: Kit = cloudpickle.loads(await _kit(name, where, worker))
    folder = Path(kit.directory)
    if not await asyncio.to_thread(folder.is_dir):
        raise ToolError(f"there is no folder {folder}: workers must see the project under the same path")
    same_disk = await asyncio.to_thread((Path(kit.data_dir) / kit.token).exists)
    data_dir = Path(kit.data_dir) if same_disk else Path(tempfile.gettempdir()) / f"opencode-runs-{os.getpid()}"
    workspace = await Workspace(folder, kit.overrides, data_dir, store=False).__aenter__()
    workspace.rules += kit.rules
    workspace.permissions.approved += kit.approved
    for tool in kit.tools:
        workspace.registry.register(tool)
    places = Places(workspace, kit.batch, kit.isolate)
    runner = Runner(places, workspace.service(Paces), kit.before, kit.after, kit.keep, parts=True)
    batch = Batch(kit, workspace, runner, worker)
    # As long as the workspace is open; closing it ends this with it.
    workspace.service(Deciders).asked.append(
        Asked(lambda _: True, "reject" if kit.reject else None, lambda request: _relayed(batch, request))
    )
    return batch


# ---------------------------------------------------------------------- called by Dask, in its own threads


def run_job(batch: str, job: Job) -> Carried:
    """Do a job: the task of Dask's graph. What goes wrong in the run is in what it returns."""
    from distributed import get_worker

    worker, where = get_worker(), home()
    key = worker.get_current_task()
    future = where.submit(_do(batch, job, worker))
    while True:
        try:
            return future.result(POLL)
        except concurrent.futures.TimeoutError:
            if future.done():
                raise
        except concurrent.futures.CancelledError:
            return _stopped(job)
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":  # nobody wants it any more, or the notebook is gone
            future.cancel()
            return _stopped(job)  # not raised: Dask would log the job


def _stopped(job: Job) -> Carried:
    return Carried("", Outcome(job.index, None, ended="failed"), pack_error(ToolAbortedError("the run was stopped")))


def deliver(batch: str, data: bytes) -> None:
    """Take in a batch's kit."""
    future = home().kit(batch)
    if not future.done():
        future.set_result(data)


def answer(batch: str, ask: str, reply: Any) -> None:
    """Take in the answer to an ask."""

    async def take() -> None:
        opened = home().batches.get(batch)
        waiting = (await opened).asks.get(ask) if opened is not None else None
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    home().submit(take())


async def close(batch: str) -> None:
    """End what still runs of a batch, and close its workspace."""
    if _home:
        await asyncio.wrap_future(home().submit(home().close(batch)))


# ---------------------------------------------------------------------- on the loop of the runs


async def _do(name: str, job: Job, worker: Any) -> Carried:
    attempt = secrets.token_hex(6)
    try:
        batch = await home().batch(name, worker)
    except Exception as error:
        text = "the notebook did not answer" if isinstance(error, TimeoutError) else str(error)
        refused = ToolError(f"the worker {worker.address} could not start: {text}")
        failed = Outcome(job.index, None, ended="failed", worker=worker.address)
        return Carried(attempt, failed, pack_error(refused))
    told = {"index": job.index, "attempt": attempt, "worker": worker.address}
    worker.log_event(name, {"kind": "begun", **told})
    begun: set[str] = set()
    sessions: list[str] = []

    def note(event: dict[str, Any]) -> None:
        part = event["properties"]["part"]
        if part.get("type") != "tool" or part["id"] in begun or part["state"]["status"] != "running":
            return
        if batch.runner.run_of(part["sessionID"]) in sessions:
            begun.add(part["id"])
            worker.log_event(name, {"kind": "call", "call": _named(part), **told})

    unsubscribe = batch.workspace.bus.subscribe("message.part.updated", note)
    task = asyncio.ensure_future(_carried(batch, attempt, job, sessions.append))
    batch.tasks[attempt] = task
    try:
        carried = await task
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        unsubscribe()
        batch.tasks.pop(attempt, None)
        batch.used = time.monotonic()
    carried.outcome.worker = worker.address
    return carried


async def _carried(batch: Batch, attempt: str, job: Job, began: Callable[[str], None]) -> Carried:
    outcome = await batch.runner.do(job, began)
    carried = pack(batch.workspace, attempt, outcome)
    if carried.sessions:
        await batch.workspace.sessions.delete(outcome.session)  # from now on it is the notebook's
    return carried


def _named(part: dict[str, Any]) -> str:
    given = part["state"].get("input") or {}
    first = next((str(given[name]) for name in ("filePath", "command", "pattern", "path") if given.get(name)), "")
    return f"{part['tool']} {first}".strip()[:200]


async def _relayed(batch: Batch, request: PermissionRequest | QuestionRequest) -> Any:
    """Ask where the batch comes from."""
    future = batch.asks[request.id] = asyncio.get_running_loop().create_future()
    wire = json.dumps({**request.to_wire(), "run": batch.runner.title_of(request.session_id)}, default=str)
    try:
        while not future.done():
            told = {"kind": "ask", "id": request.id, "worker": batch.worker.address, "wire": wire}
            batch.worker.log_event(batch.kit.batch, told)
            await asyncio.wait({future}, timeout=SAY_AGAIN)
        reply = future.result()
        return reply if isinstance(request, QuestionRequest) else settle(batch.workspace.permissions, request, reply)
    finally:
        del batch.asks[request.id]
