"""The outcomes of many requests, the list of them, and the progress of a batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ToolError
from ..core.result import data_frame

if TYPE_CHECKING:
    import pandas

    from ..agent.answer import Answer
    from ..core.result import ToolResult
    from .map import Batch


class RunTimeoutError(ToolError):
    """A run took longer than its limit. Time spent waiting for a person does not count.

    Attributes:
        seconds: the limit.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The run took longer than its limit of {seconds:g} s and was stopped.")
        self.seconds = seconds


class WorkerLostError(ToolError):
    """The workers that a run was given to ended before it was done, more often than it is given out again."""


@dataclass(slots=True)
class Lost:
    """An attempt whose worker ended on the way.

    Attributes:
        worker: its address.
        calls: the tool calls that had started there: their changes of files remain.
    """

    worker: str
    calls: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """The outcome of one request.

    Attributes:
        index: the request's place.
        request: as it was given.
        text: the answer's text, or the tool's output.
        value: the validated object if a `format` was requested; the `ToolResult` of a tool call; else None.
        steps: how many times the model was asked.
        calls: tool calls, those of child sessions not counted.
        tokens: of all requests to the model.
        cost: in US dollars; None if the prices are not known.
        seconds: from its begin to its end.
        error: what ended it; None if it went well.
        session: the id of its session; "" if it never had one.
        ended: as in `Answer.ended`, or "failed".
        model: ``provider:model``; "" for a tool call.
        directory: where it ran.
        attempts: how often it was started: more than once if a worker was lost.
        lost: the attempts that were lost, with the calls that they had started.
        worker: the Dask worker it ran on; "" for this process.
        answer: the `Answer`; None for tool calls and where there is none.
        extra: what else is kept with it: ``copied`` (the root of the copy it worked in), an evaluation's ``scores``.
    """

    index: int
    request: Any
    text: str = ""
    value: Any = None
    steps: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    error: BaseException | None = None
    session: str = ""
    ended: str = ""
    model: str = ""
    directory: str = ""
    attempts: int = 1
    lost: list[Lost] = field(default_factory=list)
    worker: str = ""
    answer: Answer | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if nothing ended it early."""
        return self.error is None

    @property
    def result(self) -> ToolResult | None:
        """A tool call's result."""
        from ..core.result import ToolResult

        return self.value if isinstance(self.value, ToolResult) else None

    @property
    def record(self) -> dict[str, Any]:
        """Its row in the table."""
        names = ("request", "text", "value", "steps", "calls", "tokens", "cost", "seconds")
        row: dict[str, Any] = {name: getattr(self, name) for name in names}
        row["error"] = None if self.error is None else error_text(self.error)
        return {**row, "session": self.session, "attempts": self.attempts}

    def __repr__(self) -> str:
        how = "done" if self.error is None else error_text(self.error)
        return f"<outcome {self.index}: {how:.80}>"


class Results(list[Outcome]):
    """Outcomes in the order of their requests; `df` is a table of them."""

    def __init__(self, outcomes: Iterable[Outcome] = (), again: Callable[[Results], Batch] | None = None) -> None:
        super().__init__(outcomes)
        self._again = again

    @property
    def records(self) -> list[dict[str, Any]]:
        """One dict a request: request, text, value, steps, calls, tokens, cost, seconds, error, session, attempts."""
        return [outcome.record for outcome in self]

    @property
    def df(self) -> pandas.DataFrame:
        """`records` as a data frame.

        Raises:
            ImportError: pandas is not installed.
        """
        return data_frame(self.records, "results.df", "results.records", index=[outcome.index for outcome in self])

    @property
    def errors(self) -> Results:
        """The outcomes that failed."""
        return Results(outcome for outcome in self if outcome.error is not None)

    @property
    def texts(self) -> list[str]:
        """The text of each outcome."""
        return [outcome.text for outcome in self]

    @property
    def values(self) -> list[Any]:
        """The value of each outcome."""
        return [outcome.value for outcome in self]

    @property
    def cost(self) -> float | None:
        """US dollars of all; None if no price is known."""
        costs = [outcome.cost for outcome in self if outcome.cost is not None]
        return sum(costs) if costs else None

    def retry(self) -> Batch:
        """Run those that failed once more; await it for all results, the good ones kept as they are.

        Raises:
            ToolError: this is only a part of the results of a `map`.
        """
        if self._again is None:
            raise ToolError("call retry() on the result of map(): results.retry(), not on a slice of it or on .errors")
        return self._again(self)

    def discard(self) -> None:
        """Remove the copies of the project that the runs worked in (`isolate`); what they changed there is lost."""
        from .run_folders import discard

        for outcome in self:
            copied = outcome.extra.pop("copied", "")
            if copied:
                discard(Path(copied))

    def __repr__(self) -> str:
        failed = len(self.errors)
        cost = "" if self.cost is None else f", ${self.cost:.4f}"
        return f"<{len(self)} results: {len(self) - failed} done, {failed} failed{cost}>"


def error_text(error: BaseException) -> str:
    """An error in a table's cell."""
    text = str(error)
    if isinstance(error, ToolError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


UPDATE_SECONDS = 0.25
"""Seconds between two updates of the line."""
BAR_WIDTH = 24
"""Characters of the bar."""


@dataclass(slots=True)
class Progress:
    """The progress of a batch.

    Attributes:
        total: runs altogether.
        done: those that have ended, failed ones too.
        failed: those that failed.
        cost: US dollars so far; None if no price is known.
        seconds: since the start.
        outcome: the one that has just ended; None at the start.
    """

    total: int
    done: int = 0
    failed: int = 0
    cost: float | None = None
    seconds: float = 0.0
    outcome: Outcome | None = None

    def __str__(self) -> str:
        filled = BAR_WIDTH * self.done // self.total if self.total else BAR_WIDTH
        failed = f", {self.failed} failed" if self.failed else ""
        cost = "" if self.cost is None else f", ${self.cost:.4f}"
        bar = "█" * filled + "░" * (BAR_WIDTH - filled)
        return f"{bar} {self.done} of {self.total}{failed}{cost}, {self.seconds:.0f} s"


OnProgress = Callable[[Progress], Any]


class Tracker:
    """Counts outcomes and reports them.

    Args:
        total: how many there will be.
        on_progress: called at the start and after each outcome; None: a line in the notebook, nothing anywhere else.
    """

    def __init__(self, total: int, on_progress: OnProgress | None) -> None:
        self._progress = Progress(total)
        self._began = time.monotonic()
        self._report = on_progress or _notebook_line()

    def start(self) -> None:
        """Report the start."""
        if self._report is not None:
            self._report(self._progress)

    def add(self, outcome: Outcome) -> None:
        """Count and report an outcome."""
        progress = self._progress
        progress.done += 1
        progress.failed += outcome.error is not None
        if outcome.cost is not None:
            progress.cost = (progress.cost or 0.0) + outcome.cost
        progress.outcome, progress.seconds = outcome, time.monotonic() - self._began
        if self._report is not None:
            self._report(progress)


def _notebook_line() -> OnProgress | None:
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
        if handle and now - last[0] < UPDATE_SECONDS and progress.done < progress.total:
            return
        last[0] = now
        bundle = {"text/plain": str(progress)}
        if handle:
            handle[0].update(bundle, raw=True)
        else:
            handle.append(display(bundle, raw=True, display_id=True))  # type: ignore[no-untyped-call]

    return show
