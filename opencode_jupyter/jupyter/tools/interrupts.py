"""Ending Python code on the main thread from outside, so that it hits that code and nothing else.

Stop and time limits come as SIGURG, sent to the main thread alone. Unlike an exception that is put into a thread it
wakes ``time.sleep`` and every wait that Python can be woken from, and unlike SIGINT it is ignored where nobody
handles it: one that comes too late does nothing to the next cell. A person's interrupt (SIGINT) is taken too while
the code runs, since the machinery around it must not be torn in two.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NamedTuple, Self

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


class GilYielder:
    """Lets the kernel's other threads run while code on the main thread holds the interpreter lock.

    A call into C need not release the lock: a regular expression that tries all ways to match keeps it until the end,
    but handles signals meanwhile, as much of Python's own C code does. So a timer's signal yields. Nothing helps
    against code that handles no signals (``sum(range(10**12))``). Begin and end it on the main thread; it nests.

    Args:
        heard: when the thread that receives clicks last ran (`time.monotonic`).
        first: called before it may run.
    """

    def __init__(self, heard: Callable[[], float], first: Callable[[], None]) -> None:
        self._heard = heard
        self._first = first
        self._depth = 0

    def begin(self) -> None:
        """Start the timer, unless somebody else (a profiler, the run around this one) uses it."""
        self._depth += 1
        if self._depth > 1 or not hasattr(signal, "setitimer"):
            return
        if signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL and not any(signal.getitimer(signal.ITIMER_VIRTUAL)):
            signal.signal(signal.SIGVTALRM, self._yield)
            signal.siginterrupt(signal.SIGVTALRM, False)  # other threads' waits in C go on as if nothing had been
            signal.setitimer(signal.ITIMER_VIRTUAL, EVERY, EVERY)

    def end(self) -> None:
        """Stop it."""
        self._depth -= 1
        if self._depth or not hasattr(signal, "setitimer"):
            return
        if signal.getsignal(signal.SIGVTALRM) == self._yield:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)

    def _yield(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() - self._heard() > STARVED:
            with contextlib.suppress(Exception):
                self._first()
            time.sleep(YIELD)


class Ended(NamedTuple):
    """How guarded code ended: with a value, or with an error."""

    value: Any = None
    error: BaseException | None = None


class Interrupts:
    """Signals for one run of code. Enter it on the main thread, and call the code with `guard` inside.

    Args:
        pulse: called on the main thread by `poke`, while the code runs (to read a socket that nobody else reads).

    Attributes:
        asked: how often an end was asked for.
        by_person: whether a person interrupted the kernel meanwhile.
    """

    def __init__(self, pulse: Callable[[], None] | None = None) -> None:
        self.asked = 0
        self.by_person = False
        self._hit = 0
        self._open = False
        self._pulse = pulse
        self._pulsing = False
        self._missed = False
        """Whether an end was asked for while a pulse ran, which must not be torn in two."""
        self._before: dict[int, Any] = {}
        self._around: dict[int, Any] = {}
        self._mine: Callable[[], bool] | None = None
        self._between: Callable[[], bool] | None = None
        self._trace_before: Any = None
        self._tracing = False
        self.heard = 0.0
        """When the thread that asks last ran (`time.monotonic`)."""
        self._yielder = GilYielder(lambda: self.heard, self._pulse_in_c)

    # ------------------------------------------------------------------ from any thread

    def ask(self) -> None:
        """End the code, now or before it begins. Ask again if it goes on: it may have caught the first."""
        self.asked += 1
        self.poke()

    def poke(self) -> None:
        """Wake the main thread."""
        main = threading.main_thread().ident
        if hasattr(signal, "pthread_kill") and main is not None:
            signal.pthread_kill(main, STOP_SIGNAL)
        elif self.asked:  # Windows has no signals but this one
            _thread.interrupt_main()

    # ------------------------------------------------------------------ on the main thread

    def __enter__(self) -> Self:
        for number in {signal.SIGINT, STOP_SIGNAL}:
            self._before[number] = signal.signal(number, self._handle)
        self._yielder.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._yielder.end()
        for number, before in self._before.items():
            if signal.getsignal(number) == self._handle:  # else the code has put its own there
                signal.signal(number, signal.SIG_DFL if before is None else before)
        self._before.clear()

    def guard(self, code: Callable[[], Any]) -> Ended:
        """Call `code`; a signal raises `KeyboardInterrupt` inside it, and nowhere else."""
        trace = sys.gettrace()
        try:
            try:
                self._open = True
                if self.by_person or self.asked > self._hit:
                    raise KeyboardInterrupt  # asked before it began
                return Ended(code())
            finally:
                self._open = False
        except BaseException as error:
            self._open = False
            return Ended(error=error)
        finally:
            self._stop_tracing()
            if sys.gettrace() is not trace:  # a debugger that the code began would stop in the next cell
                sys.settrace(trace)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and not self._by_windows():
            again = self.by_person
            self._person()
            if self._pulsing:
                self._missed = True
            elif self._open:
                if again and frame is not None:
                    self._hit_again(frame)
                raise KeyboardInterrupt
            return
        if self.asked > self._hit:
            if not self._open:
                return
            held = signal.getsignal(signal.SIGINT)
            if isinstance(held, HeldInterrupts):  # a call that the code makes, or a card that is being shown
                held(number, frame)
                return
            if self._pulsing:
                self._missed = True
                return
            self._hit = self.asked
            if self.asked >= DOUBLE_FROM and frame is not None:
                self._hit_again(frame)
            raise KeyboardInterrupt
        outer = self._before.get(number)
        if callable(outer) and outer != self._handle_task:  # code that calls code: it is the caller that is meant
            outer(number, frame)
        elif self._open:
            self._do_pulse()

    def watch(self, mine: Callable[[], bool], between: Callable[[], bool]) -> None:
        """Until `unwatch`, signals also reach tasks that the code started, which run outside the guard.

        Args:
            mine: whether the code that runs at this moment is such a task.
            between: whether it is what takes the guarded code from step to step; then the next step is hit.
        """
        self._mine = mine
        self._between = between
        self._yielder.begin()
        for number in {signal.SIGINT, STOP_SIGNAL}:
            self._around[number] = signal.signal(number, self._handle_task)

    def unwatch(self) -> None:
        """End `watch`."""
        self._yielder.end()
        for number, before in self._around.items():
            if signal.getsignal(number) == self._handle_task:  # else a cell has its own now, and puts ours back: idle
                signal.signal(number, signal.SIG_DFL if before is None else before)
        self._mine = self._between = None

    def _handle_task(self, number: int, frame: FrameType | None) -> None:
        before = self._around.get(number)
        if callable(before):
            before(number, frame)
        if self._between is not None and self._between():
            if number == signal.SIGINT:
                self._person()
            return
        if self._mine is None or not self._mine():
            return
        if number == signal.SIGINT:
            self._person()
        elif self.asked == self._hit:
            self._do_pulse()
            return
        self._hit = self.asked
        raise asyncio.CancelledError  # a KeyboardInterrupt in a task would end the loop

    def tell_cell(self) -> None:
        """Pass a person's interrupt on to the cell that awaits on this thread's loop, if there is one."""
        tell_cell(self._around.get(signal.SIGINT))

    def _do_pulse(self) -> None:
        if self._pulse is None or self._pulsing:
            return
        self._pulsing = True
        try:
            with contextlib.suppress(Exception):
                self._pulse()
        finally:
            self._pulsing = False
        missed, self._missed = self._missed, False
        if missed and self._open:
            self._hit = self.asked
            raise KeyboardInterrupt

    def _pulse_in_c(self) -> None:
        if self._open or (self._mine is not None and self._mine()):
            self._do_pulse()

    def _person(self) -> None:
        self.by_person = True
        outer = getattr(self._before.get(signal.SIGINT), "__self__", None)
        if isinstance(outer, Interrupts) and outer is not self:  # it is ours where a step of a task began
            outer._person()

    def _by_windows(self) -> bool:
        return STOP_SIGNAL == signal.SIGINT and self.asked > self._hit

    def _hit_again(self, frame: FrameType) -> None:
        """Raise once more at the next line: that is in the ``except`` of the code that swallows interrupts."""
        if not self._tracing:
            self._trace_before, self._tracing = sys.gettrace(), True

        def trace(at: FrameType, event: str, argument: Any) -> Any:
            if event == "line" and self._open:
                raise KeyboardInterrupt  # Python takes the trace function away with it
            return trace

        inner: FrameType | None = frame
        while inner is not None and inner.f_code is not Interrupts.guard.__code__:
            inner.f_trace = trace
            inner = inner.f_back
        sys.settrace(lambda at, event, argument: None)

    def _stop_tracing(self) -> None:
        if self._tracing:
            sys.settrace(self._trace_before)
            self._trace_before, self._tracing = None, False


def tell_cell(handler: Any = None) -> None:
    """Pass a person's interrupt on to the cell that awaits on this thread's loop, if there is one.

    Args:
        handler: the cell's handler of SIGINT; the one in force if left out.
    """
    handler = signal.getsignal(signal.SIGINT) if handler is None else handler
    if callable(handler) and handler is not signal.default_int_handler:
        with contextlib.suppress(KeyboardInterrupt):
            handler(signal.SIGINT, None)
