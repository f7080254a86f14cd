"""The events of one run, for ``async for event in run``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from ..core.threads import call_soon

if TYPE_CHECKING:
    from .run import Run


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
