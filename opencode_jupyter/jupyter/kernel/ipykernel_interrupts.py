"""How ipykernel (6.29 to 7.x) handles an interrupt, fixed where Stop would have no effect or end the kernel.

Ipykernel lets SIGINT raise a `KeyboardInterrupt` wherever the main thread is: between the arrival of a request and
the cell's first line, while a traceback is drawn, in a step of the event loop. There it costs the reply (the cell
waits for ever) or the whole kernel. So while a cell is run the signal has one handler, which looks where the thread
is: it interrupts the cell's code, cancels a cell that awaits, and otherwise waits until it can do one of the two.

Like `ipykernel_compat`, each function looks whether the release has what it needs, does nothing when it has not, and
returns the function that undoes it.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

ASYNC_CELL_HANDLER = "_cancel_on_sigint.<locals>.handle_sigint"
"""Ipykernel's SIGINT handler while a cell awaits, by its qualified name."""
RETRY = 0.02
"""Seconds after which an interrupt is tried again that came where it could only do harm."""


class _Flag:
    """Whether the person has interrupted the running cell: else a cancel was the work of code.

    Not a `threading.Event`: its lock, taken by a signal's handler that a second signal interrupts, is never free again.
    """

    is_set = False


interrupted = _Flag()
_cancelled: set[CodeType] = set()
_raised_in: set[CodeType] = set()


def ended_by_cancel(function: F) -> F:
    """Mark a coroutine function that a cell awaits: an interrupt cancels it at its next await, and never before."""
    _cancelled.add(function.__code__)
    return function


def ended_by_raise(function: F) -> F:
    """Mark a function that calls a person's code: an interrupt is raised in it, though a cell awaits its end."""
    _raised_in.add(function.__code__)
    return function


class _Request:
    """The interrupts of one execute request."""

    def __init__(self) -> None:
        self.cancel: Callable[[int, FrameType | None], Any] | None = None
        """Ipykernel's handler, which cancels the task of a cell that awaits."""
        self._retries = False
        """Whether the interrupt will be tried again."""
        self._lock = threading.Lock()
        self._over = False

    def begin_cell(self) -> None:
        """Take the place of the handler that ipykernel has put there for a cell that awaits."""
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler) and getattr(handler, "__qualname__", "").endswith(ASYNC_CELL_HANDLER):
            self.cancel = handler
            signal.signal(signal.SIGINT, self.handle)  # ipykernel puts back what was there before its own

    def handle(self, number: int, frame: FrameType | None) -> None:
        """SIGINT's handler while the request lasts.

        Raises:
            KeyboardInterrupt: into the cell's code, or what it calls.
            asyncio.CancelledError: into a person's code in a task, where the other would end the kernel's loop.
        """
        if self._over:
            return
        interrupted.is_set = True
        in_job = False
        inner = frame
        while inner is not None:
            if inner.f_code in _raised_in:
                in_job = True
            elif inner.f_code in _cancelled and not in_job:
                break
            elif _is_cell_code(inner) or _is_callback(inner):
                raise KeyboardInterrupt
            inner = inner.f_back
        if self.cancel is not None:
            self.cancel(number, frame)
            if in_job:
                import asyncio  # the kernel has loaded it; a shell without a kernel need not, to load the extension

                raise asyncio.CancelledError
        elif not self._retries:
            self._retries = True
            _thread.start_new_thread(self._retry, ())  # a `threading.Thread` takes locks, as an Event does

    def _retry(self) -> None:
        time.sleep(RETRY)
        with self._lock:
            self._retries = False
            if not self._over:
                interrupt_main()

    def end(self) -> None:
        """Drop what was not delivered: the cell is over."""
        with self._lock:
            self._over = True


class _Hooks:
    """What ipykernel calls around each request, with the interrupts of execute requests in our hands."""

    def __init__(self, shell: Any, kernel: Any) -> None:
        self._kernel = kernel
        self._events = shell.events
        self._pre, self._post, self._execute = kernel.pre_handler_hook, kernel.post_handler_hook, kernel.do_execute
        self._request: _Request | None = None
        self._patches = {
            "pre_handler_hook": self._before,
            "post_handler_hook": self._after,
            "do_execute": functools.wraps(self._execute)(lambda *args, **kwargs: self._execute_and_reply(args, kwargs)),
        }
        vars(kernel).update(self._patches)
        self._events.register("pre_run_cell", self._before_cell)
        self._begin()

    def undo(self) -> None:
        """Restore ipykernel's own."""
        with contextlib.suppress(ValueError):
            self._events.unregister("pre_run_cell", self._before_cell)
        for name, patch in self._patches.items():
            if vars(self._kernel).get(name) is patch:
                delattr(self._kernel, name)

    def _before(self) -> None:
        self._pre()
        self._begin()

    def _begin(self) -> None:
        if threading.current_thread() is threading.main_thread() and _is_execution(self._kernel):
            self._request = _Request()
            self._request.begin_cell()  # the cell that loads the extension has begun
            signal.signal(signal.SIGINT, self._request.handle)

    def _after(self) -> None:
        if self._request is not None:
            self._request.end()
            self._request = None
        self._post()

    def _before_cell(self, *_: Any) -> None:
        interrupted.is_set = False
        if self._request is not None and threading.current_thread() is threading.main_thread():
            self._request.begin_cell()

    async def _execute_and_reply(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import asyncio

        try:
            return await self._execute(*args, **kwargs)
        except (KeyboardInterrupt, asyncio.CancelledError):  # before its first line; afterwards IPython catches them
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            error = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": ["KeyboardInterrupt"]}
            self._kernel.send_response(self._kernel.iopub_socket, "error", error)
            return {"status": "error", "execution_count": self._kernel.execution_count, **error}


def install_interrupts(shell: Any, kernel: Any) -> Callable[[], None] | None:
    """Have one handler of SIGINT while an execute request is handled, and a reply to each."""
    needed = ("pre_handler_hook", "post_handler_hook", "do_execute")
    if not hasattr(shell, "events") or not all(hasattr(kernel, name) for name in needed):
        return None
    if any(name in vars(kernel) for name in needed):  # somebody else's are there already
        return None
    return _Hooks(shell, kernel).undo


def interrupt_main() -> None:
    """Send SIGINT to the main thread; any thread may call it."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _is_execution(kernel: Any) -> bool:
    """Whether it is a cell that the kernel deals with."""
    try:
        return bool(kernel.get_parent("shell")["header"]["msg_type"] == "execute_request")
    except (AttributeError, KeyError, LookupError, TypeError):
        return False


def _is_run_code(frame: FrameType | None) -> bool:
    """Whether this is IPython's function that runs a cell's code, and shows a `KeyboardInterrupt` in it."""
    return (
        frame is not None and frame.f_code.co_name == "run_code" and _module(frame) == "IPython.core.interactiveshell"
    )


def _is_cell_code(frame: FrameType) -> bool:
    """Whether this is the code of a cell, and not what IPython calls to show the cell's error."""
    return _is_run_code(frame.f_back) and _module(frame) != "IPython.core.interactiveshell"


def _is_callback(frame: FrameType) -> bool:
    """Whether IPython calls this as a callback of an event (figures are drawn in one), and shows its errors."""
    outer = frame.f_back
    return outer is not None and outer.f_code.co_name == "trigger" and _module(outer) == "IPython.core.events"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def runs_code() -> bool:
    """Whether the main thread runs a cell's code at this moment. Any thread may ask."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if _is_run_code(frame):
            return True
        frame = frame.f_back
    return False


ON_CARD = "_opencode_on_card"
"""Attribute of an error that a card has shown already, and that needs no error box below it."""


def install_quiet_errors(shell: Any) -> Callable[[], None] | None:
    """Publish no error output for an error that is marked with `ON_CARD`. The cell fails all the same."""
    show = getattr(shell, "_showtraceback", None)
    if show is None or not hasattr(shell, "_last_traceback"):
        return None

    def show_unless_on_card(etype: type[BaseException], evalue: BaseException, stb: list[str]) -> None:
        if getattr(evalue, ON_CARD, False):
            shell._last_traceback = stb  # the reply has it
        else:
            show(etype, evalue, stb)

    shell._showtraceback = show_unless_on_card

    def undo() -> None:
        if vars(shell).get("_showtraceback") is show_unless_on_card:
            shell._showtraceback = show

    return undo
