"""Waiting for a person's answer: what permission requests and questions have in common.

A request waits on the loop of the call that asked. An answer may come on any thread; it is published, and the call
goes on, on that loop.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from .errors import ToolError
from .threads import call_on_loop

UNANSWERABLE = (
    "A %s (%s) waits for an answer, and nobody is subscribed who could give it: "
    "the call continues when %s.reply(%r, ...) is called"
)
"""Log message for a request in a workspace with no approver and no subscriber."""


class Identified(Protocol):
    """A request with an id."""

    id: str


R = TypeVar("R", bound=Identified)
T = TypeVar("T")


def no_mask(value: Any) -> Any:
    """The value; in place of what masks secrets, where there is no workspace."""
    return value


class PendingRequest(Generic[R, T]):
    """A pending request and the task that waits for its answer. Made on the loop that waits.

    Attributes:
        request: what is asked.
        future: how it ends: the outcome, and the error that the call ends with, if any.
        since: when it began, by the monotonic clock.
    """

    __slots__ = ("future", "loop", "request", "since")

    def __init__(self, request: R) -> None:
        self.request = request
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[tuple[T, ToolError | None]] = self.loop.create_future()
        self.since = time.monotonic()

    @property
    def waited(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self.since

    async def outcome(
        self,
        announce: Callable[[], None],
        consult: Callable[[R], Any] | None,
        take: Callable[[Any], object],
        stopped: Callable[[], ToolError],
        withdraw: Callable[[BaseException], None],
    ) -> tuple[T, ToolError | None]:
        """Wait for the answer.

        Args:
            announce: tells that the request waits.
            consult: asked for the answer too; may be async, and a reply from elsewhere may outrun it.
            take: takes what `consult` gave.
            stopped: the error if `consult` is cancelled.
            withdraw: called if nobody waits any more: this task is cancelled, or `consult` failed.
        """
        consulting: asyncio.Future[Any] | None = None
        try:
            announce()
            if consult is not None and not self.future.done():
                consulting = self._consult(consult, take, stopped)
            return await self.future
        except BaseException as error:
            withdraw(error)
            raise
        finally:
            if consulting is not None:
                consulting.cancel()

    def _consult(
        self, consult: Callable[[R], Any], take: Callable[[Any], object], stopped: Callable[[], ToolError]
    ) -> asyncio.Future[Any] | None:
        answer = consult(self.request)
        if not inspect.isawaitable(answer):
            take(answer)
            return None
        task = asyncio.ensure_future(_awaited(answer))

        def done(task: asyncio.Future[Any]) -> None:
            if self.future.done():
                if not task.cancelled():
                    task.exception()  # seen: too late to matter
                return
            try:
                take(task.result())
            except asyncio.CancelledError:
                self.future.set_exception(stopped())
            except Exception as error:
                self.future.set_exception(error)

        task.add_done_callback(done)
        return task

    def run_on_waiting_loop(self, finish: Callable[[], None]) -> bool:
        """Run `finish` on the loop that waits; False if that loop is closed, so that nobody waits there."""
        return call_on_loop(self.loop, finish)

    def end(self, outcome: T, error: ToolError | None) -> None:
        """Let the call go on; the first end counts. On the loop that waits."""
        if not self.future.done():
            self.future.set_result((outcome, error))


class PendingRequests(Generic[R, T]):
    """The requests that wait for an answer. Any thread may call any method."""

    def __init__(self) -> None:
        self.entries: dict[str, PendingRequest[R, T]] = {}
        self.lock = threading.RLock()  # re-entrant: an interrupt handler may answer while this thread holds it
        self.closed: str | None = None
        """Why no request can be made any more."""

    def requests(self) -> list[R]:
        """The requests, oldest first."""
        with self.lock:
            return [entry.request for entry in self.entries.values()]

    def add(self, request: R, refuse: Callable[[str], ToolError]) -> PendingRequest[R, T]:
        """Have a request wait; where none can be made any more, `refuse` makes the error of the reason."""
        entry = PendingRequest[R, T](request)
        with self.lock:
            if self.closed is not None:
                raise refuse(self.closed)
            if request.id in self.entries:
                raise ValueError(f"a request {request.id} is waiting already")
            self.entries[request.id] = entry
        return entry

    def take(self, request_id: str) -> PendingRequest[R, T] | None:
        """Take a request out, to end it; None if it does not wait (any more)."""
        with self.lock:
            return self.entries.pop(request_id, None)

    def take_where(self, chosen: Callable[[R], bool]) -> list[PendingRequest[R, T]]:
        """Take out all requests that are chosen."""
        with self.lock:
            ids = [request.id for request in self.requests() if chosen(request)]
            return [self.entries.pop(request_id) for request_id in ids]


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer
