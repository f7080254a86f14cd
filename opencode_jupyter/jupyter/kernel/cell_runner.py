"""How a cell runs a call or a model's run: awaited, blocking, or in the background."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ...core.errors import ToolAbortedError
from ..cards.display import outside_capture
from ..error_display import for_cell
from .engine import awaited
from .ipykernel_interrupts import ended_by_cancel
from .waiting import GRACE, Waiter, in_cell_task, interrupts_held

if TYPE_CHECKING:
    from ..cards.display import LiveDisplay
    from .card_host import CardHost
    from .engine import Engine
    from .link import KernelLink
    from .reply_channels import PromptChannel

T = TypeVar("T")


class Job(Protocol[T]):
    """Work on the engine that a card shows."""

    @property
    def card(self) -> LiveDisplay:
        """Shows it."""

    @property
    def base(self) -> Path | None:
        """Files below it are named from there in errors."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    @property
    def status(self) -> str:
        """How far it is."""

    def abort(self, reason: str) -> None:
        """End it, and every process it started."""

    async def run(self) -> T:
        """Do the work. On the engine's loop."""

    def value(self, outcome: T, *, is_shown: bool = True) -> T:
        """The outcome as a cell's value; `is_shown`: the cell that runs now shows its card."""


MakeJob = Callable[[Waiter | None], Job[T]]
"""Starts a job for a cell that waits, or for none."""


class CellRunner:
    """Runs jobs for cells.

    Args:
        engine: where the work is done.
        link: the kernel's connection.
        cards: the cards of the jobs.
        prompt: asks for approval while a cell waits.
    """

    def __init__(self, engine: Engine, link: KernelLink, cards: CardHost, prompt: PromptChannel) -> None:
        self.engine = engine
        self.link = link
        self.cards = cards
        self._prompt = prompt

    def run_sync(self, make: MakeJob[T]) -> T:
        """Run a job and block until it ends: for plain functions and terminals."""
        __tracebackhide__ = True  # IPython leaves the frame out of what a tool's own error shows
        with interrupts_held():
            waiter, job, future = self._start_job(make)
            with outside_capture():  # code that the python tool runs may make calls: their cards are the cell's
                try:
                    outcome = waiter.wait(future)
                except BaseException as error:
                    raise self._error(job, error)  # noqa: B904 - the same error: what it was raised from stays
                self.cards.end(job.card)
            return job.value(outcome)

    @ended_by_cancel
    async def run_async(self, make: MakeJob[T]) -> T:
        """Run a job and await its end."""
        __tracebackhide__ = True
        waiter, job, future = self._start_job(make)
        try:
            outcome = await waiter.wait_async(future)
        except BaseException as error:
            if isinstance(error, ToolAbortedError) and error.reason == "interrupted" and in_cell_task():
                # it had ended before the interrupt reached the cell
                raise self._error(job, KeyboardInterrupt()) from None
            raise self._error(job, error)  # noqa: B904 - the same error: what it was raised from stays
        self.cards.end(job.card)
        return job.value(outcome)

    def start_background(self, make: MakeJob[T]) -> BackgroundHandle[T]:
        """Run a job that continues when the cell has ended; its card stays live."""
        job = make(None)
        self.cards.show_in_background(job.card)
        future = self.engine.submit(job.run())
        future.add_done_callback(lambda _: self.cards.end_later(job.card))
        return BackgroundHandle(self, future, job)

    def _start_job(self, make: MakeJob[T]) -> tuple[Waiter, Job[T], concurrent.futures.Future[T]]:
        def abort(reason: str) -> None:
            job.abort(reason)  # made below, with this waiter

        waiter = self.waiter(abort)
        job = make(waiter)
        return waiter, job, self.engine.submit(job.run())

    def _error(self, job: Job[Any], error: BaseException) -> BaseException:
        whole = self.cards.needs_whole_error(job.card)
        self.cards.end(job.card)
        return for_cell(error, whole=whole, base=job.base)

    # ------------------------------------------------------------------ waiting for other work

    def waiter(self, abort: Callable[[str], None], *, grace: float = GRACE) -> Waiter:
        """A wait on this thread that receives replies meanwhile; see `Waiter`."""
        waiter = Waiter(abort, lambda: self.beat(waiter), grace=grace)
        return waiter

    def beat(self, waiter: Waiter | None = None) -> None:
        """The work of a waiting cell at every heartbeat."""
        self.link.beat()
        self._prompt.beat(waiter)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the engine and wait for it. Replies get through meanwhile; an interrupt cancels the work."""
        future = self.engine.submit(work)
        return self.waiter(lambda reason: _cancel(future)).wait(future)

    async def wait_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the engine and await it; see `wait`."""
        future = self.engine.submit(work)
        return await self.waiter(lambda reason: _cancel(future)).wait_async(future)

    def on_engine(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Run a function, plain or async, on the workspace's loop and return its result; see `wait`."""
        return self.wait(awaited(fn, *args))


class BackgroundHandle(Generic[T]):
    """A job in the background: ``handle.result()``, ``handle.cancel()``, ``await handle``."""

    def __init__(self, runner: CellRunner, future: concurrent.futures.Future[T], job: Job[T]) -> None:
        self._runner = runner
        self._future = future
        self._job = job
        self._cell = self._current_cell()
        """The cell whose card it is."""
        self._was_awaited = False
        """Whether it ended while a cell waited for it."""

    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def cancel(self) -> None:
        """Stop it and every process it started."""
        self._job.abort("stopped")

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. Replies get through meanwhile; an interrupt stops the waiting, not the work.

        Raises:
            TimeoutError: there is none after `timeout` seconds.
            ToolError: the work's error.
        """
        ended = self._ended()
        timer = None
        if timeout is not None:
            timer = threading.Timer(timeout, _set_ended, (ended,))
            timer.daemon = True
            timer.start()
        try:
            self._waiter().wait(ended)
        except KeyboardInterrupt as error:
            raise self._stopped_waiting(error) from None
        finally:
            if timer is not None:
                timer.cancel()
        if not self._future.done():
            name = self._job.name
            raise TimeoutError(f"the {name} has not finished after {timeout:g} s; it continues in the background")
        return self._outcome()

    def __await__(self) -> Generator[Any, None, T]:
        return self._await().__await__()

    async def _await(self) -> T:
        try:
            await self._waiter().wait_async(self._ended())
        except KeyboardInterrupt as error:
            raise self._stopped_waiting(error) from None
        return self._outcome()

    def _ended(self) -> concurrent.futures.Future[None]:
        """A future for the cell to wait for: an interrupt must not cancel the work's own."""
        ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._was_awaited = not self._future.done()
        self._future.add_done_callback(lambda _: _set_ended(ended))
        return ended

    def _waiter(self) -> Waiter:
        return self._runner.waiter(lambda reason: None, grace=0)

    def _stopped_waiting(self, error: KeyboardInterrupt) -> BaseException:
        attended = self._runner.cards.is_attended()
        if attended and not self._future.done():
            sys.stdout.write(f"No longer waiting. The {self._job.name} continues in the background.\n")
        return for_cell(error, whole=not attended, base=self._job.base)

    def _outcome(self) -> T:
        cards = self._runner.cards
        cards.settle(self._job.card)
        error = self._future.exception()
        if error is not None:
            raise for_cell(error, whole=cards.needs_whole_error(self._job.card), base=self._job.base) from None
        is_printed = self._runner.link.kernel is None and self._was_awaited
        is_shown = is_printed or self._current_cell() == self._cell
        return self._job.value(self._future.result(), is_shown=is_shown)

    def _current_cell(self) -> int:
        return int(self._runner.link.shell.execution_count)

    def __repr__(self) -> str:
        return f"<{self._job.name} {self._job.status}: .result(), .cancel(), or await it>"


def _set_ended(ended: concurrent.futures.Future[None]) -> None:
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        ended.set_result(None)


def _cancel(future: concurrent.futures.Future[Any]) -> None:
    future.cancel()
