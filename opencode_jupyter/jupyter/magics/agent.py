"""``%%agent`` and ``%agent``: what their lines mean, and what ``%agent`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError
from ...core.permission.modes import mode_of
from ...core.suggestions import did_you_mean
from ..tables import Message, Table
from .agent_models import models
from .agent_request import AgentRequest, parse
from .commands import AGENT_OPTIONS, Options
from .interpolation import fill
from .line_syntax import line_error, next_word
from .option_reader import read_option

if TYPE_CHECKING:
    from ...core.sessions import Session
    from ..notebook import Notebook

USAGE = "%%agent [-m MODEL] [-a AGENT] ..., and the request on the lines below"
MODEL_OPTION = Options(AGENT_OPTIONS.by_name["-m"])


def read(line: str, cell: str, variables: Mapping[str, Any]) -> AgentRequest:
    """The request of a ``%%agent`` cell.

    Raises:
        InvalidArgumentsError: an option or a name in braces makes no sense, or there is no request.
    """
    request = parse(line, variables)
    request.text = fill(cell, variables).strip("\n")
    if not request.text.strip():
        raise InvalidArgumentsError(f"There is no request: {USAGE}.")
    return request


def run(notebook: Notebook, line: str) -> Any:
    """``%agent``, ``%agent NAME``, ``%agent -m MODEL``, ``%agent models``.

    Raises:
        InvalidArgumentsError: there is no such agent or option.
    """
    if not line.strip():
        return state(notebook)
    if line.strip() == "models":
        return models(notebook)
    changes: list[str] = []
    position = 0
    while (word := next_word(line, position)) is not None:
        if word.raw.startswith("-"):
            _, model, _, position = read_option(MODEL_OPTION, line, word.start, "%agent takes -m MODEL.")
            notebook.agent.model = "" if model == "default" else model
            changes.append(f"model {model}")
        else:
            position = word.end
            _switch(notebook, word.text, line, word.start, last=next_word(line, position) is None)
            changes.append(f"agent {word.text}")
    return Message(f"The next %%agent goes to {', '.join(changes)}.")


def _switch(notebook: Notebook, name: str, line: str, position: int, *, last: bool) -> None:
    agents = notebook.workspace.agents
    agent = agents.get(name)
    if agent is None or not last:
        names = talkable(notebook)
        hint = did_you_mean(name, names)
        raise line_error(
            f"There is no agent {name}.{hint} Agents: {', '.join(names)}. To send a request, use {USAGE}.",
            line,
            position,
        )
    if agent.mode == "subagent":
        raise line_error(f"{name} only works for other agents (its mode is subagent).", line, position)
    notebook.agent.name = name


def talkable(notebook: Notebook) -> list[str]:
    """The agents that a person can talk to."""
    return [key for key, agent in notebook.workspace.agents.items() if agent.mode != "subagent" and not agent.hidden]


def state(notebook: Notebook) -> Table:
    """Who answers the next request, where, and what the session has taken so far."""
    session, workspace = notebook.agent_session, notebook.workspace
    agent = notebook.agent.name or (session.agent if session is not None else "") or workspace.agent().name
    rows = [
        {"": "agent", "now": agent},
        {"": "model", "now": _model(notebook, session, agent)},
        {"": "session", "now": f"{session.title} ({session.id})" if session is not None else "a new one"},
        {"": "mode", "now": mode_of(workspace, session)},
    ]
    if session is not None:
        tokens, cost = _spent(session)
        count = len(session.messages)
        rows.append({"": "tokens", "now": f"{tokens:,} in {count} message{'' if count == 1 else 's'}"})
        if cost:
            rows.append({"": "cost", "now": f"${cost:.4f}"})
    notes = [
        f"{USAGE}. %%agent? shows the options.",
        f"%agent NAME switches ({', '.join(talkable(notebook))}), %agent -m MODEL sets the model,",
        "%agent models lists some.",
    ]
    return Table(rows, ("", "now"), notes=notes)


def _model(notebook: Notebook, session: Session | None, agent: str) -> str:
    """The model of the next request, and where it is set."""
    if notebook.agent.model:
        return f"{notebook.agent.model} (set by %agent)"
    info = notebook.workspace.agents.get(agent)
    for model, origin in ((info and info.model, f"agent {agent}"), (session and session.model, "session")):
        if model:
            return f"{model.get('providerID')}:{model.get('modelID')} (from the {origin})"
    configured = notebook.workspace.config.get("model")
    if configured:
        return f"{configured} (from the configuration)"
    return notebook.agent.last_model or "none yet: give -m MODEL"


def _spent(session: Session) -> tuple[int, float]:
    tokens, cost = 0, 0.0
    for message in session.messages:
        if message.role == "assistant":
            used = message.info.get("tokens") or {}
            parts = {**used, **(used.get("cache") or {})}
            counted = ("input", "output", "reasoning", "read", "write")
            tokens += int(used.get("total") or sum(parts.get(name) or 0 for name in counted))
            cost += float(message.info.get("cost") or 0)
    return tokens, cost
