"""The part of a batch that runs in a Dask worker: whole sessions and tool calls in a workspace of the worker's own.

Dask gives the batch's `WorkerPlugin` to every worker, those that join later included. What the runs need is not in it,
since the scheduler keeps plugins and the configuration may hold a key: a worker requests it at its first run. Keys in
the environment or a keyring are never sent: a worker uses those of its own machine.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distributed import WorkerPlugin, get_worker

from ..core.errors import ToolAbortedError, ToolError
from ..core.host import ToolHost
from ..core.permission import PermissionRequest, Rule
from ..core.question_request import QuestionRequest
from ..core.threads import LoopThread, call_soon
from .approvals import ReplyRouter, ReplySource, apply_refusal
from .jobs import BatchJob
from .options import BatchSettings, RunOptions
from .results import Outcome
from .run_folders import RunFolders
from .runner import ProviderPauses, Runner
from .serialization import RunResult, pack, pack_error

CONTEXT = "context"
"""Id of the request for the batch's `BatchContext`."""
POLL_SECONDS = 0.1
"""Seconds between two checks whether Dask still wants a run."""
STOP_SECONDS = 3.0
"""Seconds that the runs of a batch have to end when it is stopped."""


@dataclass
class BatchContext:
    """The context of a batch's runs on a worker.

    Attributes:
        workspace_type: the workspace's class.
        directory: the workspace's folder.
        data_dir: its data folder, used if it is the same one (it holds the file `token`).
        overrides: the configuration laid over the files.
        approved: rules that a person allowed for the session.
        tools: the registered tools.
        settings: of the batch, without what only has a meaning where the user is.
    """

    workspace_type: type[ToolHost]
    directory: str
    data_dir: str
    token: str
    overrides: dict[str, Any] | None
    rules: list[Rule]
    approved: list[Rule]
    tools: list[Any]
    settings: BatchSettings


def pack_context(workspace: ToolHost, settings: BatchSettings, token: str) -> bytes:
    """The pickled `BatchContext` of a batch.

    Raises:
        ToolError: something in it cannot be sent; the message names it.
    """
    import cloudpickle

    tools = list(workspace.registry.registered)
    for tool in tools:
        try:
            cloudpickle.dumps(tool)
        except Exception as error:
            raise ToolError(
                f"the registered tool {tool.id} can't be sent to Dask's workers ({error}); put it into a file of "
                ".opencode/tool, which every worker reads by itself, or unregister it"
            ) from error
    options, rejects = settings.options, settings.options.on_ask == "reject"
    context = BatchContext(
        type(workspace),
        str(workspace.directory),
        str(workspace.data_dir),
        token,
        workspace.overrides,
        list(workspace.rules),
        list(workspace.permissions.approved),
        tools,
        replace(settings, options=RunOptions(isolate=options.isolate, on_ask="reject" if rejects else None)),
    )
    try:
        return bytes(cloudpickle.dumps(context))
    except Exception as error:
        raise ToolError(f"what the runs need cannot be sent to Dask's workers: {error}") from error


_thread = LoopThread("opencode-runs")
"""Of this process's runs: Dask's loop must not be blocked."""


class BatchPlugin(WorkerPlugin):
    """A batch in a worker: its workspace, opened at the first run and closed when the plugin is removed.

    Args:
        name: of the batch; also the topic of its events.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def setup(self, worker: Any) -> None:
        """Start in a worker."""
        self._worker = worker
        self._lock = asyncio.Lock()
        self._workspace: ToolHost | None = None
        self._runner: Runner | None = None
        self._requests: dict[str, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[RunResult]] = set()

    async def teardown(self, worker: Any) -> None:
        """Stop the runs and close the workspace."""
        await _thread.run(self._close())

    async def _close(self) -> None:
        for waiting in (*self._tasks, *self._requests.values()):
            waiting.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        async with self._lock:
            if self._workspace is not None:
                await self._workspace.aclose()

    async def _open(self) -> Runner:
        """The runner of the workspace, which the first run opens."""
        async with self._lock:
            if self._runner is not None:
                return self._runner
            import cloudpickle

            context: BatchContext = cloudpickle.loads(await self._request(CONTEXT, kind="context"))
            folder = Path(context.directory)
            if not await asyncio.to_thread(folder.is_dir):
                raise ToolError(f"there is no folder {folder}: workers must see the project under the same path")
            data_dir = Path(context.data_dir)
            if not await asyncio.to_thread((data_dir / context.token).exists):  # another machine's disk
                data_dir = Path(tempfile.gettempdir()) / f"opencode-runs-{os.getpid()}"
            workspace = await context.workspace_type(folder, context.overrides, data_dir, store=False).__aenter__()
            workspace.rules += context.rules
            workspace.permissions.approved += context.approved
            for tool in context.tools:
                workspace.registry.register(tool)
            options = context.settings.options
            folders = RunFolders(workspace, self.name, options.isolate)
            pauses = workspace.service(ProviderPauses)
            self._runner = Runner(folders, pauses, context.settings, keeps_parts=True)
            self._workspace = workspace
            # As long as the workspace is open; closing it ends this with it.
            source = ReplySource(lambda _: True, options.on_ask, self._request_reply)
            workspace.service(ReplyRouter).sources.append(source)
            return self._runner

    def submit(self, job: BatchJob) -> concurrent.futures.Future[RunResult]:
        """Start a job on the loop of the runs."""
        return _thread.submit(self._run(job))

    async def _run(self, job: BatchJob) -> RunResult:
        attempt, address = secrets.token_hex(6), self._worker.address
        try:
            runner = await self._open()
        except Exception as error:
            problem = ToolError(f"the worker {address} could not start: {error}")
            return RunResult(attempt, Outcome(job.index, None, ended="failed", worker=address), pack_error(problem))
        source = {"index": job.index, "attempt": attempt, "worker": address}
        self._worker.log_event(self.name, {"kind": "begun", **source})
        workspace = runner.folders.workspace
        reported: set[str] = set()
        sessions: list[str] = []

        def report(event: dict[str, Any]) -> None:
            part = event["properties"]["part"]
            if part.get("type") != "tool" or part["id"] in reported or part["state"]["status"] != "running":
                return
            if runner.run_of(part["sessionID"]) in sessions:
                reported.add(part["id"])
                self._worker.log_event(self.name, {"kind": "call", "call": _describe_call(part), **source})

        unsubscribe = workspace.bus.subscribe("message.part.updated", report)
        task = asyncio.ensure_future(_run_and_pack(runner, attempt, job, sessions.append))
        self._tasks.add(task)
        try:
            result = await task
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            unsubscribe()
            self._tasks.discard(task)
        result.outcome.worker = address
        return result

    async def _request(self, id: str, **event: Any) -> Any:
        """Send a request to where the batch comes from, and wait for its reply."""
        future = self._requests[id] = asyncio.get_running_loop().create_future()
        self._worker.log_event(self.name, {"id": id, "worker": self._worker.address, **event})
        try:
            return await future
        finally:
            del self._requests[id]

    async def _request_reply(self, request: PermissionRequest | QuestionRequest) -> Any:
        """Request a person's reply."""
        runner = await self._open()
        wire = json.dumps({**request.to_wire(), "run": runner.title_of(request.session_id)}, default=str)
        reply = await self._request(request.id, kind="ask", wire=wire)
        permissions = runner.folders.workspace.permissions
        return reply if isinstance(request, QuestionRequest) else apply_refusal(permissions, request, reply)

    def reply(self, request_id: str, reply: Any) -> None:
        """Answer a request. Any thread may call it."""

        def answer() -> None:
            future = self._requests.get(request_id)
            if future is not None and not future.done():
                future.set_result(reply)

        call_soon(_thread.loop, answer)


def run_job(batch: str, job: BatchJob) -> RunResult:
    """Run a job: the task of Dask's graph, in a thread of Dask's. The run's own failure is in what it returns."""
    worker = get_worker()
    key = worker.get_current_task()
    plugin: Any = worker.plugins[batch]
    future: concurrent.futures.Future[RunResult] = plugin.submit(job)
    while True:
        try:
            return future.result(POLL_SECONDS)
        except concurrent.futures.TimeoutError:
            if future.done():
                raise
        except concurrent.futures.CancelledError:
            return _stopped_result(job)
        state = worker.state.tasks.get(key)
        if state is None or state.state == "cancelled":  # cancelled, or the notebook is gone
            future.cancel()
            return _stopped_result(job)  # not raised: Dask would log the job


def _stopped_result(job: BatchJob) -> RunResult:
    error = pack_error(ToolAbortedError("the run was stopped"))
    return RunResult("", Outcome(job.index, None, ended="failed"), error)


def send_reply(batch: str, request_id: str, reply: Any, dask_worker: Any = None) -> None:
    """Answer a request of a run in this worker (`Client.run`)."""
    dask_worker.plugins[batch].reply(request_id, reply)


async def _run_and_pack(runner: Runner, attempt: str, job: BatchJob, on_start: Callable[[str], None]) -> RunResult:
    outcome = await runner.run(job, on_start)
    workspace = runner.folders.workspace
    result = pack(workspace, attempt, outcome)
    if result.sessions:
        await workspace.sessions.delete(outcome.session)  # from now on it is the notebook's
    return result


def _describe_call(part: dict[str, Any]) -> str:
    arguments = part["state"].get("input") or {}
    names = ("filePath", "command", "pattern", "path")
    first = next((str(arguments[name]) for name in names if arguments.get(name)), "")
    return f"{part['tool']} {first}".strip()[:200]
