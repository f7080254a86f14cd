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
from typing import TYPE_CHECKING, Any

from ..core.call import Call
from ..core.errors import ToolAbortedError, ToolError
from ..core.result import ToolResult
from ..core.sessions import Session
from ..core.tool import Tool
from ..tools.notebook.documents import Notebooks
from ..workspace import Workspace
from .cards.call_card import Card, widget_class
from .cards.display import CellResult, SettledCards
from .cards.labels import project_folder
from .cards.live import LiveDisplay
from .error_display import for_cell
from .extension_state import current
from .kernel import ipykernel_compat, ipykernel_interrupts
from .kernel.approvals import Broker
from .kernel.channels import PolicyChannel, PromptChannel, policy_from, terminal_is_attended
from .kernel.engine import Engine, awaited
from .kernel.late_cards import adopt, both
from .kernel.open_notebooks import NotebookPages
from .kernel.waiting import Waiter, blocking, in_cell_task, interrupts_held
from .magics.agent_state import AgentState
from .magics.arguments import CallRequest
from .magics.editor_requests import Editing
from .panel import Panel
from .presenter import Cards
from .server_files import served_path
from .settings import Settings
from .tools import kernel_tools
from .tools.capture_context import outside

if TYPE_CHECKING:
    from .kernel.background import CallHandle
    from .spill import SpillRequests

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
        self.kernel = ipykernel_compat.kernel_of(shell)
        self.settings = settings
        self.engine = Engine(self._on_main)
        try:
            self.workspace: Workspace = self.engine.run(self._open_workspace)
        except BaseException:
            self.engine.close()  # a config file that can't be read must not leave threads behind
            raise
        self.workspace.execute = self.engine.execute
        self.workspace.present = Cards(self)
        self.workspace.registry.add_builtins(kernel_tools(self))
        self.pages = NotebookPages(
            self._publish, self.is_attended, lambda: self.path, getattr(shell, "starting_dir", "")
        )
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
        self._spills: SpillRequests | None = None
        self._closed = False
        atexit.register(self.close)

    async def _open_workspace(self) -> Workspace:
        return await Workspace(working_folder(), data_dir=self.settings.data_dir or None).__aenter__()

    # ------------------------------------------------------------------ laying and taking back the routes

    def connect(self) -> None:
        """Lay the ways by which a busy kernel hears answers."""
        if self.kernel is None or self._undo:
            return
        if self.path is not None and self.workspace.store is not None:
            self.workspace.store.put_notebook(self.path)
        tap = ipykernel_compat.install_tap(self.kernel, self.broker.on_message)
        requests: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            **{kind: partial(self._spilled, kind) for kind in ("page", "extent", "part", "search")},
            "served": served_path,
            "notebook": self.pages.on_message,
            "settled": self.settled.on_message,
            "panel": self.panel.on_message,
            **self.editing.requests,
        }
        requests = {kind: self._noting_page(handler) for kind, handler in requests.items()}
        control = ipykernel_compat.install_control(self.kernel, self.broker.on_message, requests)
        self._pump = ipykernel_compat.make_pump(self.kernel)
        self.routes = {"tap": tap is not None, "control": control is not None, "pump": self._pump is not None}
        interrupts = ipykernel_interrupts.install_interrupts(self.shell, self.kernel)
        quiet = ipykernel_interrupts.install_quiet_errors(self.shell)
        status = ipykernel_compat.install_status(self.kernel)
        self._undo = [undo for undo in (tap, control, interrupts, quiet, status) if undo is not None]
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
        return ipykernel_compat.publish(self.kernel, content)

    def _spilled(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a viewer of whole outputs; on the control channel's thread."""
        if self._spills is None:
            from .spill import SpillRequests

            self._spills = SpillRequests(self.workspace.truncation.directory)
        return self._spills.handlers[kind](request)

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

    @property
    def path(self) -> str | None:
        """The notebook that this kernel was started for (JPY_SESSION_NAME of jupyter_server, or VS Code's variable)."""
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
        if self._spills is not None:
            self._spills.close()
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
        with interrupts_held():
            waiter, card, future = self._begin(request)
            with outside():  # code that the python tool runs may make calls: their cards are the cell's
                try:
                    result = waiter.wait(future)
                except BaseException as error:
                    whole = self.needs_whole_error(card)
                    self.end(card)
                    raise for_cell(error, whole=whole, base=project_folder(self.workspace))  # noqa: B904 - the same error: what it was raised from stays
                self.end(card)
            return self.cell_result(result, card)

    @ipykernel_interrupts.ended_by_cancel
    async def run_async(self, request: CallRequest) -> ToolResult:
        """Make a call and await its end."""
        __tracebackhide__ = True
        waiter, card, future = self._begin(request)
        try:
            result = await waiter.wait_async(future)
        except BaseException as error:
            whole = self.needs_whole_error(card)
            self.end(card)
            if isinstance(error, ToolAbortedError) and error.reason == "interrupted" and in_cell_task():
                raise for_cell(
                    KeyboardInterrupt(), whole=whole
                ) from None  # the call was over before the cell had heard of it
            raise for_cell(error, whole=whole, base=project_folder(self.workspace))  # noqa: B904 - the same error: what it was raised from stays
        self.end(card)
        return self.cell_result(result, card)

    def start_background(self, request: CallRequest) -> CallHandle:
        """Make a call that goes on when the cell is over; its card lives on."""
        from .kernel.background import CallHandle

        call = self._start(request)
        card = self._card(call, None, request)
        if card.can_live and not request.quiet:
            with outside():
                card.show()
        future = self.engine.submit(self._run(call, card))

        def ended(_: Any) -> None:
            self.detach(card)
            if not ipykernel_compat.call_later_on_main(self.kernel, lambda: self.settle(card)):
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
            raise ToolError("The tool system was closed. Load it again with %reload_ext opencode_jupyter.")
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
        in_console = self._stdin[card.key] and ipykernel_compat.has_no_cell(self.kernel)
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

    def end(self, card: LiveDisplay) -> None:
        """What a card shows is over, and so is its cell's wait; on the thread that waits."""
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

    def cell_result(self, result: ToolResult, card: Card, *, shown: bool = True) -> CellResult:
        """A result as a cell's value; `shown`: this cell shows its card."""
        values = dict(vars(result))  # not through `records`, which would make rows of a frame
        values["records"] = values.pop("_records")
        cell = self.shell.execution_count if shown else -1
        return CellResult(**values, tool=card.call.part.tool, cell=cell, bundle=card.bundle())

    def needs_whole_error(self, card: LiveDisplay) -> bool:
        """Whether the cell's error has to say all: no card does, or nobody watches and the output is what is left."""
        return (card.quiet and not card.shown) or not self.is_attended(self._stdin.get(card.key))

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
        ipykernel_compat.call_later_on_main(self.kernel, _nothing)

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
        if not ipykernel_compat.call_later_on_main(self.kernel, self._serve_idle) and not blocking():
            self._main_jobs.remove(run)
            future.set_exception(RuntimeError("this tool needs the main thread, which is not available now"))
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
            from .tools.interrupts import interrupt_cell  # here: it belongs to the python tool, whose work this is

            interrupt_cell()

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
            return ipykernel_compat.allows_stdin(self.kernel)
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
        from .magics.doctor import examine

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
        raise ToolError("The kernel's working folder was deleted. Go to another one with %cd.") from None


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


__all__ = ["Notebook", "current"]
