"""Running a plugin's sync code where it holds nobody up."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio.to_thread


async def apart(fn: Callable[..., Any], *args: Any) -> Any:
    """Call `fn` on a daemon thread made for it, so that one that never returns costs no more than that thread.

    Raises:
        PluginError: it tried to end the process. Whatever else it raises passes through.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(outcome: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_result((outcome, error))

    def run() -> None:
        outcome, error = None, None
        try:
            outcome = context.run(fn, *args)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(deliver, outcome, error)

    threading.Thread(target=run, name="opencode-plugin", daemon=True).start()
    outcome, error = await future
    if error is not None:
        raise _harmless(error)
    return outcome


def is_async(fn: Callable[..., Any]) -> bool:
    """Return whether calling it gives a coroutine; also of an object that can be called."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def off_loop(fn: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """An async form of a plugin's function: async ones run as they are, sync ones on a worker thread."""
    direct = is_async(fn)

    async def run(*args: Any) -> Any:
        try:
            if direct:
                return await fn(*args)
            outcome = await anyio.to_thread.run_sync(_kept, fn, args, abandon_on_cancel=True)
            if isinstance(outcome, _Ended):
                raise outcome.error
            return await outcome if inspect.isawaitable(outcome) else outcome
        except (SystemExit, KeyboardInterrupt) as error:
            raise _harmless(error) from error

    return run


class _Ended:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _kept(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What a future can't carry, as a value."""
    try:
        return fn(*args)
    except (SystemExit, KeyboardInterrupt, StopIteration) as error:
        return _Ended(_harmless(error))


def _harmless(error: BaseException) -> BaseException:
    """What must not reach an event loop, as an error that may."""
    if isinstance(error, (SystemExit, KeyboardInterrupt, StopIteration)):
        from .contents import PluginError, described  # here: few plugins fail

        made = PluginError(f"it raised {described(error)}")
        made.__cause__ = error
        return made
    return error
