"""Every crossing between threads and event loops: call on a loop, await what belongs to another, loops in threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from .errors import ToolError

T = TypeVar("T")
log = logging.getLogger(__name__)
POLL_SECONDS = 0.1
"""Seconds between two looks for an interrupt while a thread waits."""
CANCEL_SECONDS = 0.5
"""Seconds that tasks have to end which a closing loop cancels."""
SERVICE_CLOSE_SECONDS = 3.0
"""Seconds a service has to end when its workspace closes."""


def is_current(loop: asyncio.AbstractEventLoop | None) -> bool:
    """Return whether this code is called by that loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def call_soon(loop: asyncio.AbstractEventLoop, fn: Callable[..., object], *args: Any) -> bool:
    """Call a function on a loop in a moment, from any thread; False if the loop is closed, so that nobody waits."""
    try:
        loop.call_soon_threadsafe(fn, *args)
    except RuntimeError:
        return False
    return True


def call_on_loop(loop: asyncio.AbstractEventLoop, fn: Callable[..., object], *args: Any) -> bool:
    """Call a function on a loop, from any thread: at once where this is that loop. False if the loop is closed."""
    if not is_current(loop):
        return call_soon(loop, fn, *args)
    fn(*args)
    return True


async def as_coroutine(awaitable: Awaitable[T]) -> T:
    """Any awaitable as a coroutine."""
    return await awaitable


def submit(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Run a coroutine on a loop, from any thread. The caller's context variables go with it."""
    return asyncio.run_coroutine_threadsafe(work, loop)


async def run_on_loop(loop: asyncio.AbstractEventLoop | None, work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine on another loop; here if that loop is this one or does not run. A cancel reaches it."""
    if loop is None or not loop.is_running() or is_current(loop):
        return await work
    return await asyncio.wrap_future(submit(loop, work))


async def run_in_thread(fn: Callable[..., T], *args: Any) -> T:
    """Run blocking code on a worker thread; a cancel does not wait for it."""
    import anyio.to_thread  # here: not everything that crosses threads needs it

    return await anyio.to_thread.run_sync(fn, *args, abandon_on_cancel=True)


def run_in_new_loop(work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Run a coroutine on an event loop of its own, in a daemon thread of its own."""
    future: concurrent.futures.Future[T] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()  # whoever gives up waiting takes nobody along

    def run() -> None:
        try:
            future.set_result(asyncio.run(work))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="opencode-call", daemon=True).start()
    return future


def run_elsewhere(loop: asyncio.AbstractEventLoop | None, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Run a coroutine for code that blocks: on a loop of another thread where that runs, else on a new one."""
    if loop is None or not loop.is_running() or is_current(loop):
        return run_in_new_loop(work)
    return submit(loop, work)


def wait_interruptibly(future: concurrent.futures.Future[T], seconds: float | None = None) -> T:
    """Wait for a future in a thread that can be interrupted.

    Raises:
        TimeoutError: it took longer than `seconds`.
    """
    beats = 0
    while True:
        try:
            return future.result(POLL_SECONDS)
        except TimeoutError:
            if future.done():
                return future.result()
            beats += 1
            if seconds is not None and beats * POLL_SECONDS >= seconds:
                raise


def run_blocking(
    loop: asyncio.AbstractEventLoop | None, work: Coroutine[Any, Any, T], seconds: float, failure: str
) -> T:
    """Run a coroutine for code that blocks, on a loop that is not blocked by it (`run_elsewhere`), and wait for it.

    Raises:
        ToolError: `failure`, and that it took longer than `seconds`.
    """
    future = run_elsewhere(loop, work)
    try:
        return wait_interruptibly(future, seconds)
    except KeyboardInterrupt:
        future.cancel()
        raise
    except TimeoutError:
        if future.done():
            raise
        future.cancel()
        raise ToolError(f"{failure} within {seconds:g} s") from None


class LoopThread:
    """An event loop in a daemon thread of its own, for what outlives the loop of any one call.

    A notebook's calls run on the engine's loop, a script's on its own, and `Workspace.call_sync` on a new one each
    time; what one call starts has to be there for the next. The thread starts at the first use; after a fork the child
    gets its own. Code that stops the loop or raises `SystemExit` there does not end the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._cancel_rest = True

    @property
    def is_alive(self) -> bool:
        """True if the loop runs in this process and takes work."""
        if self._closed or self._thread is None or self._loop is None:
            return False
        return self._thread.is_alive() and not self._loop.is_closed()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, started if it was not.

        Raises:
            RuntimeError: `close` was called before.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError(f"{self._name} was closed")
            if self._loop is None or not self.is_alive:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the loop. The caller's context variables go with it, so output finds its cell."""
        try:
            return submit(self.loop, work)
        except RuntimeError:
            work.close()
            raise

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it here; a cancel here cancels it there."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self, *, cancel: bool = True) -> None:
        """End the loop and its thread, for good. Twice is harmless.

        Args:
            cancel: cancel what still runs there and wait a moment for it; otherwise it is left alone.
        """
        alive, self._closed, self._cancel_rest = self.is_alive, True, cancel
        if alive and self._loop is not None and self._thread is not None:
            call_soon(self._loop, self._loop.stop)
            if cancel and self._thread is not threading.current_thread():
                self._thread.join(2 * CANCEL_SECONDS)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._closed and not loop.is_closed():
            try:
                loop.run_forever()
            except BaseException:  # SystemExit of a callback: the thread must live on
                log.exception("%s: an error reached the loop", self._name)
        if not self._cancel_rest or loop.is_closed():
            return
        try:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_SECONDS))
        finally:
            loop.close()


def resolve_all(waiters: list[asyncio.Future[None]]) -> None:
    """Wake those who wait, each on its own loop, by one message to each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for future in waiters:
        by_loop.setdefault(future.get_loop(), []).append(future)
    for loop, futures in by_loop.items():
        call_soon(loop, _resolve, futures)


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


async def close_service(service: Any) -> None:
    """Close a service; what goes wrong must not keep the others open."""
    close = getattr(service, "close", None)
    if close is None:
        return
    try:
        outcome = close()
        if inspect.isawaitable(outcome):
            await asyncio.wait_for(outcome, SERVICE_CLOSE_SECONDS)
    except Exception:
        log.exception("%s did not close", type(service).__name__)
