"""Runs the loop of a prompt once, on the workspace's event loop; stops it, and yields its events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import anyio

from ..core.call_reporting import why_cancelled
from ..core.errors import ToolAbortedError, ToolError
from ..core.threads import call_on_loop, call_soon, is_current, run_on_loop

if TYPE_CHECKING:
    from .answer import Answer
    from .run import Run, Status

log = logging.getLogger(__name__)

RESTING = 0.5
"""Seconds that closing idle connections may take when a run is stopped."""
STOPPED = {
    "interrupted": "interrupted",
    "timeout": "stopped at its time limit",
    "closed": "ended with its workspace",
}
"""How an error reports a stop, by its reason."""


class Execution:
    """The work on one run, from its start to its end."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._scope: anyio.CancelScope | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Answer] | None = None

    async def run(self) -> Answer:
        """See `Run.run`."""
        if self._loop is not None:
            raise ToolError("this run has already started; await it, or create a new one with sessions.prompt(...)")
        from .loop import run_loop  # here: what it needs is only loaded when there is something to do

        run = self._run
        self._loop = asyncio.get_running_loop()
        try:
            with anyio.CancelScope() as self._scope:
                if run.reason is not None:
                    self._scope.cancel()
                run.answer = await run_loop(run)
            if run.answer is None:
                text = f"the run was {STOPPED.get(run.reason or '', 'stopped')}"
                raise ToolAbortedError(text, reason=run.reason or "stopped")  # noqa: TRY301
        except asyncio.CancelledError as error:
            self._end("stopped", error)
            raise
        except ToolAbortedError as error:
            await self._close_connections()
            self._end("stopped", error)
            raise
        except BaseException as error:
            self._end("failed", error)
            raise
        self._end("rejected" if run.answer.ended == "rejected" else "done", None)
        return run.answer

    async def _close_connections(self) -> None:
        """Let a stopped run leave no connection behind, not even one that only waits for the next request."""
        rest = getattr(getattr(self._run, "model", None), "rest", None)
        if rest is None:
            return
        with anyio.move_on_after(RESTING, shield=True):
            try:
                await rest()
            except Exception:
                log.debug("a model's connections would not close", exc_info=True)

    def _end(self, status: Status, error: BaseException | None) -> None:
        run = self._run
        if isinstance(error, asyncio.CancelledError) and run.reason is None:
            run.reason = why_cancelled(run.parent)
        run.error, run.retry = error, None
        if run.session.run is run:
            run.session.run = None
        if run.represents_session:
            run.workspace.publish("session.idle", lambda: {"sessionID": run.session.id})
        run.set_status(status)
        run.over.set()
        run.report("end", None)

    async def wait(self) -> Answer:
        """Start it if that was not done, and wait for its answer, on any event loop."""
        if is_current(self._run.workspace.loop):
            return await self._wait_here()
        try:
            return await run_on_loop(self._run.workspace.loop, self._wait_here())
        except asyncio.CancelledError:
            self.abort("interrupted")
            raise

    async def _wait_here(self) -> Answer:
        if self._task is None:
            self._task = asyncio.create_task(self.run())
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.done():  # the waiter was cancelled: so is the work
                self.abort(why_cancelled(self._run.parent))
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({self._task})
                if not self._task.cancelled():
                    self._task.exception()  # seen: nobody else waits for it, so asyncio is not to complain
            raise

    def abort(self, reason: str) -> None:
        """See `Run.abort`."""
        if self._run.reason is None:
            self._run.reason = reason
        loop = self._loop
        if loop is not None and not loop.is_closed():
            call_on_loop(loop, self._cancel)

    def _cancel(self) -> None:
        for call in self._run.calls:
            if not call.part.outcome:
                call.abort(self._run.reason or "stopped")
        if self._scope is not None:
            self._scope.cancel()


async def watch(run: Run) -> AsyncGenerator[dict[str, Any], None]:
    """Begin a run and yield its events, ``{"type", "properties"}`` in OpenCode's names, until it is over.

    Those of its child sessions are among them. What ended the run is raised when the run itself is awaited, not here.
    Leaving the loop early stops the run.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    sessions: set[str] = set()

    def handle_event(event: dict[str, Any]) -> None:
        if _belongs_to_run(run, event, sessions):
            call_soon(loop, queue.put_nowait, event)

    unsubscribe = run.workspace.bus.subscribe("*", handle_event)
    work = asyncio.ensure_future(run.execution.wait())
    work.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
    finally:
        unsubscribe()
        if not work.done():
            run.abort("stopped")
        with contextlib.suppress(BaseException):
            await work


def _belongs_to_run(run: Run, event: dict[str, Any], sessions: set[str]) -> bool:
    properties = event["properties"]
    info = properties.get("info") or {}
    id = properties.get("sessionID") or (properties.get("part") or {}).get("sessionID") or info.get("sessionID")
    if id is None and event["type"].startswith("session."):
        id = info.get("id")
        if info.get("parentID") in sessions:
            sessions.add(str(id))
    sessions.add(run.session.id)
    return id is not None and id in sessions
