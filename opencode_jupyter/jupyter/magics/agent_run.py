"""A model's run that a cell starts with ``%%agent``, and its answer as the cell's value."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from ...agent.answer import Answer
from ...core.errors import ToolError
from ...core.permission.modes import DEFAULT, mode_of, set_mode
from ..cards.display import Bundle, CellValue
from ..cards.run_card import RunCard
from .agent import choose_model

if TYPE_CHECKING:
    from ...agent.run import Run
    from ...agent.sessions import AgentSession
    from ..kernel.waiting import Waiter
    from ..notebook import Notebook
    from .agent import AgentRequest


@dataclass(repr=False)
class CellAnswer(CellValue, Answer):
    """An `Answer` as a cell's value: its card is on display already, so the cell's own echo stays silent."""

    cell: int = -1
    bundle: Bundle = field(default_factory=lambda: ({}, {}))


class RunJob:
    """A model's run that a cell starts."""

    def __init__(self, notebook: Notebook, request: AgentRequest, waiter: Waiter | None) -> None:
        notebook.prepare_start()
        self._notebook = notebook
        self.base = None
        self._run: Run = notebook.on_engine(_start, notebook, request)[0]  # in a tuple: a run is awaitable itself
        self.card: RunCard = _card(notebook, self._run, waiter, request)

    @property
    def name(self) -> str:
        """A run."""
        return "agent run"

    @property
    def status(self) -> str:
        """The run's status."""
        return self._run.status

    def abort(self, reason: str) -> None:
        """End the run."""
        self._run.abort(reason)

    async def run(self) -> Answer:
        """Run it, and note its agent, model and session."""
        notebook, run = self._notebook, self._run
        self.card.start()
        try:
            self.card.answer = answer = await run.run()
            return answer
        finally:
            self.card.end()
            if run.session.id:
                notebook.agent.note_run(run)
                notebook.agent_session = run.session

    def value(self, outcome: Answer, *, is_shown: bool = True) -> CellAnswer:
        """The answer, which displays nothing where the cell shows the card."""
        values = {f.name: getattr(outcome, f.name) for f in fields(Answer)}
        cell = self._notebook.shell.execution_count if is_shown else -1
        return CellAnswer(**values, cell=cell, bundle=self.card.bundle())


async def _start(notebook: Notebook, request: AgentRequest) -> tuple[Run]:
    workspace = notebook.workspace
    session = await _session(notebook, request)
    agent = request.agent or notebook.agent.name or None
    if agent is None and (session is None or not session.agent):
        agent = notebook.settings.agent or None
    if session is not None and session.run is not None:
        raise ToolError(
            f"the session {session.title!r} is running another request. Wait for it, stop it on its card, or "
            "start a new session with --new."
        )
    if agent is not None and agent not in workspace.agents and not workspace.registry.is_fresh():
        await workspace.registry.prepare()  # a plugin may bring it
    model = await choose_model(workspace, notebook.agent, request, session, agent)
    if request.mode is not None:
        session = session or workspace.sessions.create()
        set_mode(workspace, session, request.mode)
    run = workspace.sessions.prompt(
        request.text,
        model=model,
        agent=agent,
        session=session,
        format=request.format,
        max_steps=request.max_steps,
        record=request.record,
    )
    return (run,)


async def _session(notebook: Notebook, request: AgentRequest) -> AgentSession | None:
    """The session to continue; None for a new one."""
    if request.session is not None:
        from .sessions import find_session

        return await find_session(notebook.workspace, request.session)
    if request.new or notebook.agent_session is None:
        return None
    try:
        return await notebook.workspace.sessions.open(notebook.agent_session)
    except KeyError:
        return None  # it was deleted


def _card(notebook: Notebook, run: Run, waiter: Waiter | None, request: AgentRequest) -> RunCard:
    workspace = notebook.workspace

    def mode() -> str:
        name = mode_of(workspace, run.session)
        return "" if name == DEFAULT else name

    quiet = request.quiet or notebook.settings.quiet
    prints = notebook.kernel is None and not quiet
    card = RunCard(run, waiter, mode=mode, prints=prints, quiet=quiet, **notebook.cards.options())
    notebook.cards.attach(card)
    return card
