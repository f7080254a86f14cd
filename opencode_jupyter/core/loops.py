"""Event loops: which one this code is called by, and work that belongs to another one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import logging
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .host import ToolHost

T = TypeVar("T")
log = logging.getLogger(__name__)
SERVICE_END = 3.0
"""Seconds a service has to end when its workspace closes."""


def runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this code is called by that loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


async def go_home(workspace: ToolHost, work: Coroutine[Any, Any, T]) -> T:
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


def resolve_all(waiters: list[asyncio.Future[None]]) -> None:
    """Wake those who wait, each on its own loop, by one message to each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for future in waiters:
        by_loop.setdefault(future.get_loop(), []).append(future)
    for loop, futures in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(_resolve, futures)


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


async def ended(service: Any) -> None:
    """Close a service; what goes wrong must not keep the others open."""
    close = getattr(service, "close", None)
    if close is None:
        return
    try:
        outcome = close()
        if inspect.isawaitable(outcome):
            await asyncio.wait_for(outcome, SERVICE_END)
    except Exception:
        log.exception("%s did not close", type(service).__name__)
