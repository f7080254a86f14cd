"""The event bus (names and payloads: docs/opencode/core.md 22).

Free without subscribers: publishers check `Bus.has_subscribers` before they build a payload.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from .option_checks import check_callable, check_dotted_name

log = logging.getLogger(__name__)

EVENTS = tuple(
    """
    permission.asked permission.replied question.asked question.replied question.rejected todo.updated
    message.updated message.removed message.part.updated message.part.delta message.part.removed
    session.created session.updated session.deleted session.status session.idle session.compacted
    session.error file.edited file.watcher.updated tools.changed mcp.tools.changed mcp.status.changed
    server.instance.disposed
    """.split()
)
"""Events that this package publishes."""

Subscriber = Callable[[dict[str, Any]], Any]


class Bus:
    """Events of one workspace. ``*`` subscribes to all of them.

    A subscriber is called with ``{"type": ..., "properties": {...}}``; it may be a plain or an async
    function. What it raises is logged and reaches neither the publisher nor the other subscribers.
    """

    def __init__(self) -> None:
        self._subscribers: dict[str, list[Subscriber]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()

    def subscribe(self, event: str, fn: Subscriber) -> Callable[[], None]:
        """Call `fn` for every `event` from now on; the returned function ends that.

        Args:
            event: one of `EVENTS`, ``*`` for all, or a plugin's, in a namespace of its own (``house.opened``).
            fn: sync or async; called with the event.

        Raises:
            InvalidArgumentsError: there is no such event.
        """
        if event != "*":
            check_dotted_name(event, EVENTS, "event")
        check_callable(fn, "fn")
        subscribers = self._subscribers.setdefault(event, [])
        subscribers.append(fn)

        def unsubscribe() -> None:
            if fn in subscribers:
                subscribers.remove(fn)

        return unsubscribe

    def has_subscribers(self, event: str) -> bool:
        """Return whether `event` has subscribers."""
        return bool(self._subscribers) and bool(self._subscribers.get(event) or self._subscribers.get("*"))

    def publish(self, event: str, properties: dict[str, Any]) -> None:
        """Call the subscribers; async ones run as tasks of their own."""
        for awaitable in self._call(event, properties):
            task = asyncio.ensure_future(self._guard(awaitable))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def publish_and_wait(self, event: str, properties: dict[str, Any]) -> None:
        """Call the subscribers and wait for each (formatters after ``file.edited``)."""
        for awaitable in self._call(event, properties):
            await self._guard(awaitable)

    def _call(self, event: str, properties: dict[str, Any]) -> list[Awaitable[Any]]:
        if not self.has_subscribers(event):
            return []
        payload = {"type": event, "properties": properties}
        waiting: list[Awaitable[Any]] = []
        for fn in [*self._subscribers.get(event, ()), *self._subscribers.get("*", ())]:
            try:
                outcome = fn(payload)
            except Exception:
                log.exception("a subscriber of %s failed", event)
                continue
            if inspect.isawaitable(outcome):
                waiting.append(outcome)
        return waiting

    @staticmethod
    async def _guard(awaitable: Awaitable[Any]) -> None:
        try:
            await awaitable
        except Exception:
            log.exception("a subscriber failed")
