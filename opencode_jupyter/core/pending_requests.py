"""Requests that wait for a person: what permission requests and questions have in common.

A request waits on the loop of its call. An answer may come on any thread; it is published, and the call continues, on
that loop.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from .errors import ToolError
from .threads import as_coroutine, call_on_loop

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
        request: the request.
        future: its outcome, and the error that the call ends with, if any.
        since: its start by the monotonic clock.
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

    async def wait(
        self,
        announce: Callable[[], None],
        responder: Callable[[R], Any] | None,
        submit: Callable[[Any], object],
        stopped: Callable[[], ToolError],
        withdraw: Callable[[BaseException], None],
    ) -> tuple[T, ToolError | None]:
        """Wait for the answer.

        Args:
            announce: publishes that the request is pending.
            responder: called for an answer too; may be async, and a reply from elsewhere may come first.
            submit: receives the answer of `responder`.
            stopped: makes the error if `responder` is cancelled.
            withdraw: called if nobody waits any more: this task is cancelled, or `responder` failed.
        """
        response: asyncio.Future[Any] | None = None
        try:
            announce()
            if responder is not None and not self.future.done():
                response = self._respond(responder, submit, stopped)
            return await self.future
        except BaseException as error:
            withdraw(error)
            raise
        finally:
            if response is not None:
                response.cancel()

    def _respond(
        self, responder: Callable[[R], Any], submit: Callable[[Any], object], stopped: Callable[[], ToolError]
    ) -> asyncio.Future[Any] | None:
        answer = responder(self.request)
        if not inspect.isawaitable(answer):
            submit(answer)
            return None
        task = asyncio.ensure_future(as_coroutine(answer))

        def on_done(task: asyncio.Future[Any]) -> None:
            if self.future.done():
                if not task.cancelled():
                    task.exception()  # retrieved: too late to matter
                return
            try:
                submit(task.result())
            except asyncio.CancelledError:
                self.future.set_exception(stopped())
            except Exception as error:
                self.future.set_exception(error)

        task.add_done_callback(on_done)
        return task

    def run_on_waiting_loop(self, finish: Callable[[], None]) -> bool:
        """Run `finish` on the loop that waits; False if that loop is closed, so that nobody waits there."""
        return call_on_loop(self.loop, finish)

    def end(self, outcome: T, error: ToolError | None) -> None:
        """Let the call continue; the first end counts. On the loop that waits."""
        if not self.future.done():
            self.future.set_result((outcome, error))


class PendingRequests(Generic[R, T]):
    """The requests that wait for an answer. Any thread may call any method."""

    def __init__(self) -> None:
        self.entries: dict[str, PendingRequest[R, T]] = {}
        self.lock = threading.RLock()  # re-entrant: an interrupt handler may answer while this thread holds it
        self.closed: str | None = None
        """The reason why no request can be made any more."""

    def requests(self) -> list[R]:
        """The requests, oldest first."""
        with self.lock:
            return [entry.request for entry in self.entries.values()]

    def add(self, request: R, make_error: Callable[[str], ToolError]) -> PendingRequest[R, T]:
        """Add a request; where none can be made any more, `make_error` makes the error of the reason."""
        entry = PendingRequest[R, T](request)
        with self.lock:
            if self.closed is not None:
                raise make_error(self.closed)
            if request.id in self.entries:
                raise ValueError(f"a request {request.id} is pending already")
            self.entries[request.id] = entry
        return entry

    def take(self, request_id: str) -> PendingRequest[R, T] | None:
        """Take a request out, to end it; None if it is not pending (any more)."""
        with self.lock:
            return self.entries.pop(request_id, None)

    def take_where(self, condition: Callable[[R], bool]) -> list[PendingRequest[R, T]]:
        """Take out all requests that fulfil a condition."""
        with self.lock:
            ids = [request.id for request in self.requests() if condition(request)]
            return [self.entries.pop(request_id) for request_id in ids]
