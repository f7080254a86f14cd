"""How far many runs have come: for a callback, or as one line in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .outcome import Outcome

INTERVAL = 0.25
"""Seconds between two updates of the line."""
WIDTH = 24
"""Characters of the bar."""


@dataclass(slots=True)
class Progress:
    """How far it is.

    Attributes:
        total: runs altogether.
        done: those that are over, failed ones too.
        failed: those that failed.
        cost: US dollars so far; None if no price is known.
        seconds: since the begin.
        outcome: the one that has just ended; None at the begin.
    """

    total: int
    done: int = 0
    failed: int = 0
    cost: float | None = None
    seconds: float = 0.0
    outcome: Outcome | None = None

    def __str__(self) -> str:
        filled = WIDTH * self.done // self.total if self.total else WIDTH
        failed = f", {self.failed} failed" if self.failed else ""
        cost = "" if self.cost is None else f", ${self.cost:.4f}"
        return f"{'█' * filled}{'░' * (WIDTH - filled)} {self.done} of {self.total}{failed}{cost}, {self.seconds:.0f} s"


OnProgress = Callable[[Progress], Any]


class Tracker:
    """Counts outcomes and tells of them.

    Args:
        total: how many there will be.
        on_progress: told at the begin and of each outcome; None: a line in the notebook, nothing anywhere else.
    """

    def __init__(self, total: int, on_progress: OnProgress | None) -> None:
        self._progress = Progress(total)
        self._began = time.monotonic()
        self._tell = on_progress or _line()

    def begin(self) -> None:
        """Tell that it begins."""
        if self._tell is not None:
            self._tell(self._progress)

    def ended(self, outcome: Outcome) -> None:
        """One more is over."""
        progress = self._progress
        progress.done += 1
        progress.failed += outcome.error is not None
        if outcome.cost is not None:
            progress.cost = (progress.cost or 0.0) + outcome.cost
        progress.outcome, progress.seconds = outcome, time.monotonic() - self._began
        if self._tell is not None:
            self._tell(progress)


def _line() -> OnProgress | None:
    """One line that is written over, in a cell of a kernel; None where there is none."""
    if "ipykernel" not in sys.modules or "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handle: list[Any] = []
    last = [0.0]

    def show(progress: Progress) -> None:
        now = time.monotonic()
        if handle and now - last[0] < INTERVAL and progress.done < progress.total:
            return
        last[0] = now
        bundle = {"text/plain": str(progress)}
        if handle:
            handle[0].update(bundle, raw=True)
        else:
            handle.append(display(bundle, raw=True, display_id=True))  # type: ignore[no-untyped-call]

    return show
