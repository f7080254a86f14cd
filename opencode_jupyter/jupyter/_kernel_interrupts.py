"""How ipykernel (6.29 to 7.x) takes an interrupt, mended where a person would press Stop in vain or lose the kernel.

Like `_kernel_compat`, each function looks whether the release has what it needs, does nothing when it has not, and
gives back the function that undoes it.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

ASYNC_CELL_HANDLER = "_cancel_on_sigint.<locals>.handle_sigint"
"""Ipykernel's SIGINT handler while a cell awaits, by its qualified name."""


def install_interrupts(shell: Any, blocking: CodeType) -> Callable[[], None] | None:
    """Let an interrupt end plain code in a cell that also awaits.

    While such a cell runs, ipykernel (6.x to 7.4) answers SIGINT by cancelling the cell's task, which does nothing
    until the cell awaits the next time: a loop behind a `%tool` line could not be stopped. So at the start of each
    cell its handler is wrapped: code of the cell gets a `KeyboardInterrupt`, as in a cell that does not await.

    Args:
        shell: the IPython shell.
        blocking: code of the function that blocks for a call. In a task of the user's own, a `KeyboardInterrupt`
            would end the kernel's loop; there it gets a `CancelledError`.
    """
    events = getattr(shell, "events", None)
    if events is None:
        return None

    def wrap(*_: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        theirs = signal.getsignal(signal.SIGINT)
        if not callable(theirs) or not getattr(theirs, "__qualname__", "").endswith(ASYNC_CELL_HANDLER):
            return  # a cell that does not await, or another release: interrupts are as they are

        def handle(number: int, frame: FrameType | None) -> None:
            inner = frame
            while inner is not None:
                code = inner.f_code
                if code is blocking and not _in_cell(inner):
                    theirs(number, frame)
                    from asyncio import CancelledError

                    raise CancelledError
                if inner is not frame and _is_run_code(inner):
                    raise KeyboardInterrupt
                inner = inner.f_back
            theirs(number, frame)

        signal.signal(signal.SIGINT, handle)  # ipykernel puts its own back when the cell is over

    events.register("pre_run_cell", wrap)

    def undo() -> None:
        with contextlib.suppress(ValueError):
            events.unregister("pre_run_cell", wrap)

    return undo


def _is_run_code(frame: FrameType) -> bool:
    """Whether this is IPython's function that runs a cell's code, and shows a `KeyboardInterrupt` in it."""
    return frame.f_code.co_name == "run_code" and frame.f_globals.get("__name__") == "IPython.core.interactiveshell"


def runs_code() -> bool:
    """Whether the main thread runs a cell's code at this moment. Any thread may ask."""
    return _in_cell(sys._current_frames().get(threading.main_thread().ident or 0))


def _in_cell(frame: FrameType | None) -> bool:
    while frame is not None:
        if _is_run_code(frame):
            return True
        frame = frame.f_back
    return False


def install_end_guard(shell: Any, kernel: Any) -> Callable[[], None] | None:
    """Drop interrupts that come between the end of a failed cell and its reply.

    There they can only do harm: the reply is lost, or, when one hits where ipykernel begins to abort what is queued,
    the end of the aborting is never scheduled and every later cell is answered with "aborted". A person who presses
    Stop twice gets there. Ipykernel puts its own handler back when the request is over.
    """
    execute = getattr(kernel, "do_execute", None)
    events = getattr(shell, "events", None)
    if execute is None or events is None or "do_execute" in vars(kernel):
        return None

    def over(result: Any) -> None:
        if not getattr(result, "success", True):
            _ignore()

    # The end of a cell that does not await; one that awaits still has ipykernel's own handler on, taken off later.
    events.register("post_run_cell", over)

    @functools.wraps(execute)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        reply = execute(*args, **kwargs)
        if hasattr(reply, "__await__"):
            reply = await reply
        if isinstance(reply, dict) and reply.get("status") == "error":
            _ignore()
        return reply

    kernel.do_execute = guarded

    def undo() -> None:
        with contextlib.suppress(ValueError):
            events.unregister("post_run_cell", over)
        if vars(kernel).get("do_execute") is guarded:
            del kernel.do_execute

    return undo


def _ignore() -> None:
    """Ignore SIGINT until ipykernel puts back what was there before the request, if it is about to do so."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
