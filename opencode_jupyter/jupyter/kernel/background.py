"""What goes on in the background when its cell is over: ``handle.result()``, ``handle.cancel()``, ``await handle``."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..cards.labels import project_folder
from ..error_display import for_cell
from .waiting import Waiter

if TYPE_CHECKING:
    from ...core.call import Call
    from ...core.result import ToolResult
    from ..cards.call_card import Card
    from ..cards.live import LiveDisplay
    from ..notebook import Notebook

T = TypeVar("T")


class Handle(Generic[T]):
    """Work in the background.

    Args:
        notebook: whose it is.
        future: the work.
        card: what shows it.
        abort: ends the work.
    """

    def __init__(
        self,
        notebook: Notebook,
        future: concurrent.futures.Future[T],
        card: LiveDisplay,
        abort: Callable[[str], None],
    ) -> None:
        self._notebook = notebook
        self._future = future
        self._card = card
        self._abort = abort
        self._waited = False
        """Whether it ended while a cell waited for it."""

    @property
    def _name(self) -> str:
        """What it is called in messages."""
        return "work"

    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def cancel(self) -> None:
        """Stop it and every process it started."""
        self._abort("stopped")

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. Answers to asks get through meanwhile; an interrupt stops the waiting, not the work.

        Raises:
            TimeoutError: it is not there after `timeout` seconds.
            ToolError: the work's error.
        """
        ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._waited = not self._future.done()

        def finish(_: Any = None) -> None:
            with contextlib.suppress(concurrent.futures.InvalidStateError):
                ended.set_result(None)

        self._future.add_done_callback(finish)
        clock = threading.Timer(timeout, finish) if timeout is not None else None
        if clock is not None:
            clock.daemon = True
            clock.start()
        try:
            self._waiter().wait(ended)
        except KeyboardInterrupt as error:
            raise self._stopped_waiting(error) from None
        finally:
            if clock is not None:
                clock.cancel()
        if not self._future.done():
            raise TimeoutError(f"the {self._name} has not finished after {timeout:g} s; it continues in the background")
        return self._outcome()

    def __await__(self) -> Generator[Any, None, T]:
        return self._awaited().__await__()

    async def _awaited(self) -> T:
        ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._waited = not self._future.done()
        self._future.add_done_callback(lambda _: ended.set_result(None))
        try:
            await self._waiter().wait_async(ended)
        except KeyboardInterrupt as error:
            raise self._stopped_waiting(error) from None
        return self._outcome()

    def _waiter(self) -> Waiter:
        return Waiter(lambda reason: None, self._notebook.beat, grace=0)

    def _stopped_waiting(self, error: KeyboardInterrupt) -> BaseException:
        attended = self._notebook.is_attended()
        if attended and not self._future.done():
            sys.stdout.write(f"No longer waiting. The {self._name} continues in the background.\n")
        return for_cell(error, whole=not attended, base=project_folder(self._notebook.workspace))

    def _outcome(self) -> T:
        self._notebook.settle(self._card)
        error = self._future.exception()
        if error is not None:
            whole = self._notebook.needs_whole_error(self._card)
            raise for_cell(error, whole=whole, base=project_folder(self._notebook.workspace)) from None
        return self._future.result()


class CallHandle(Handle["ToolResult"]):
    """A call in the background."""

    def __init__(
        self, notebook: Notebook, future: concurrent.futures.Future[ToolResult], call: Call, card: Card
    ) -> None:
        super().__init__(notebook, future, card, call.abort)
        self._call = call
        self._call_card = card
        self._cell = notebook.shell.execution_count
        """The cell whose card it is."""

    @property
    def _name(self) -> str:
        return f"{self._call.part.tool} call"

    def _outcome(self) -> ToolResult:
        """The result, which displays nothing where this cell shows the card: its own, or in a terminal right now."""
        printed = self._notebook.kernel is None and self._waited
        result = super()._outcome()
        shown = printed or self._notebook.shell.execution_count == self._cell
        return self._notebook.cell_result(result, self._call_card, shown=shown)

    def __repr__(self) -> str:
        part = self._call.part
        return f"<{part.tool} call {part.outcome or part.state.status}: .result(), .cancel(), or await it>"
