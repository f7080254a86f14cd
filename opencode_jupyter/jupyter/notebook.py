"""A notebook's tool system: its workspace in the engine, its cards, and the three ways a cell makes a call."""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..core.call import Call
from ..core.errors import ToolAbortedError, ToolError, full_text
from ..core.result import ToolResult
from ..core.sessions import Session
from ..core.tool import Tool
from ..core.workspace import Workspace
from ..tools.notebook.documents import Notebooks
from . import _kernel_compat, _kernel_interrupts
from .adopting import adopt, both
from .agent.state import AgentState
from .approvals import Broker
from .arguments import CallRequest
from .card import Card, widget_class
from .channels import PolicyChannel, PromptChannel, policy_from, terminal_is_attended
from .editing import Editing
from .engine import Engine, awaited
from .errors_shown import brief
from .frames import shorten
from .handle import CallHandle
from .live import LiveDisplay
from .loaded import current
from .open_notebooks import NotebookPages
from .panel import Panel
from .presenting import Cards
from .result import CellResult
from .served import served_path
from .settings import Settings
from .settled import SettledCards
from .spill import SpillRequests
from .tools import kernel_tools
from .tools.capture import outside
from .tools.interrupts import tell_cell
from .waiting import Waiter, blocking, in_cell_task

log = logging.getLogger(__name__)

PRELOAD_AFTER = 1.0
"""Seconds after loading, when the widget library is imported in the background so that the first ask is quick."""


class Notebook:
    """One shell's tool system. It lives from the first ``%load_ext`` to the end of the shell or an unload.

    Attributes:
        shell: the IPython shell.
        kernel: its ipykernel; None in a terminal.
        workspace: lives on the engine's loop; reach it from a cell through `on_engine`.
    """

    def __init__(self, shell: Any, settings: Settings) -> None:
        self.shell = shell
        self.kernel = _kernel_compat.kernel_of(shell)
        self.settings = settings
        self.engine = Engine(self._on_main)
        try:
            self.workspace: Workspace = self.engine.run(self._open_workspace)
        except BaseException:
            self.engine.close()  # a config file that can't be read must not leave threads behind
            raise
        self.workspace.execute = self.engine.execute
        self.workspace.present = Cards(self)
        for made in kernel_tools(self):
            self.workspace.registry.add_builtin(made)
        self.spills = SpillRequests(self.workspace.truncation.directory)
        self.pages = NotebookPages(self._publish, self.is_attended, self._running, getattr(shell, "starting_dir", ""))
        self.settled = SettledCards()
        self.editing = Editing(self)
        self.panel = Panel(self, self._publish)
        self.agent = AgentState()
        self.agent_session: Session | str | None = None
        """Where the next ``%%agent`` goes on: a session or its id; None for a new one."""
        self.prompt = PromptChannel(self.kernel, self._can_prompt)
        self.policy = PolicyChannel(lambda: policy_from(os.environ, self.settings.on_ask))
        self.broker = Broker(
            self.workspace,
            [self.prompt, self.policy],
            self._card_attended,
            lambda: self.settings.prompt_after,
            partial(adopt, self),
            lambda: self.panel.changed("asks"),
        )
        self.prompt.broker = self.policy.broker = self.broker
        self._pump: Callable[[], None] | None = None
        self._cards: dict[str, LiveDisplay] = {}
        self._main_jobs: deque[Callable[[], None]] = deque()
        self._stdin: dict[str, bool] = {}
        self.routes: dict[str, bool] = {}
        self._undo: list[Callable[[], None]] = []
        self._closed = False
        atexit.register(self.close)

    async def _open_workspace(self) -> Workspace:
        return await Workspace(working_folder(), data_dir=self.settings.data_dir or None).__aenter__()

    # ------------------------------------------------------------------ laying and taking back the routes

    def connect(self) -> None:
        """Lay the ways by which a busy kernel hears answers."""
        if self.kernel is None or self._undo:
            return
        tap = _kernel_compat.install_tap(self.kernel, self.broker.on_message)
        requests = {
            **self.spills.handlers,
            "served": served_path,
            "notebook": self.pages.on_message,
            "settled": self.settled.on_message,
            "panel": self.panel.on_message,
            **self.editing.requests,
        }
        requests = {kind: self._noting_page(handler) for kind, handler in requests.items()}
        control = _kernel_compat.install_control(self.kernel, self.broker.on_message, requests)
        self._pump = _kernel_compat.make_pump(self.kernel)
        self.routes = {"tap": tap is not None, "control": control is not None, "pump": self._pump is not None}
        interrupts = _kernel_interrupts.install_interrupts(self.shell, Waiter.wait.__code__)
        guard = _kernel_interrupts.install_end_guard(self.shell, self.kernel)
        status = _kernel_compat.install_status(self.kernel)
        self._undo = [undo for undo in (tap, control, interrupts, guard, status) if undo is not None]
        timer = threading.Timer(PRELOAD_AFTER, widget_class)
        timer.daemon = True
        timer.start()
        self._undo.append(timer.cancel)
        if control is not None:
            notebooks = self.workspace.service(Notebooks)
            notebooks.front_end = self.pages
            self._undo.append(lambda: setattr(notebooks, "front_end", None))
            self.pages.greet()
            self.panel.connect()
            self._undo.append(self.panel.disconnect)

    def _publish(self, content: dict[str, Any]) -> bool:
        return _kernel_compat.publish(self.kernel, content)

    def _noting_page(self, handler: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        def handle(request: dict[str, Any]) -> dict[str, Any]:
            self.broker.heard_ever = True  # only a page with our extension sends these
            return handler(request)

        return handle

    def is_attended(self, stdin: bool | None = None) -> bool:
        """Whether a person may be present.

        A client that takes no input need not be an unattended run: a server may run the cells of an open page. So a
        page or card that has reported counts, and a server's kernel is given the time that a page takes to report.

        Args:
            stdin: whether the client that runs the cell takes input; left out, the one that runs a cell now.
        """
        stdin = self._stdin_now() if stdin is None else stdin
        return stdin or self.broker.heard_ever or bool(kernel_id(self.kernel))

    def _running(self) -> str | None:
        """The notebook that this kernel was started for: as jupyter_server says it, or VS Code."""
        said = os.environ.get("JPY_SESSION_NAME") or self.shell.user_ns.get("__vsc_ipynb_file__")
        return said if isinstance(said, str) and os.path.isabs(said) else None

    @property
    def alive(self) -> bool:
        """Whether calls can be made: not closed, and the engine runs."""
        return not self._closed and self.engine.alive

    def disconnect(self) -> None:
        """Take the ways back."""
        for undo in self._undo:
            undo()
        self._undo = []
        self.spills.close()
        self._pump = None
        self.routes = {}

    def close(self) -> None:
        """Stop every call and end the engine. Twice is harmless."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self.disconnect()
        if self.engine.alive:
            with contextlib.suppress(Exception):
                self.engine.submit(self.workspace.aclose()).result(3)
            self.engine.close()

    # ------------------------------------------------------------------ the three ways to make a call

    def run_sync(self, request: CallRequest) -> ToolResult:
        """Make a call and block until it ends: for plain functions and terminals."""
        __tracebackhide__ = True  # IPython leaves the frame out of what a tool's own error shows
        waiter, card, future = self._begin(request)
        with outside():  # code that the python tool runs may make calls: their cards are the cell's
            try:
                result = waiter.wait(future)
            except BaseException as error:
                whole = self._needs_whole_error(card)
                self._end(card)
                raise self.for_cell(error, whole=whole)  # noqa: B904 - the same error: what it was raised from stays
            self._end(card)
        return self._cell_result(result, card)

    async def run_async(self, request: CallRequest) -> ToolResult:
        """Make a call and await its end."""
        __tracebackhide__ = True
        waiter, card, future = self._begin(request)
        try:
            result = await waiter.wait_async(future)
        except BaseException as error:
            whole = self._needs_whole_error(card)
            self._end(card)
            if isinstance(error, ToolAbortedError) and error.reason == "interrupted" and in_cell_task():
                raise self.for_cell(KeyboardInterrupt()) from None  # the call was over before the cell had heard of it
            raise self.for_cell(error, whole=whole)  # noqa: B904 - the same error: what it was raised from stays
        self._end(card)
        return self._cell_result(result, card)

    def start_background(self, request: CallRequest) -> CallHandle:
        """Make a call that goes on when the cell is over; its card lives on."""
        call = self._start(request)
        card = self._card(call, None, request)
        if card.can_live and not request.quiet:
            with outside():
                card.show()
        future = self.engine.submit(self._run(call, card))

        def ended(_: Any) -> None:
            self.detach(card)
            if not _kernel_compat.call_later_on_main(self.kernel, lambda: self.settle(card)):
                self.settle(card)

        future.add_done_callback(ended)
        return CallHandle(self, future, call, card)

    def _begin(self, request: CallRequest) -> tuple[Waiter, Card, concurrent.futures.Future[ToolResult]]:
        call = self._start(request)
        waiter = Waiter(call.abort, lambda: self.beat(waiter))
        card = self._card(call, waiter, request)
        return waiter, card, self.engine.submit(self._run(call, card))

    def _start(self, request: CallRequest) -> Call:
        if self._closed or not self.engine.alive:
            raise ToolError("the tool system has ended; load it again with %reload_ext opencode_jupyter")
        self.follow_folder()
        if request.make is not None:
            return request.make(self.workspace, request)
        return self.workspace.start(
            request.tool, request.arguments, agent=request.agent, timeout=request.timeout, by="user"
        )

    def follow_folder(self) -> None:
        """Take the workspace to the kernel's folder, where the next call runs."""
        here = working_folder()
        if here != self.workspace.directory and self.alive:
            self.engine.run(self.workspace.change_directory, here)

    def _card(self, call: Call, waiter: Waiter | None, request: CallRequest) -> Card:
        card = Card(call, waiter, quiet=request.quiet, **self.card_options())
        call.on_update = both(call.on_update, card.update)
        self.attach(card)
        return card

    def card_options(self) -> dict[str, Any]:
        """What every card of this notebook is made with."""
        return {
            "on_message": self.broker.on_message,
            "kernel_id": kernel_id(self.kernel),
            "live": False,
            "live_after": self.settings.card_after,
            "durations": self.kernel is None,  # nobody saves what a terminal shows
        }

    def attach(self, card: LiveDisplay) -> None:
        """What a card shows begins: its asks come here."""
        self._stdin[card.key] = self._stdin_now()
        shows_cards = self.kernel is not None and self.settings.cards and self._card_attended(card)
        card.can_live = shows_cards and widgets_possible()
        in_console = self._stdin[card.key] and _kernel_compat.has_no_cell(self.kernel)
        if in_console and not self.broker.heard_ever and kernel_id(self.kernel).isdigit():
            card.can_live = False  # a console's own kernel, which it names by its process: it draws no widgets
        card.is_unseen = lambda: in_console and not self.broker.heard_ever
        self._cards[card.key] = card
        self.broker.attach(card)

    def detach(self, card: LiveDisplay) -> None:
        """What a card shows is over. On any thread."""
        self.broker.detach(card)
        self._cards.pop(card.key, None)
        self._stdin.pop(card.key, None)

    async def _run(self, call: Call, card: Card) -> ToolResult:
        card.begin()
        return await call.run()

    def _end(self, card: LiveDisplay) -> None:
        self.detach(card)
        self.settle(card)

    def settle(self, card: LiveDisplay) -> None:
        """Put the finished card in place of the live one; on the thread that waits."""
        try:
            live = card.shown
            card.settle()  # first: it holds interrupts off
            if live:
                self.settled.keep(card.key, card.bundle())
        except Exception:  # a card that can't be drawn must not hide the call's result
            log.exception("the card %s could not be settled", card.key)

    def _cell_result(self, result: ToolResult, card: Card) -> CellResult:
        values = dict(vars(result))  # not through `records`, which would make rows of a frame
        values["records"] = values.pop("_records")
        return CellResult(**values, tool=card.call.part.tool, cell=self.shell.execution_count, bundle=card.bundle())

    def _needs_whole_error(self, card: Card) -> bool:
        """Whether the cell's error has to say all: no card does, or nobody watches and the output is what is left."""
        return (card.quiet and not card.shown) or not self._card_attended(card)

    def for_cell(self, error: BaseException, *, whole: bool = True) -> BaseException:
        """The error as the cell raises it: our own without frames; a tool's own with the frames of the tool alone.

        An interrupt goes without frames too: the first traceback of a kernel takes IPython half a second to draw.

        Args:
            error: what the call ended with.
            whole: show all of its text; else one line, since the card above has the rest.
        """
        if isinstance(error, (ToolError, KeyboardInterrupt)):
            error.__traceback__ = None
            message = full_text(error, for_person=True) if isinstance(error, ToolError) else str(error)
            text = f"{type(error).__name__}: {message if whole else brief(message)}".removesuffix(": ")
            error._render_traceback_ = lambda: [text]  # type: ignore[union-attr]  # IPython's hook for one's own look
        else:
            shorten(error)
        return error

    # ------------------------------------------------------------------ what waiters, cards and channels ask for

    def beat(self, waiter: Waiter | None = None) -> None:
        """What a waiting cell does at every heartbeat: read the socket (6.x), look at the prompt."""
        if self._pump is not None:
            self._pump()
        if self._main_jobs:
            self._serve_main()
        if threading.current_thread() is not threading.main_thread():
            self.wake_main()
        self.prompt.beat(waiter)

    def wake_main(self) -> None:
        """Let an interrupt in where a cell awaits something else than our calls: SIGINT does not wake an idle await."""
        _kernel_compat.call_later_on_main(self.kernel, _nothing)

    def on_engine(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Run a function, plain or async, on the workspace's loop and give what it gives.

        Answers to asks get through meanwhile; an interrupt cancels the work.
        """
        future = self.engine.submit(awaited(fn, *args))

        def abort(reason: str) -> None:
            future.cancel()

        waiter = Waiter(abort, lambda: self.beat(waiter))
        return waiter.wait(future)

    def _on_main(self, call_id: str, fn: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        card = self.broker.card_of(call_id)
        if card is not None and card.waiter is not None and card.waiter.on_main:
            return card.waiter.submit(fn)
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn())
            except BaseException as error:
                future.set_exception(error)
                if isinstance(error, KeyboardInterrupt):
                    raise

        self._main_jobs.append(run)
        # Whichever comes first: an idle kernel, or a cell that waits (for this call's handle, or another call).
        if not _kernel_compat.call_later_on_main(self.kernel, self._serve_idle) and not blocking():
            self._main_jobs.remove(run)
            future.set_exception(RuntimeError("this tool needs the main thread, which no cell lends it now"))
        return future

    def _serve_main(self) -> None:
        while self._main_jobs and threading.current_thread() is threading.main_thread():
            with contextlib.suppress(IndexError):
                self._main_jobs.popleft()()

    def _serve_idle(self) -> None:
        """Serve from the main thread's loop, which an interrupt must not end: the cell that awaits there is told."""
        try:
            self._serve_main()
        except KeyboardInterrupt:
            tell_cell()

    def show_card(self, call_id: str) -> None:
        """Show a call's live card (or that of the call it is part of) though the main thread is busy with its work."""
        card = self.broker.card_of(call_id)
        if card is not None and card.can_live and not card.quiet:
            with outside():
                card.show()

    @property
    def pulse(self) -> Callable[[], None] | None:
        """What has to be called on the main thread while code blocks it, so that clicks are heard (6.x)."""
        return self._pump

    def _stdin_now(self) -> bool:
        if self.kernel is not None:
            return _kernel_compat.allows_stdin(self.kernel)
        return terminal_is_attended()

    def _can_prompt(self, ask: Any) -> bool:
        return self._stdin.get(ask.card.key, False)

    def _card_attended(self, card: LiveDisplay) -> bool:
        return self.is_attended(self._stdin.get(card.key, False))

    @property
    def last_hello(self) -> float | None:
        """Seconds from a card's display to a front end's word that it is shown; None if none was ever heard."""
        return self.broker.last_hello

    def doctor(self) -> list[dict[str, str]]:
        """What works here: rows of check, result and advice."""
        from .doctor import examine

        return examine(self)

    def register(self, made: Tool) -> None:
        """Take a tool that a cell defined with ``@tool``."""
        self.workspace.registry.register(made)


def _nothing() -> None:
    """Only wakes the loop that runs it."""


def working_folder() -> Path:
    """The kernel's working folder.

    Raises:
        ToolError: it has been deleted.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ToolError("the kernel's working folder has been deleted; go to one that exists with %cd") from None


def widgets_possible() -> bool:
    """Whether live cards can be made; looks without importing anything heavy."""
    if "anywidget" in sys.modules:
        return widget_class() is not None
    from importlib.util import find_spec

    return find_spec("anywidget") is not None


def kernel_id(kernel: Any) -> str:
    """The kernel's id as the server knows it, from the name of its connection file; empty if it has another form."""
    app = getattr(kernel, "parent", None)
    name = os.path.basename(getattr(app, "connection_file", "") or "")
    return name[len("kernel-") : -len(".json")] if name.startswith("kernel-") and name.endswith(".json") else ""


__all__ = ["CallHandle", "Notebook", "current"]
