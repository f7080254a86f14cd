"""``event`` hooks: told of every event of the bus, and never waited for."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from .threads import is_async

log = logging.getLogger(__name__)

LAST = "server.instance.disposed"
"""After this event there is none."""
BEHIND = 10_000
"""Events that wait for a slow sync listener; further ones are lost, and the log says so."""


class Listener:
    """One ``event`` hook, to be subscribed to ``*``.

    An async hook runs on the loop that publishes, else on `loop`; a sync one on a thread of its own, event by event in
    their order. What it raises is logged.

    Args:
        fn: called with ``{"event": {"type", "properties"}}``.
        plugin: whose it is, for the log.
        loop: where async hooks run for events that are published on no loop.
    """

    def __init__(self, fn: Callable[..., Any], plugin: str, loop: asyncio.AbstractEventLoop) -> None:
        self._fn = fn
        self._plugin = plugin
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_async = is_async(fn)
        self._waiting: queue.Queue[dict[str, Any] | None] = queue.Queue(BEHIND)
        self._thread: threading.Thread | None = None

    def __call__(self, event: dict[str, Any]) -> None:
        """Take an event. It never raises and never blocks."""
        if self._is_async:
            self._start(event)
            return
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            log.warning("the event hook of the plugin %s is too slow: %s is lost", self._plugin, event["type"])
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"plugin {self._plugin}", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Stop when the events that wait are done."""
        if self._thread is not None:
            try:
                self._waiting.put_nowait(None)
            except queue.Full:
                log.debug("the event hook of the plugin %s did not keep up", self._plugin)

    def _start(self, event: dict[str, Any]) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            if self._loop.is_running():
                self._loop.call_soon_threadsafe(self._start, event)
            return
        task = loop.create_task(self._told(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self, event: dict[str, Any]) -> None:
        try:
            await self._fn({"event": event})
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            self._failed(event, error)

    def _work(self) -> None:
        while True:
            event = self._waiting.get()
            if event is None:
                return
            try:
                self._fn({"event": event})
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                self._failed(event, error)
            if event["type"] == LAST:
                return

    def _failed(self, event: dict[str, Any], error: BaseException) -> None:
        log.error("the event hook of the plugin %s failed at %s", self._plugin, event["type"], exc_info=error)
