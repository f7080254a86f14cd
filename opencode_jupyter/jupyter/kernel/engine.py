"""The engine: one thread with one event loop, in which a notebook's workspace lives.

Cells only wait for it (`waiting`). So one code path serves awaited cells, plain functions, terminals and background
calls, and an interrupt hits the waiter, never the engine. A user's own async tool runs on a second loop, because
code that blocks there (``time.sleep`` in an ``async def``) would otherwise block every other call and the Stop button.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio

from ...core.context import ToolContext
from ...core.errors import ToolAbortedError, ToolError
from ...core.result import ToolResult
from ...core.threads import LoopThread, call_soon, wait_interruptibly
from ...core.tool import Bound, Tool

log = logging.getLogger(__name__)
T = TypeVar("T")

STUCK_AFTER = 0.3
"""Seconds a cancelled tool may take to end before its loop is replaced."""


async def awaited(fn: Callable[..., Any], *args: Any) -> Any:
    """The result of a function, plain or async."""
    outcome = fn(*args)
    return await outcome if inspect.isawaitable(outcome) else outcome


class Engine:
    """The notebook's loops.

    Attributes:
        loop: the loop that the workspace lives on.
        on_main: runs a function on the notebook's main thread and returns a future; set by the notebook.
    """

    def __init__(self, on_main: Callable[[str, Callable[[], Any]], concurrent.futures.Future[Any]]) -> None:
        self._main = LoopThread("opencode-engine")
        self.loop = self._main.loop
        self._tools: LoopThread | None = None
        self.on_main = on_main

    @property
    def alive(self) -> bool:
        """Whether the engine can take calls."""
        return self._main.is_alive

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the engine's loop."""
        return self._main.submit(work)

    def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Run `fn` (plain or async) on the engine's loop and wait for its result."""
        return wait_interruptibly(self.submit(awaited(fn, *args)))

    async def execute(self, tool: Tool, bound: Bound, arguments: Any, ctx: ToolContext) -> ToolResult:
        """Run a tool where it belongs: built-in ones here, a user's async ones on their own loop, others on threads."""
        if tool.runs_in == "kernel":
            return await self._on_kernel_thread(tool, bound, arguments, ctx)
        if tool.builtin or tool.external or not bound.is_async:
            return await bound.execute(arguments, ctx)
        if self._tools is None or not self._tools.is_alive:
            self._tools = LoopThread("opencode-tools")
        home = self._tools
        future = home.submit(bound.execute(arguments, ctx))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                raise ToolError(f"The {tool.id} tool cancelled itself (CancelledError)") from None
            with anyio.CancelScope(shield=True):
                await self._let_end(home, future)
            raise

    async def _let_end(self, home: LoopThread, future: concurrent.futures.Future[Any]) -> None:
        """Give a cancelled tool a moment to clean up; give up its loop if it does not answer."""
        answered = asyncio.Event()
        engine = asyncio.get_running_loop()
        call_soon(home.loop, call_soon, engine, answered.set)
        try:
            await asyncio.wait_for(answered.wait(), STUCK_AFTER)
        except TimeoutError:
            log.warning("a tool blocks its event loop; later calls get a new one")
            if self._tools is home:
                self._tools = None

    async def _on_kernel_thread(self, tool: Tool, bound: Bound, arguments: Any, ctx: ToolContext) -> ToolResult:
        from ...core.tool import as_result

        run = bound.definition.execute
        if bound.is_async:
            raise TypeError(f"The {tool.id} tool is async; only a plain function can run in the kernel's main thread")
        try:
            work = self.on_main(ctx.call_id, lambda: as_result(tool.id, run(arguments, ctx)))
            result: ToolResult = await asyncio.wrap_future(work)
        except KeyboardInterrupt:
            raise ToolAbortedError(reason="interrupted") from None  # the waiting cell has it too
        except SystemExit as error:
            raise ToolError(f"The {tool.id} tool tried to end the process (SystemExit: {error.code})") from error
        return result

    def close(self) -> None:
        """End both loops; work in progress is abandoned."""
        self._main.close(cancel=False)
        if self._tools is not None:
            self._tools.close(cancel=False)
