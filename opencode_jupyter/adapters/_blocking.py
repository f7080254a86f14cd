"""Async work for code that can't await."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import ToolError
from ..core.loops import runs_here

if TYPE_CHECKING:
    from ..core.host import ToolHost

T = TypeVar("T")
BEAT = 0.1
"""Seconds between two looks for an interrupt while it waits."""


def in_thread(work: Coroutine[Any, Any, T], limit: float, what: str) -> T:
    """What a coroutine gives, run on an event loop of its own: the caller's may be busy with the caller.

    Raises:
        ToolError: `what`, and that it took longer than `limit` seconds.
    """
    future: concurrent.futures.Future[T] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(asyncio.run(work))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="opencode-adapter", daemon=True).start()
    return _wait(future, limit, what)


def at_home(workspace: ToolHost, work: Coroutine[Any, Any, T], limit: float, what: str) -> T:
    """What a coroutine gives that belongs to a workspace; blocks. It must not need the loop of the code that blocks.

    Raises:
        ToolError: `what`, and that it took longer than `limit` seconds.
    """
    home = workspace.loop
    if home is None or not home.is_running() or runs_here(home):
        return in_thread(work, limit, what)
    return _wait(asyncio.run_coroutine_threadsafe(work, home), limit, what)


def _wait(future: concurrent.futures.Future[T], limit: float, what: str) -> T:
    for _ in range(max(1, round(limit / BEAT))):
        try:
            return future.result(BEAT)
        except concurrent.futures.TimeoutError:
            if future.done():
                return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
    future.cancel()
    raise ToolError(f"{what} within {limit:g} s")
