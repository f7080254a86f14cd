"""One run of code in the user's namespace, on the kernel's main thread.

As a cell: magics, a last expression whose value shows, ``await`` at the top. Unlike a cell it leaves ``_``, ``In``
and ``Out`` alone. Where the main thread's event loop can go on meanwhile (the calling cell awaits, or the kernel is
idle), code that awaits is a task of that loop, so that it can use what the user's cells made there. Where a cell
blocks for the call (``%tool`` in a plain function, a terminal) it gets a loop of its own, which ends with the run.
"""

from __future__ import annotations
import __future__

import ast
import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import itertools
import linecache
import operator
import sys
import threading
import time
import types
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from types import CodeType
from typing import Any, Literal

from ...core.errors import ToolError
from ...core.threads import call_soon
from ...text.encoding import printable
from ..kernel.waiting import blocking, running_loop
from .capture import Capture, current
from .interrupts import Interrupts, child_processes
from .traceback_text import TracebackText, traceback_of, unreadable

_FUTURES = functools.reduce(operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))
_numbers = itertools.count(1)
_names: list[str] = []
KEPT = 1000
"""Runs whose source Python can still show (in tracebacks, by ``f??``)."""

Kind = Literal["completed", "error", "exit", "stopped", "interrupted"]


@dataclass(slots=True)
class CodeOutcome:
    """How a run ended.

    Attributes:
        kind: ``completed``; ``error`` (an exception); ``exit`` (SystemExit); ``stopped`` (asked to end);
            ``interrupted`` (by a person).
        error: the exception, without its frames.
        traceback: its traceback.
    """

    kind: Kind
    error: BaseException | None = None
    traceback: TracebackText | None = None


class CodeError(ToolError):
    """Code that the python tool ran ended with an exception. Its text is what was printed, and the traceback.

    Attributes:
        exception: what the code raised, without its frames.
    """

    def __init__(self, message: str, exception: BaseException | None = None) -> None:
        super().__init__(printable(message))
        self.exception = exception

    @property
    def headline(self) -> str:
        """The line of the message that names the exception; "" if the code raised none, or it is not in the message."""
        lines = () if self.exception is None else str(self).splitlines()
        kind = type(self.exception).__name__
        return next((line for line in reversed(lines) if line.partition(":")[0] == kind), "")


class CodeRun:
    """One run. Hand `begin` to the main thread, wait for `finished`.

    Args:
        shell: IPython's shell.
        code: the source, as in a cell.
        capture: captures its output.
        pulse: see `Interrupts`.
    """

    def __init__(self, shell: Any, code: str, capture: Capture, pulse: Callable[[], None] | None = None) -> None:
        self._shell = shell
        self._code = code
        self._capture = capture
        self._interrupts = Interrupts(self._is_task_running, pulse)
        self._task: asyncio.Task[None] | None = None
        self.finished: concurrent.futures.Future[CodeOutcome] = concurrent.futures.Future()
        self.began: float | None = None
        """When the main thread began with it (`time.monotonic`)."""
        self.other_children: frozenset[int] = frozenset()
        """The child processes that were there then."""
        self.value: Any = None
        """The value of the expression at the end."""

    # ------------------------------------------------------------------ from any thread

    def stop(self) -> None:
        """End it. If it continues, call this again."""
        if self.finished.cancel():
            return  # it has not begun, and will not
        if self._task is not None:
            call_soon(self._task.get_loop(), self._task.cancel)
        self._interrupts.stop()

    @property
    def is_half_interrupted(self) -> bool:
        """Whether a person interrupted a task of the code, of which others may go on."""
        return self._interrupts.awaiting and self._interrupts.by_person

    def report_threads(self) -> None:
        """Report that the thread that would end it runs: it is let in from time to time while no report comes."""
        self._interrupts.other_threads_at = time.monotonic()

    def wake_main(self) -> None:
        """Wake the main thread for a pulse."""
        if self.began is not None and not self.finished.done():
            self._interrupts.wake_main()

    # ------------------------------------------------------------------ on the main thread

    def begin(self) -> None:
        """Run it; code that awaits may continue when this returns.

        Raises:
            KeyboardInterrupt: a person interrupted; the cell that waits should know.
        """
        if not self.finished.set_running_or_notify_cancel():
            return
        self.began, self.other_children = time.monotonic(), child_processes()
        try:
            flush_figures()  # those of the cell that calls are the cell's
            self._interrupts.install()
            self._capture.open()
            with self._capture.context(), self._capture.descriptors(), self._shell.builtin_trap:
                result = self._interrupts.guard(self._run)
                outcome = self._outcome(result.error) if self._task is None else None
        except BaseException as error:
            self._close()
            self.finished.set_exception(error)
            raise
        if outcome is not None:
            self._close()
            self.finished.set_result(outcome)
        elif self._task is not None:
            self._interrupts.awaiting = True
            if result.error is not None:
                self._task.cancel()
        if self._interrupts.by_person:
            raise KeyboardInterrupt

    def _close(self) -> None:
        self._capture.close()
        self._interrupts.uninstall()

    def _run(self) -> None:
        pieces = self._compile()
        awaits = any(inspect.CO_COROUTINE & piece.co_flags for piece, _ in pieces)
        loop = running_loop() if awaits else None
        if not awaits:
            for piece, shows in pieces:
                value = self._evaluate(piece)
                if shows:
                    self._show(value)
            flush_figures()
        elif loop is None or blocking():
            _run_on_own_loop(self._awaiting(pieces), loop)
        else:
            self._task = loop.create_task(self._run_task(pieces))
            self._task.add_done_callback(self._end_task)

    async def _awaiting(self, pieces: list[tuple[CodeType, bool]]) -> None:
        for piece, shows in pieces:
            value = self._evaluate(piece)
            if inspect.CO_COROUTINE & piece.co_flags:
                value = await value
            if shows:
                self._show(value)
        flush_figures()

    async def _run_task(self, pieces: list[tuple[CodeType, bool]]) -> None:
        """The task on the user's own loop. A `KeyboardInterrupt` or `SystemExit` that left it would end that loop."""
        error: BaseException | None = None
        try:
            await _in_steps(self._awaiting(pieces), self._capture.descriptors)
        except BaseException as raised:
            error = raised
        outcome = self._outcome(error)
        self._capture.close()
        self.finished.set_result(outcome)

    def _end_task(self, _: asyncio.Task[None]) -> None:
        if not self.finished.done():  # cancelled before its first step, or after the last one
            self._capture.close()
            self.finished.set_result(CodeOutcome("interrupted" if self._interrupts.by_person else "stopped"))
        self._interrupts.uninstall()

    def _is_task_running(self) -> bool:
        task = self._task
        if self._capture.closed or task is None:
            return False
        return current() is self._capture or asyncio.current_task(task.get_loop()) is task

    def _outcome(self, error: BaseException | None) -> CodeOutcome:
        interrupts = self._interrupts
        if error is None:
            return CodeOutcome("completed")
        discard_figures()
        if isinstance(error, SystemExit):
            return CodeOutcome("exit", error.with_traceback(None))
        ended: Kind | None = "interrupted" if interrupts.by_person else "stopped" if interrupts.stops else None
        if ended is not None and isinstance(error, (KeyboardInterrupt, asyncio.CancelledError)):
            return CodeOutcome(ended)
        traceback = interrupts.guard(lambda: traceback_of(self._shell, error))
        if traceback.error is None:
            return CodeOutcome("error", error.with_traceback(None), traceback.value)
        if interrupts.by_person or interrupts.stops:
            return CodeOutcome("interrupted" if interrupts.by_person else "stopped")
        return CodeOutcome("error", error.with_traceback(None), unreadable(error, traceback.error))

    # ------------------------------------------------------------------ as a cell

    def _compile(self) -> list[tuple[CodeType, bool]]:
        """The code in one or two pieces; the second is an expression at its end, and shows its value."""
        shell = self._shell
        source = shell.transform_cell(self._code)
        name = f"<python tool {next(_numbers)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        _names.append(name)
        if len(_names) > KEPT:
            linecache.cache.pop(_names.pop(0), None)
        flags = (shell.compile.flags & _FUTURES) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = compile(source, name, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        tree = shell.transform_ast(tree)
        last = tree.body[-1] if tree.body else None
        is_silent = shell.displayhook.semicolon_at_end_of_expression(source)
        shown = last if isinstance(last, ast.Expr) and not is_silent else None
        if shown is not None:
            tree.body.pop()
        pieces = [(compile(tree, name, "exec", flags, dont_inherit=True), False)] if tree.body else []
        if shown is not None:
            pieces.append((compile(ast.Expression(shown.value), name, "eval", flags, dont_inherit=True), True))
        return pieces

    def _evaluate(self, piece: CodeType) -> Any:
        return eval(piece, self._shell.user_global_ns, self._shell.user_ns)  # noqa: S307 - what the tool is for

    def _show(self, value: Any) -> None:
        self.value = value
        if value is not None:
            data, _ = self._shell.display_formatter.format(value)
            if data:
                self._capture.show(data)


@types.coroutine
def _in_steps(
    code: Coroutine[Any, Any, None], around: Callable[[], contextlib.AbstractContextManager[None]]
) -> Generator[Any, Any, None]:
    """Await `code`, each step of it inside `around`."""
    step: Callable[[], Any] = functools.partial(code.send, None)
    while True:
        try:
            with around():
                awaited = step()
            step = functools.partial(code.send, (yield awaited))
        except BaseException as error:
            if inspect.getcoroutinestate(code) != inspect.CORO_CLOSED:
                step = functools.partial(code.throw, error)
            elif isinstance(error, StopIteration):
                return
            else:
                raise


def _run_on_own_loop(code: Coroutine[Any, Any, None], outer: asyncio.AbstractEventLoop | None) -> None:
    """Run a coroutine on a new loop in this thread, whose own loop stands still meanwhile."""
    task = asyncio.current_task(outer) if outer is not None else None
    if outer is not None and task is not None:
        asyncio.tasks._leave_task(outer, task)
    asyncio._set_running_loop(None)
    try:
        loop = asyncio.new_event_loop()
        main = loop.create_task(code)
        try:
            loop.run_until_complete(main)
        finally:
            _end_loop(loop, main)
    finally:
        asyncio._set_running_loop(outer)
        if outer is not None and task is not None:
            asyncio.tasks._enter_task(outer, task)


def _end_loop(loop: asyncio.AbstractEventLoop, main: asyncio.Task[None]) -> None:
    """Cancel what is left on a loop, let it end, and close the loop."""
    tasks = {main, *asyncio.all_tasks(loop)}
    for task in tasks:
        task.cancel()
    try:
        for _ in tasks:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):  # of a task; it ends the loop's run
                loop.run_until_complete(asyncio.wait(tasks))
                break
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # seen: or asyncio tells of it, somewhere, when the task is collected
        loop.close()


def flush_figures() -> None:
    """Have matplotlib's inline figures displayed, as the end of a cell does."""
    inline = sys.modules.get("matplotlib_inline.backend_inline")
    if inline is not None and threading.current_thread() is threading.main_thread():
        matplotlib = sys.modules.get("matplotlib")
        backend = str(getattr(matplotlib, "rcParams", {}).get("backend", "")) if matplotlib is not None else ""
        if "inline" in backend:
            inline.flush_figures()


def discard_figures() -> None:
    """Drop matplotlib's inline figures of code that failed: its card has none, and the cell must not show them below.

    `flush_figures` showed those of the cell before the code began.
    """
    inline = sys.modules.get("matplotlib_inline.backend_inline")
    if inline is None or not getattr(inline.show, "_draw_called", False):
        return
    if inline.InlineBackend.instance().close_figures:
        sys.modules["matplotlib.pyplot"].close("all")
    inline.show._to_draw, inline.show._draw_called = [], False
