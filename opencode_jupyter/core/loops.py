"""Event loops: which one this code is called by, and work that belongs to another one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .workspace import Workspace

T = TypeVar("T")


def runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this code is called by that loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


async def go_home(workspace: Workspace, work: Coroutine[Any, Any, T]) -> T:
    """Await what belongs to a workspace, from whichever loop this is. A cancel reaches it."""
    home = workspace.loop
    if home is None or not home.is_running() or runs_here(home):
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))


def in_thread(work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Run a coroutine on an event loop of its own, in a thread of its own."""
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(asyncio.run(work))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="opencode-call", daemon=True).start()
    return future
