"""What goes on in the background when its cell is over: ``handle.result()``, ``handle.cancel()``, ``await handle``."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .waiting import Waiter

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.result import ToolResult
    from .card import Card
    from .live import LiveDisplay
    from .notebook import Notebook

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

    @property
    def _name(self) -> str:
        """What it is, in words."""
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
        finally:
            if clock is not None:
                clock.cancel()
        if not self._future.done():
            raise TimeoutError(f"the {self._name} has not finished after {timeout:g} s; it continues")
        return self._outcome()

    def __await__(self) -> Generator[Any, None, T]:
        return self._awaited().__await__()

    async def _awaited(self) -> T:
        ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._future.add_done_callback(lambda _: ended.set_result(None))
        await self._waiter().wait_async(ended)
        return self._outcome()

    def _waiter(self) -> Waiter:
        return Waiter(lambda reason: None, self._notebook.beat, grace=0)

    def _outcome(self) -> T:
        self._notebook.settle(self._card)
        error = self._future.exception()
        if error is not None:
            raise self._notebook.for_cell(error) from None
        return self._future.result()


class CallHandle(Handle["ToolResult"]):
    """A call in the background."""

    def __init__(
        self, notebook: Notebook, future: concurrent.futures.Future[ToolResult], call: Call, card: Card
    ) -> None:
        super().__init__(notebook, future, card, call.abort)
        self._call = call

    @property
    def _name(self) -> str:
        return f"{self._call.part.tool} call"

    def __repr__(self) -> str:
        part = self._call.part
        return f"<{part.tool} call {part.outcome or part.state.status}: .result(), .cancel(), or await it>"
