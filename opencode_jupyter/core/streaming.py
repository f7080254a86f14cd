"""Tools that give their output piece by piece: generators, plain and async, and iterators that a function returns.

Each text that comes is added to what the running part shows; memory stays bounded, since long output goes to a spill
file. A `ToolResult` (or a dict of one) that is yielded or returned adds title, metadata and attachments; another
value that is returned is shown below it.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio

from .context import ToolContext
from .errors import InvalidResultError
from .result import PRINTED, RESULT_KEYS, ToolResult, attachments_of
from .threads import call_soon
from .truncation import encode

SHOWN = 30_000
"""Characters of the end that are shown while the tool runs."""
INTERVAL = 0.05
"""Seconds between two updates of what is shown."""
YIELD_SECONDS = 0.02
"""Seconds an async generator may keep its event loop to itself: one that never waits could not be stopped."""
CLOSE_SECONDS = 3.0
"""Seconds an async generator has to clean up when its call is stopped."""


def executor(fn: Callable[..., Any], bind: Callable[..., tuple[list[Any], dict[str, Any]]]) -> Callable[..., Any]:
    """An ``execute(arguments, ctx)``: async if `fn` is, sync (and so run in a thread) if not; streams are joined.

    Args:
        fn: a sync or async function or generator.
        bind: makes its positional and named arguments of the tool's arguments and the context.
    """
    if inspect.isasyncgenfunction(fn):

        @functools.wraps(fn)
        async def stream(arguments: Any, ctx: ToolContext) -> Any:
            args, keywords = bind(arguments, ctx)
            return await join_async(fn(*args, **keywords), ctx)

        return stream

    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def run(arguments: Any, ctx: ToolContext) -> Any:
            args, keywords = bind(arguments, ctx)
            outcome = await fn(*args, **keywords)
            if isinstance(outcome, str):  # the most common, and asking for an abstract class takes its time
                return outcome
            return await join_async(outcome, ctx) if isinstance(outcome, AsyncIterator) else outcome

        return run

    @functools.wraps(fn)
    def call(arguments: Any, ctx: ToolContext) -> Any:
        args, keywords = bind(arguments, ctx)
        outcome = fn(*args, **keywords)
        if isinstance(outcome, AsyncIterator):
            return join_async(outcome, ctx)  # awaited by whoever runs the tool
        return join(outcome, ctx) if isinstance(outcome, Iterator) else outcome

    return call


def join(pieces: Iterator[Any], ctx: ToolContext) -> ToolResult:
    """Take the pieces of a plain iterator, in the thread that runs the tool.

    Raises:
        ToolAbortedError: the call was stopped; looked for before and after every piece.
        InvalidResultError: a piece is neither text nor a result.
    """
    stream = Stream(ctx)
    try:
        while True:
            ctx.abort.raise_if_aborted()
            try:
                piece = next(pieces)
            except StopIteration as end:
                if end.value is not None:
                    stream.take(end.value, "returned")
                break
            ctx.abort.raise_if_aborted()  # what comes after the stop is not shown
            stream.take(piece, "yielded")
        return stream.result()
    except BaseException:
        stream.abandon()
        raise
    finally:
        close = getattr(pieces, "close", None)
        if close is not None and inspect.isgenerator(pieces):
            close()


async def join_async(pieces: AsyncIterator[Any], ctx: ToolContext) -> ToolResult:
    """Take the pieces of an async iterator.

    Raises:
        InvalidResultError: a piece is neither text nor a result.
    """
    stream = Stream(ctx)
    try:
        rested = time.monotonic()
        async for piece in pieces:
            stream.take(piece, "yielded")
            if time.monotonic() - rested > YIELD_SECONDS:
                await asyncio.sleep(0)
                rested = time.monotonic()
        return stream.result()
    except BaseException:
        stream.abandon()
        raise
    finally:
        if inspect.isasyncgen(pieces):
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await pieces.aclose()


class Stream:
    """The output of one call as it grows. `take` may be called on any thread, one piece after another.

    What the tool itself reports through ``ctx.metadata`` is kept and shown with the text.
    """

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        from .spill import Spill  # here: few tools stream

        self._spill = Spill(ctx.workspace.truncation)
        self._lock = threading.Lock()
        self._loop = ctx._loop
        self._send = None if ctx._call is None else ctx._call.report
        self._title: str | None = None
        self._reported: dict[str, Any] = {}
        self._result: ToolResult | dict[str, Any] | None = None
        self._waiting = False
        self._next = 0.0
        if self._send is not None:
            ctx._report = self._report

    def take(self, piece: Any, how: str) -> None:
        """Add a piece of text, or set the rest of the result.

        Args:
            piece: text, a `ToolResult`, or a dict with some of OpenCode's keys; returned, any value that can be shown.
            how: ``yielded`` or ``returned``, for the error.

        Raises:
            InvalidResultError: it is something else.
        """
        if isinstance(piece, str):
            self._add(piece)
        elif isinstance(piece, ToolResult) or (isinstance(piece, dict) and piece.keys() <= RESULT_KEYS):
            self._result = piece
        elif how == "returned":
            self._result = ToolResult(value=piece)
        else:
            raise InvalidResultError(
                f"The tool yielded {_describe_piece(piece)}. A generator must yield text, and may yield one "
                f"ToolResult or dict ({', '.join(sorted(RESULT_KEYS))}) at its end."
            )

    def result(self) -> ToolResult:
        """The streamed text with what the tool adds to it; a result with its own output replaces the text."""
        result = self._result
        if isinstance(result, ToolResult) and result.value is not None and not result.output:
            return self._append_value(result)
        if result is None:
            result = ToolResult()
        elif isinstance(result, dict):
            result = ToolResult(
                str(result.get("title") or ""),
                result.get("output") or "",
                dict(result.get("metadata") or {}),
                attachments_of(result.get("attachments")),
            )
        with self._lock:
            if result.output:
                self._spill.discard()
                return result
            spilled = self._spill.finish(self._ctx.workspace.agents.get(self._ctx.agent))
        result.output = spilled.text
        result.metadata = {**result.metadata, **spilled.metadata()}
        return result

    def _append_value(self, result: ToolResult) -> ToolResult:
        """The streamed text, and below it the value that the tool returned."""
        from .result_values import result_of  # here: few streams end so

        shown = result_of("streaming", result.value)
        with self._lock:
            printed = self._spill.live(SHOWN)
            between = "\n" if printed and not printed.endswith("\n") else ""
            self._spill.feed(encode(between + shown.output))
            spilled = self._spill.finish(self._ctx.workspace.agents.get(self._ctx.agent))
        result.output = spilled.text
        result.metadata = {**shown.metadata, **result.metadata, **spilled.metadata()}
        if spilled.truncated:
            result.metadata.pop(PRINTED, None)
        elif PRINTED in result.metadata:
            result.metadata[PRINTED] = printed
        result.attachments = [*result.attachments, *shown.attachments]
        return result

    def abandon(self) -> None:
        """The call ends early: what came so far stays on its part."""
        with self._lock:
            shown = self._spill.live(SHOWN)
            self._spill.close()
        if self._send is not None and shown:
            self._ctx.metadata(self._title, self._reported)

    def _add(self, text: str) -> None:
        if not text:
            return
        with self._lock:
            self._spill.feed(encode(text))
            if self._waiting or self._loop is None or self._send is None:
                return
            self._waiting = True
        call_soon(self._loop, self._schedule)

    def _schedule(self) -> None:
        loop = self._loop
        if loop is not None:
            loop.call_at(max(self._next, loop.time()), self._show)

    def _show(self) -> None:
        if self._loop is not None:
            self._next = self._loop.time() + INTERVAL
        self._report(self._title, self._reported)

    def _report(self, title: str | None, metadata: dict[str, Any] | None) -> None:
        """Stands in for the part's own way of taking reports, on the call's loop."""
        self._title, self._reported = title, metadata or {}
        with self._lock:
            self._waiting = False
            shown = self._spill.live(SHOWN)
            path = self._spill.path
        if self._send is not None:
            saved = {} if path is None else {"outputPath": path}
            self._send(title, {"output": shown, **saved, **self._reported})


def _describe_piece(piece: Any) -> str:
    if isinstance(piece, dict):
        unknown = ", ".join(sorted(str(key) for key in piece.keys() - RESULT_KEYS))
        return f"a dict with the key {unknown}"
    return f"a value of type {type(piece).__name__}"
