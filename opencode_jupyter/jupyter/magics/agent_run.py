"""How a cell runs a prompt: awaited, blocking, or in the background; the same three ways as a call (`notebook`)."""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ...agent.answer import Answer
from ...core.errors import InvalidArgumentsError, ToolAbortedError, ToolError
from ...core.permission.modes import DEFAULT, mode_of, set_mode
from ..cards.display import Bundle, CellValue
from ..cards.run_card import RunCard
from ..cards.run_printer import Printer
from ..error_display import for_cell
from ..kernel import ipykernel_compat
from ..kernel.background import Handle
from ..kernel.ipykernel_interrupts import ended_by_cancel
from ..kernel.waiting import Waiter, in_cell_task, interrupts_held
from ..tools.capture_context import outside
from .agent_models import choose
from .agent_request import AgentRequest

if TYPE_CHECKING:
    from ...agent.run import Run
    from ...agent.sessions import AgentSession
    from ...workspace import Workspace
    from ..notebook import Notebook


@dataclass(repr=False)
class CellAnswer(CellValue, Answer):
    """An `Answer` as a cell's value: its card is on display already, so the cell's own echo stays silent."""

    cell: int = -1
    bundle: Bundle = field(default_factory=lambda: ({}, {}))


def _cell_answer(answer: Answer, card: RunCard, notebook: Notebook) -> CellAnswer:
    """The answer of a run as the value of the cell that runs now."""
    values = {f.name: getattr(answer, f.name) for f in fields(Answer)}
    return CellAnswer(**values, cell=notebook.shell.execution_count, bundle=card.bundle())


def run_sync(notebook: Notebook, request: AgentRequest) -> CellAnswer:
    """Run a prompt and block until it ends: for plain functions and terminals.

    Raises:
        ToolError: the run's error; see `Run.run`.
    """
    with interrupts_held():
        waiter, card, future = _begin(notebook, request)
        with outside():
            try:
                answer = waiter.wait(future)
            except BaseException as error:
                whole = notebook.needs_whole_error(card)
                notebook.end(card)
                raise for_cell(error, whole=whole) from None
            notebook.end(card)
        return _cell_answer(answer, card, notebook)


@ended_by_cancel
async def run_async(notebook: Notebook, request: AgentRequest) -> CellAnswer:
    """Run a prompt and await its end.

    Raises:
        ToolError: the run's error; see `Run.run`.
    """
    waiter, card, future = _begin(notebook, request)
    try:
        answer = await waiter.wait_async(future)
    except BaseException as error:
        whole = notebook.needs_whole_error(card)
        notebook.end(card)
        if isinstance(error, ToolAbortedError) and error.reason == "interrupted" and in_cell_task():
            error = KeyboardInterrupt()  # the run was over before the cell had heard of it
        raise for_cell(error, whole=whole) from None
    notebook.end(card)
    return _cell_answer(answer, card, notebook)


class RunHandle(Handle["Answer"]):
    """A run in the background: ``handle.result()``, ``handle.cancel()``, ``await handle``."""

    def __init__(self, notebook: Notebook, future: concurrent.futures.Future[Answer], card: RunCard) -> None:
        super().__init__(notebook, future, card, card.run.abort)
        self._run = card.run

    @property
    def _name(self) -> str:
        return "run"

    def __repr__(self) -> str:
        return f"<agent run, {self._run.status}: .result(), .cancel(), or await it>"


def start_background(notebook: Notebook, request: AgentRequest) -> RunHandle:
    """Run a prompt that goes on when the cell is over; its card lives on."""
    run = _make(notebook, request)
    card = _card(notebook, run, None, request)
    if card.can_live and not request.quiet:
        with outside():
            card.show()
    future = notebook.engine.submit(_work(notebook, run, card))

    def ended(_: Any) -> None:
        notebook.detach(card)
        if not ipykernel_compat.call_later_on_main(notebook.kernel, lambda: notebook.settle(card)):
            notebook.settle(card)

    future.add_done_callback(ended)
    return RunHandle(notebook, future, card)


def _begin(notebook: Notebook, request: AgentRequest) -> tuple[Waiter, RunCard, concurrent.futures.Future[Answer]]:
    run = _make(notebook, request)
    waiter = Waiter(run.abort, lambda: notebook.beat(waiter))
    card = _card(notebook, run, waiter, request)
    return waiter, card, notebook.engine.submit(_work(notebook, run, card))


def _make(notebook: Notebook, request: AgentRequest) -> Run:
    if not notebook.alive:
        raise ToolError("The tool system was closed. Load it again with %reload_ext opencode_jupyter.")
    notebook.follow_folder()

    async def make() -> tuple[Run]:  # in a tuple: a run is awaitable itself
        session = await _session(notebook, request)
        agent = request.agent or notebook.agent.name or None
        if agent is None and (session is None or not session.agent):
            agent = notebook.settings.agent or None
        if session is not None and session.run is not None:
            raise ToolError(
                f"the session {session.title!r} is running another request. Wait for it, stop it on its card, or "
                "start a new session with --new."
            )
        if agent is not None and agent not in notebook.workspace.agents and not notebook.workspace.registry.is_fresh():
            await notebook.workspace.registry.prepare()  # a plugin may bring it
        model = choose(notebook.workspace, notebook.agent, request, session, agent)
        if request.mode is not None:
            session = session or notebook.workspace.sessions.create()
            set_mode(notebook.workspace, session, request.mode)
        run = notebook.workspace.sessions.prompt(
            request.text,
            model=model,
            agent=agent,
            session=session,
            format=request.format,
            max_steps=request.max_steps,
            record=request.record,
        )
        return (run,)

    run: Run = notebook.on_engine(make)[0]
    return run


async def _session(notebook: Notebook, request: AgentRequest) -> AgentSession | None:
    """The session to go on in; None for a new one."""
    if request.session is not None:
        return await find_session(notebook.workspace, request.session)
    here = notebook.agent_session
    if request.new or here is None:
        return None
    try:
        return await notebook.workspace.sessions.open(here)
    except KeyError:
        return None  # it was deleted


async def find_session(workspace: Workspace, name: str) -> AgentSession:
    """The session with this id or title.

    Raises:
        InvalidArgumentsError: there is none, or there are several.
    """
    loaded = [s for s in workspace.sessions.list() if name in (s.id, s.title)]
    found = {s.id: s.title for s in loaded}
    if workspace.store is not None and not any(s.id == name for s in loaded):
        for info in await workspace.store.found(name):
            found.setdefault(str(info["id"]), str(info.get("title") or ""))
    exact = [id for id, title in found.items() if name in (id, title)] or list(found)
    if len(exact) == 1:
        return await workspace.sessions.open(exact[0])
    if not exact:
        raise InvalidArgumentsError(f"There is no session {name!r}; %sessions lists the sessions.")
    several = ", ".join(f"{id} ({found[id]})" for id in exact[:5])
    raise InvalidArgumentsError(f"{name!r} matches several sessions: {several}. Give the id of one.")


def _card(notebook: Notebook, run: Run, waiter: Waiter | None, request: AgentRequest) -> RunCard:
    workspace = notebook.workspace

    def mode() -> str:
        name = mode_of(workspace, run.session)
        return "" if name == DEFAULT else name

    terminal = notebook.kernel is None and waiter is not None and not (request.quiet or notebook.settings.quiet)
    card = RunCard(
        run,
        waiter,
        mode=mode,
        printer=Printer(waiter.submit) if terminal and waiter is not None else None,
        quiet=request.quiet or notebook.settings.quiet,
        **notebook.card_options(),
    )
    notebook.attach(card)
    return card


async def _work(notebook: Notebook, run: Run, card: RunCard) -> Answer:
    card.begin()
    try:
        answer = await run.run()
        card.answer = answer
        return answer
    finally:
        card.end()
        if run.session.id:
            notebook.agent.used(run)
            notebook.agent_session = run.session
