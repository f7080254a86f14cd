"""A notebook's tool system: its workspace in the engine, and the connections to cells, cards and pages."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.call import Call
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.sessions import Session
from ..core.tool import Tool
from ..tools.notebook.open_documents import Notebooks
from ..workspace import Workspace
from .cards.call_card import widget_class
from .cards.display import CellResult
from .cards.labels import project_folder
from .extension_state import current
from .kernel.approvals import Broker
from .kernel.card_host import CardHost
from .kernel.cell_runner import CellRunner, MakeJob
from .kernel.engine import Engine
from .kernel.link import KernelLink
from .kernel.open_notebooks import NotebookPages
from .kernel.reply_channels import PolicyChannel, PromptChannel, policy_from
from .magics.editor_requests import Editing
from .magics.tool_line import CallRequest
from .panel import Panel
from .server_files import served_path
from .settings import Settings
from .tools import kernel_tools

if TYPE_CHECKING:
    import concurrent.futures

    from ..agent.run import Run
    from .kernel.waiting import Waiter
    from .spill import SpillRequests

PRELOAD_AFTER = 1.0
"""Seconds after loading, when the widget library is imported in the background so that the first request is quick."""


@dataclass(slots=True)
class AgentState:
    """The agent and model of a notebook's next request, as set by ``%agent``.

    Attributes:
        name: the agent's key; "" for the session's own, or the default one.
        model: set by ``%agent -m``; "" for the session's, the agent's or the configuration's.
        last_model: the one that was used last.
        listed_sessions: the ids that ``%sessions`` listed last; None if it has listed none.
    """

    name: str = ""
    model: str = ""
    last_model: str = ""
    listed_sessions: list[str] | None = None

    def note_run(self, run: Run) -> None:
        """Note an ended run: the next one goes to the agent that it ended with (a plan may have been approved)."""
        if run.session.agent:
            self.name = run.session.agent
        model = getattr(run, "model", None)
        if model is not None:
            requested = run.options.model
            self.last_model = requested if isinstance(requested, str) else model.info.full


class Notebook:
    """One shell's tool system. It lives from the first ``%load_ext`` to the end of the shell or an unload.

    Attributes:
        shell: the IPython shell.
        kernel: its ipykernel; None in a terminal.
        settings: the person's settings.
        link: the kernel's connection.
        engine: the thread on which calls run.
        workspace: lives on the engine's loop; reach it from a cell through `on_engine`.
        cards: the cards on display.
        broker: the pending requests.
        runner: runs calls for cells.
        agent: the agent and model of the next request.
        agent_session: the session that the next ``%%agent`` continues; None for a new one.
    """

    def __init__(self, shell: Any, settings: Settings) -> None:
        self.shell = shell
        self.settings = settings
        self.link = KernelLink(shell)
        self.kernel = self.link.kernel
        self.engine = Engine(self._on_main)
        try:
            self.workspace: Workspace = self.engine.run(self._open_workspace)
        except BaseException:
            self.engine.close()  # a config file that can't be read must not leave threads behind
            raise
        self.workspace.execute = self.engine.execute
        self.workspace.present = _Presenter(self)
        self.workspace.registry.add_builtins(kernel_tools(self))
        self.cards = CardHost(self.link, self.engine, settings)
        self.pages = NotebookPages(
            self.link.publish, self.cards.is_attended, lambda: self.path, getattr(shell, "starting_dir", "")
        )
        self.panel = Panel(self, self.link.publish)
        self.agent = AgentState()
        self.agent_session: Session | None = None
        prompt = PromptChannel(self.kernel, self.workspace, lambda entry: self.cards.can_prompt(entry.card))
        policy = PolicyChannel(self.workspace, lambda: policy_from(os.environ, settings.on_ask))
        self.broker = Broker(
            self.workspace,
            [prompt, policy],
            self.cards.is_card_attended,
            lambda: settings.prompt_after,
            self.cards.add_late_card,
            lambda: self.panel.changed("asks"),
        )
        self.cards.broker = self.broker
        self.runner = CellRunner(self.engine, self.link, self.cards, prompt)
        self._spills: SpillRequests | None = None
        self._closed = False
        atexit.register(self.close)

    async def _open_workspace(self) -> Workspace:
        return await Workspace(_working_folder(), data_dir=self.settings.data_dir or None).__aenter__()

    # ------------------------------------------------------------------ the kernel's connection

    def connect(self) -> None:
        """Install the routes by which a busy kernel receives replies and the requests of pages."""
        if self.kernel is None or self.link.is_connected:
            return
        if self.path is not None and self.workspace.store is not None:
            self.workspace.store.put_notebook(self.path)
        requests: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            **{kind: partial(self._read_spill, kind) for kind in ("page", "extent", "part", "search")},
            "served": served_path,
            "notebook": self.pages.on_message,
            "settled": self.cards.settled.on_message,
            "panel": self.panel.on_message,
            **Editing(self).requests,
        }
        self.link.connect(
            self.broker.on_message, {kind: self._noting_page(handler) for kind, handler in requests.items()}
        )
        timer = threading.Timer(PRELOAD_AFTER, widget_class)
        timer.daemon = True
        timer.start()
        self.link.on_disconnect(timer.cancel)
        if self.link.routes["control"]:
            notebooks = self.workspace.service(Notebooks)
            notebooks.front_end = self.pages
            self.link.on_disconnect(lambda: setattr(notebooks, "front_end", None))
            self.pages.greet()
            self.panel.connect()
            self.link.on_disconnect(self.panel.disconnect)

    def _read_spill(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a viewer of whole outputs; on the control channel's thread."""
        if self._spills is None:
            from .spill import SpillRequests

            self._spills = SpillRequests(self.workspace.truncation.directory)
        return self._spills.handlers[kind](request)

    def _noting_page(self, handler: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        def handle(request: dict[str, Any]) -> dict[str, Any]:
            self.broker.has_page = True  # only a page with our extension sends these
            return handler(request)

        return handle

    def disconnect(self) -> None:
        """Remove the routes."""
        self.link.disconnect()
        if self._spills is not None:
            self._spills.close()

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

    # ------------------------------------------------------------------ for magics and tools

    @property
    def path(self) -> str | None:
        """The notebook that this kernel was started for, if known."""
        return self.link.notebook_path

    @property
    def alive(self) -> bool:
        """Whether calls can be made: not closed, and the engine runs."""
        return not self._closed and self.engine.alive

    def prepare_start(self) -> None:
        """Make sure that a call or run can start, in the kernel's folder.

        Raises:
            ToolError: the tool system was closed.
        """
        if not self.alive:
            raise ToolError("The tool system was closed. Load it again with %reload_ext opencode_jupyter.")
        self.follow_folder()

    def follow_folder(self) -> None:
        """Move the workspace to the kernel's folder, where the next call runs."""
        folder = _working_folder()
        if folder != self.workspace.directory and self.alive:
            self.engine.run(self.workspace.change_directory, folder)

    def call(self, request: CallRequest) -> MakeJob[ToolResult]:
        """The job of a call, for the `runner`."""
        return partial(CallJob, self, request)

    def on_engine(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Run a function, plain or async, on the workspace's loop and return its result; see `CellRunner.wait`."""
        return self.runner.on_engine(fn, *args)

    def is_attended(self) -> bool:
        """Whether a person may be present; see `CardHost.is_attended`."""
        return self.cards.is_attended()

    def register(self, tool: Tool) -> None:
        """Add a tool that a cell defined with ``@tool``."""
        self.workspace.registry.register(tool)

    def _on_main(self, call_id: str, fn: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        card = self.broker.card_of(call_id)
        return self.link.run_on_main(fn, card.waiter if card is not None else None)


class CallJob:
    """A tool call that a cell makes."""

    def __init__(self, notebook: Notebook, request: CallRequest, waiter: Waiter | None) -> None:
        notebook.prepare_start()
        self._notebook = notebook
        workspace = notebook.workspace
        if request.make is not None:
            self._call = request.make(workspace, request)
        else:
            self._call = workspace.start(
                request.tool, request.arguments, agent=request.agent, timeout=request.timeout, by="user"
            )
        self.card = notebook.cards.add_call(self._call, waiter=waiter, quiet=request.quiet)
        self.base = project_folder(workspace)

    @property
    def name(self) -> str:
        """The call of a tool."""
        return f"{self._call.part.tool} call"

    @property
    def status(self) -> str:
        """The call's outcome, or its state."""
        return self._call.part.outcome or self._call.part.state.status

    def abort(self, reason: str) -> None:
        """End the call."""
        self._call.abort(reason)

    async def run(self) -> ToolResult:
        """Run the call."""
        self.card.start()
        return await self._call.run()

    def value(self, outcome: ToolResult, *, is_shown: bool = True) -> CellResult:
        """The result, which displays nothing where the cell shows the card."""
        values = dict(vars(outcome))  # not through `records`, which would make rows of a frame
        values["records"] = values.pop("_records")
        cell = self._notebook.shell.execution_count if is_shown else -1
        return CellResult(**values, tool=self._call.part.tool, cell=cell, bundle=self.card.bundle())


class _Presenter:
    """Shows the calls of other libraries' agents in cards of the cell that runs the agent (`core.host.Presenter`)."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    async def run(self, id: str, make: Callable[[], Call]) -> ToolResult:
        """See `Presenter.run`."""
        return await self._notebook.runner.run_async(self._job(id, make))

    def run_sync(self, id: str, make: Callable[[], Call]) -> ToolResult:
        """See `Presenter.run_sync`."""
        return self._notebook.runner.run_sync(self._job(id, make))

    def _job(self, id: str, make: Callable[[], Call]) -> MakeJob[ToolResult]:
        return self._notebook.call(CallRequest(id, make=lambda workspace, request: make()))


def _working_folder() -> Path:
    """The kernel's working folder.

    Raises:
        ToolError: it has been deleted.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ToolError("The kernel's working folder was deleted. Go to another one with %cd.") from None


__all__ = ["CallJob", "Notebook", "current"]
