"""An event loop in a thread of its own, for connections that outlive the loop of any one call.

A notebook's calls run on the engine's loop, a script's on its own, and `Workspace.call_sync` on a new one each time; a
server started by one call has to be there for the next.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """The thread and its loop, started at the first `run`. After a fork the child gets its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._owner = 0

    @property
    def running(self) -> bool:
        """True if the loop runs in this process."""
        return self._thread is not None and self._thread.is_alive() and self._owner == os.getpid()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it here; a cancel here cancels it there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._started()))

    def stop(self) -> None:
        """End the loop and its thread; what still runs there is cancelled."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or not self.running:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(1)
        self._loop = self._thread = None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self.running:
                self._loop = asyncio.new_event_loop()
                self._owner = os.getpid()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=0.5))
    finally:
        loop.close()
