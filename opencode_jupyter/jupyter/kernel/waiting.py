"""How a cell waits for the engine: awaiting or blocking, with a heartbeat, running jobs for its thread.

The heartbeat is what lets an interrupt in: SIGINT does not wake an idle ``await`` (measured: 8 to 30 s late).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

from ...core.threads import call_soon
from .ipykernel_interrupts import ended_by_cancel, ended_by_raise, runs_code

T = TypeVar("T")

HEARTBEAT = 0.05
"""Seconds; an interrupt is noticed at the next beat. Work and endings wake the waiter at once."""
GRACE = 3.0
"""Seconds; a call ends its children in one."""


class Waiter:
    """One cell's wait for one call.

    Args:
        abort: called with ``interrupted`` when the person interrupts the kernel.
        on_beat: called on the waiting thread at every beat, for the prompt and the socket pump.
        grace: seconds that an interrupted call may take to end its children before the cell goes on without it.
    """

    def __init__(
        self,
        abort: Callable[[str], None],
        on_beat: Callable[[], None] | None = None,
        *,
        grace: float = GRACE,
    ) -> None:
        self._abort = abort
        self._on_beat = on_beat
        self._grace = grace
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], concurrent.futures.Future[Any]] | None]
        self._jobs = queue.SimpleQueue()
        self._wake: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._over = False
        self.on_main = threading.current_thread() is threading.main_thread()
        """Whether the main thread waits, and not a subshell or a thread of the user's."""

    def submit(self, fn: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        """Have `fn` run on the waiting thread. Any thread may call it.

        Raises:
            RuntimeError: in the future, if the wait is over.
        """
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        with self._lock:
            if self._over:
                future.set_exception(RuntimeError("the cell no longer waits"))
                return future
            self._jobs.put((fn, future))
            wake = self._wake
        if wake is not None:
            wake()
        return future

    def wait(self, future: concurrent.futures.Future[T]) -> T:
        """Block until the call ends, and give its result.

        Raises:
            KeyboardInterrupt: the person interrupted; the call is stopped, with every process it started.
            asyncio.CancelledError: the same in a task of the user's, where a `KeyboardInterrupt` would end the loop.
        """
        future.add_done_callback(lambda _: self._jobs.put(None))
        with interrupts_held() as held, held.waking(lambda: self._jobs.put(None)):
            try:
                while not future.done():
                    self._serve_one(HEARTBEAT)
                    held.raise_taken()
                    if self._on_beat is not None:
                        self._on_beat()
            except (KeyboardInterrupt, asyncio.CancelledError) as error:
                self._abort("interrupted")
                deadline = time.monotonic() + self._grace
                # interrupted again: do not wait for the children
                with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
                    while not future.done() and time.monotonic() < deadline and not held.take():
                        self._serve_one(HEARTBEAT)
                self._drain()
                raise type(error) from None
            self._drain()
        return future.result()

    @ended_by_cancel
    async def wait_async(self, future: concurrent.futures.Future[T]) -> T:
        """Await the end of the call, and give its result.

        Raises:
            KeyboardInterrupt: interrupted in a cell of its own.
            asyncio.CancelledError: cancelled in a task of the user's.
        """
        loop = asyncio.get_running_loop()
        bell = asyncio.Event()

        def ring() -> None:
            call_soon(loop, bell.set)

        with self._lock:
            self._wake = ring
        future.add_done_callback(lambda _: ring())
        try:
            while not future.done():
                await self._beat(bell)
        except (asyncio.CancelledError, KeyboardInterrupt) as error:
            self._abort("interrupted")
            deadline = time.monotonic() + self._grace
            while not future.done() and time.monotonic() < deadline:
                try:
                    await self._beat(bell)
                except (asyncio.CancelledError, KeyboardInterrupt):
                    break  # interrupted again
            self._drain()
            if isinstance(error, KeyboardInterrupt) or in_cell_task():
                raise KeyboardInterrupt from None
            raise
        self._drain()
        return future.result()

    async def _beat(self, bell: asyncio.Event) -> None:
        # Not asyncio.wait_for: before Python 3.12 it swallows a cancel that comes together with the bell.
        timer = asyncio.get_running_loop().call_later(HEARTBEAT, bell.set)
        try:
            await bell.wait()
        finally:
            timer.cancel()
        bell.clear()
        self.serve_all()
        if self._on_beat is not None:
            self._on_beat()

    def _serve_one(self, seconds: float) -> None:
        try:
            item = self._jobs.get(timeout=seconds)
        except queue.Empty:
            return
        if item is not None:
            self._run(*item)

    def serve_all(self) -> None:
        """Run the submitted jobs. On the waiting thread."""
        while True:
            try:
                item = self._jobs.get_nowait()
            except queue.Empty:
                return
            if item is not None:
                self._run(*item)

    def _drain(self) -> None:
        """Run the remaining jobs; those that are submitted later fail."""
        with self._lock:
            self._over = True
        self.serve_all()

    @staticmethod
    @ended_by_raise
    def _run(fn: Callable[[], Any], future: concurrent.futures.Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            with interrupts_released():
                value = fn()
            future.set_result(value)
        except (KeyboardInterrupt, asyncio.CancelledError) as error:
            future.set_exception(error)
            raise
        except BaseException as error:
            future.set_exception(error)


def blocking() -> bool:
    """Whether a cell blocks the main thread for a call now, so that the thread's event loop does not run."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code is Waiter.wait.__code__:
            return True
        frame = frame.f_back
    return False


class HeldInterrupts:
    """SIGINT's handler while code of ours runs on the main thread: it notes the signal, so that no work is torn in two.

    Args:
        before: the handler that was in force; None if there is none to hold back.
    """

    def __init__(self, before: Callable[[int, FrameType | None], Any] | None) -> None:
        self.before = before
        self._signal: tuple[int, FrameType | None] | None = None
        self._wake: Callable[[], None] = _do_nothing

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Note the signal, and wake the thread if it waits."""
        self._signal = (number, frame)
        self._wake()

    def take(self) -> bool:
        """Whether an interrupt has come since the last call; from then on it is the caller's."""
        noted, self._signal = self._signal, None
        return noted is not None

    def raise_taken(self) -> None:
        """Raise the interrupt that has come, if any.

        Raises:
            KeyboardInterrupt: in a cell.
            asyncio.CancelledError: in a task of the user's; the cell that awaits it is interrupted.
        """
        noted = self._signal
        if noted is None:
            return
        self.deliver()
        raise KeyboardInterrupt if runs_code() or running_loop() is None else asyncio.CancelledError

    def deliver(self) -> None:
        """Pass a held signal to the original handler."""
        noted, self._signal = self._signal, None
        if noted is not None and self.before is not None:
            self.before(*noted)

    @contextlib.contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Have `wake` called when an interrupt comes; it must be safe in a signal handler."""
        outer, self._wake = self._wake, wake
        try:
            yield
        finally:
            self._wake = outer


@contextlib.contextmanager
def interrupts_held() -> Iterator[HeldInterrupts]:
    """Let a piece of work finish; an interrupt that comes meanwhile takes effect after it.

    Inside another piece the outer one holds. Work that fails drops the interrupt: the cell ends anyway.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield HeldInterrupts(None)
    elif isinstance(before, HeldInterrupts):
        yield before
    else:
        held = HeldInterrupts(before)
        signal.signal(signal.SIGINT, held)
        try:
            yield held
        finally:
            signal.signal(signal.SIGINT, before)
        held.deliver()


@contextlib.contextmanager
def interrupts_released() -> Iterator[None]:
    """Let interrupts through again for a piece of work that is the person's own, inside `interrupts_held`."""
    held = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not isinstance(held, HeldInterrupts):
        yield
        return
    try:
        signal.signal(signal.SIGINT, held.before or signal.default_int_handler)
        held.deliver()
        yield
    finally:
        signal.signal(signal.SIGINT, held)


def _do_nothing() -> None:
    """No thread waits."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs on this thread, if one does."""
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None


def in_cell_task() -> bool:
    """Whether this is the task of a notebook cell, in which a `KeyboardInterrupt` is caught and shown by IPython.

    In any other task it would end the kernel's event loop.
    """
    task = asyncio.current_task()
    coroutine = task.get_coro() if task is not None else None
    return getattr(coroutine, "__name__", "") == "run_cell_async"
