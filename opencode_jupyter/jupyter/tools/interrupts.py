"""Interrupting Python code on the main thread from outside, and the child processes that it started.

Stop and time limits come as SIGURG, sent to the main thread alone. Unlike an exception that is put into a thread it
wakes ``time.sleep`` and every wait that Python can be woken from, and unlike SIGINT it is ignored where nobody
handles it: one that comes too late does nothing to the next cell. A person's interrupt (SIGINT) is handled too while
the code runs, since the machinery around it must not be torn in two. Child processes get SIGINT, as Jupyter's stop
button sends it to the kernel's group.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from glob import glob
from types import FrameType
from typing import Any, NamedTuple

from ..kernel.waiting import HeldInterrupts

STOP_SIGNAL = getattr(signal, "SIGURG", signal.SIGINT)
DOUBLE_FROM = 3
"""From this request on the code is hit twice: once where it is, and again in the handler that swallowed the first.
A person who presses again means it, too."""
EVERY = 0.1
"""Seconds of the processor's time between two looks: a process that waits has no need of them."""
STARVED = 0.3
"""Seconds without a sign of the other threads after which they are let in."""
YIELD = 0.002
"""Seconds that they are given."""


class GuardResult(NamedTuple):
    """How guarded code ended: with a value, or with an error."""

    value: Any = None
    error: BaseException | None = None


class Interrupts:
    """Signals for one run of code: between `install` and `uninstall`, on the main thread.

    Code that is called by `guard` gets a `KeyboardInterrupt`. Code that goes on as tasks of the thread's loop
    (`awaiting`) gets a `CancelledError`, since a `KeyboardInterrupt` would end that loop.

    Args:
        is_task: whether a task of the code runs at this moment.
        pulse: called on the main thread by `wake_main`, while the code runs (to read a socket that nobody else reads).

    Attributes:
        stops: how often an end was requested.
        by_person: whether a person interrupted the code.
        awaiting: whether the code goes on as tasks of the thread's loop, beside those of others.
        other_threads_at: when the thread that requests an end last ran (`time.monotonic`).
    """

    def __init__(self, is_task: Callable[[], bool], pulse: Callable[[], None] | None = None) -> None:
        self.stops = 0
        self.by_person = False
        self.awaiting = False
        self.other_threads_at = 0.0
        self._is_task = is_task
        self._pulse = pulse
        self._pulsing = False
        self._missed = False
        """Whether an end was requested during a pulse, which must not be torn in two."""
        self._delivered = 0
        self._guarding = False
        self._before: dict[int, Any] = {}
        self._trace_before: Any = None
        self._tracing = False

    # ------------------------------------------------------------------ from any thread

    def stop(self) -> None:
        """End the code, now or before it begins. Call it again if the code goes on: it may have caught the first."""
        self.stops += 1
        self.wake_main()

    def wake_main(self) -> None:
        """Wake the main thread."""
        main = threading.main_thread().ident
        if hasattr(signal, "pthread_kill") and main is not None:
            signal.pthread_kill(main, STOP_SIGNAL)
        elif self.stops:  # Windows has no signals but this one
            _thread.interrupt_main()

    # ------------------------------------------------------------------ on the main thread

    def install(self) -> None:
        """Handle the signals from now on, and let other threads run while the code holds the interpreter lock."""
        for number in {signal.SIGINT, STOP_SIGNAL}:
            self._before[number] = signal.signal(number, self._handle)
        if not hasattr(signal, "setitimer"):
            return
        # A profiler of the user's may use the timer.
        if signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL and not any(signal.getitimer(signal.ITIMER_VIRTUAL)):
            signal.signal(signal.SIGVTALRM, self._yield)
            signal.siginterrupt(signal.SIGVTALRM, False)  # other threads' waits in C go on as if nothing had been
            signal.setitimer(signal.ITIMER_VIRTUAL, EVERY, EVERY)

    def uninstall(self) -> None:
        """Put back what was there before."""
        if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGVTALRM) == self._yield:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        for number, before in self._before.items():
            # Else the code has put its own there, or a cell has, which puts ours back later: it then calls the one
            # before.
            if signal.getsignal(number) == self._handle:
                signal.signal(number, signal.SIG_DFL if before is None else before)

    def guard(self, code: Callable[[], Any]) -> GuardResult:
        """Call `code`; a signal raises `KeyboardInterrupt` inside it, and nowhere else."""
        trace = sys.gettrace()
        try:
            try:
                self._guarding = True
                if self.by_person or self.stops > self._delivered:
                    raise KeyboardInterrupt  # requested before it began
                return GuardResult(code())
            finally:
                self._guarding = False
        except BaseException as error:
            self._guarding = False
            return GuardResult(error=error)
        finally:
            if self._tracing:
                sys.settrace(self._trace_before)
                self._trace_before, self._tracing = None, False
            if sys.gettrace() is not trace:  # a debugger that the code began would stop in the next cell
                sys.settrace(trace)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        stopping = self.stops > self._delivered
        if number == signal.SIGINT and not (stopping and STOP_SIGNAL == signal.SIGINT):
            self._handle_person(number, frame)
        elif not self._runs(frame):
            return
        elif stopping:
            self._handle_stop(number, frame)
        else:
            self._do_pulse(frame)

    def _handle_person(self, number: int, frame: FrameType | None) -> None:
        is_second, outer = self.by_person, self._before.get(number)
        if self.awaiting and callable(outer):
            outer(number, frame)  # the cell that awaits on this thread's loop has to know, whichever task runs now
        if self.awaiting and not self._runs(frame):
            return
        self.by_person = True
        if self._pulsing:
            self._missed = True
        elif self._runs(frame):
            self._raise(frame, twice=is_second)

    def _handle_stop(self, number: int, frame: FrameType | None) -> None:
        held = signal.getsignal(signal.SIGINT)
        if isinstance(held, HeldInterrupts):  # a call that the code makes, or a card that is being shown
            held(number, frame)
        elif self._pulsing:
            self._missed = True
        else:
            self._raise(frame, twice=self.stops >= DOUBLE_FROM)

    def _runs(self, frame: FrameType | None) -> bool:
        """Whether the code runs at this moment, in `frame`: not what asyncio does between two steps of a task."""
        return self._guarding or (self.awaiting and self._is_task() and _in_coroutine(frame))

    def _raise(self, frame: FrameType | None, *, twice: bool = False) -> None:
        self._delivered = self.stops
        if not self._guarding:
            raise asyncio.CancelledError
        if twice and frame is not None:
            self._raise_again(frame)
        raise KeyboardInterrupt

    def _raise_again(self, frame: FrameType) -> None:
        """Raise once more at the next line: that is in the ``except`` of the code that swallows interrupts."""
        if not self._tracing:
            self._trace_before, self._tracing = sys.gettrace(), True

        def trace(at: FrameType, event: str, argument: Any) -> Any:
            if event == "line" and self._guarding:
                raise KeyboardInterrupt  # Python takes the trace function away with it
            return trace

        inner: FrameType | None = frame
        while inner is not None and inner.f_code is not Interrupts.guard.__code__:
            inner.f_trace = trace
            inner = inner.f_back
        sys.settrace(lambda at, event, argument: None)

    def _do_pulse(self, frame: FrameType | None) -> None:
        if self._pulse is None or self._pulsing:
            return
        self._pulsing = True
        try:
            with contextlib.suppress(Exception):
                self._pulse()
        finally:
            self._pulsing = False
        missed, self._missed = self._missed, False
        if missed and self._runs(frame):
            self._raise(None)

    def _yield(self, number: int, frame: FrameType | None) -> None:
        """Let the kernel's other threads run while code on the main thread holds the interpreter lock.

        A call into C need not release the lock: a regular expression that tries all ways to match keeps it until the
        end, but handles signals meanwhile, as much of Python's own C code does. Nothing helps against code that
        handles no signals (``sum(range(10**12))``).
        """
        if time.monotonic() - self.other_threads_at > STARVED:
            if self._runs(frame):
                self._do_pulse(frame)
            time.sleep(YIELD)


def _in_coroutine(frame: FrameType | None) -> bool:
    """Whether a coroutine runs, called by the event loop. An exception elsewhere would lose the task for the loop."""
    while frame is not None and frame.f_globals.get("__name__") != "asyncio.events":
        if frame.f_code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            return True
        frame = frame.f_back
    return False


def interrupt_cell() -> None:
    """Pass a person's interrupt on to the cell that awaits on this thread's loop, if there is one."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and handler is not signal.default_int_handler:
        with contextlib.suppress(KeyboardInterrupt):
            handler(signal.SIGINT, None)


def child_processes() -> frozenset[int]:
    """The kernel's child processes by their numbers; empty where `interrupt_children` does nothing."""
    files = glob("/proc/self/task/*/children")
    if not files:  # not Linux, or a Linux that does not list them
        return frozenset(child.pid for child in _children())
    numbers: set[int] = set()
    for file in files:
        with contextlib.suppress(OSError), open(file, encoding="ascii") as text:  # a thread may have ended
            numbers.update(map(int, text.read().split()))
    return frozenset(numbers)


def interrupt_children(others: frozenset[int]) -> None:
    """Send SIGINT to the kernel's descendants that are in its group, without the children in `others`.

    A wait for a child may be one that nothing else ends (``os.system``), and what waits need not end the child. What
    left the group is meant to live on, as are processes that other cells started.
    """
    for child in _children():
        if child.pid not in others:
            for process in (child, *_children(child.pid, recursive=True)):
                with contextlib.suppress(OSError):  # it has ended
                    if os.getpgid(process.pid) == os.getpgrp():
                        os.kill(process.pid, signal.SIGINT)


def _children(parent: int | None = None, *, recursive: bool = False) -> list[Any]:
    """A process's children (the kernel's) as psutil finds them; none without psutil, or where they get no signal."""
    if os.name != "posix":
        return []
    try:
        import psutil  # type: ignore[import-untyped]  # ipykernel brings it
    except ImportError:
        return []
    try:
        return list(psutil.Process(parent).children(recursive=recursive))
    except psutil.Error:
        return []
