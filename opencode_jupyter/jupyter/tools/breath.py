"""Lets the other threads of the kernel in while code on the main thread holds the interpreter for itself.

Python code hands the interpreter on every 5 ms. A call into C need not: a regular expression that tries all ways to
match keeps it until the end, but looks for signals meanwhile, as much of Python's own C code does. Without help no
click and no time limit would be heard until then. What looks for no signals (``sum(range(10**12))``) can't be helped.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from types import FrameType

EVERY = 0.1
"""Seconds of the processor's time between two looks: a process that waits has no need of them."""
STARVED = 0.3
"""Seconds without a sign of the other threads after which they are let in."""
BREATH = 0.002
"""Seconds that they are given."""


class Breath:
    """A timer whose signal reaches C code. Begin and end it on the main thread; it nests.

    Args:
        heard: when the thread that hears clicks last ran (`time.monotonic`).
        first: called before it is let in.
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
            signal.signal(signal.SIGVTALRM, self._breathe)
            signal.siginterrupt(signal.SIGVTALRM, False)  # other threads' waits in C go on as if nothing had been
            signal.setitimer(signal.ITIMER_VIRTUAL, EVERY, EVERY)

    def end(self) -> None:
        """Stop it."""
        self._depth -= 1
        if self._depth or not hasattr(signal, "setitimer"):
            return
        if signal.getsignal(signal.SIGVTALRM) == self._breathe:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)

    def _breathe(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() - self._heard() > STARVED:
            with contextlib.suppress(Exception):
                self._first()
            time.sleep(BREATH)
