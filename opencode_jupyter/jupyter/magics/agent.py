"""``%%agent`` and ``%agent``: what their lines and bodies mean; the waiting is `running`'s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError
from ...core.permission.modes import mode_of
from ...core.suggestions import did_you_mean
from ..tables import Message, Table
from .agent_models import key_of, missing_keys
from .agent_request import AgentRequest, parse
from .interpolation import fill
from .words import line_error, words

if TYPE_CHECKING:
    from ...agent.model import ModelInfo
    from ...core.sessions import Session
    from ..notebook import Notebook

USAGE = "%%agent [-m MODEL] [-a AGENT] ..., and the request on the lines below"
KEYS = ("agent", "model", "session", "mode", "tokens", "cost")


def read(line: str, cell: str, variables: Mapping[str, Any]) -> AgentRequest:
    """What a ``%%agent`` cell asks for.

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
    given = words(line)
    if not given:
        return state(notebook)
    if len(given) == 1 and given[0].text == "models":
        return models(notebook)
    said: list[str] = []
    at = 0
    while at < len(given):
        word = given[at]
        if word.text in ("-m", "--model"):
            if at + 1 == len(given):
                raise line_error(
                    "-m needs a model: provider:model, or default for the configured one.", line, word.start
                )
            chosen = given[at + 1].text
            notebook.agent.model = "" if chosen == "default" else chosen
            said.append(f"model {chosen}")
            at += 2
            continue
        if word.text.startswith("-"):
            raise line_error(f"%agent has no option {word.text}; it takes -m MODEL.", line, word.start)
        _switch(notebook, word.text, line, word.start, last=at + 1 == len(given))
        said.append(f"agent {word.text}")
        at += 1
    return Message(f"The next %%agent goes to {', '.join(said)}.")


def _switch(notebook: Notebook, name: str, line: str, position: int, *, last: bool) -> None:
    agents = notebook.workspace.agents
    agent = agents.get(name)
    if agent is None or not last:
        offered = talkable(notebook)
        hint = did_you_mean(name, offered)
        raise line_error(
            f"There is no agent {name}.{hint} Agents: {', '.join(offered)}. To send a request, use {USAGE}.",
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
    session = _session(notebook)
    workspace = notebook.workspace
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


def _session(notebook: Notebook) -> Session | None:
    here = notebook.agent_session
    if not isinstance(here, str):
        return here
    try:
        return notebook.workspace.sessions.get(here)
    except KeyError:
        return None


def _model(notebook: Notebook, session: Session | None, agent: str) -> str:
    """The model that the next request asks, and who says so."""
    if notebook.agent.model:
        return f"{notebook.agent.model} (set by %agent)"
    found = notebook.workspace.agents.get(agent)
    for known, by in (
        (found.model if found else None, f"agent {agent}"),
        (session.model if session else None, "session"),
    ):
        if known:
            return f"{known.get('providerID')}:{known.get('modelID')} (from the {by})"
    configured = notebook.workspace.config.get("model")
    if configured:
        return f"{configured} (from the configuration)"
    return notebook.agent.last_model or "none yet: give -m MODEL"


def _spent(session: Session) -> tuple[int, float]:
    tokens, cost = 0, 0.0
    for message in session.messages:
        if message.role == "assistant":
            used = message.info.get("tokens") or {}
            cache = used.get("cache") or {}
            parts = (
                used.get("input"),
                used.get("output"),
                used.get("reasoning"),
                cache.get("read"),
                cache.get("write"),
            )
            tokens += int(used.get("total") or sum(n or 0 for n in parts))
            cost += float(message.info.get("cost") or 0)
    return tokens, cost


def known_models(notebook: Notebook) -> list[ModelInfo]:
    """The models that are known without asking anybody."""
    from ...agent.models import known

    found: list[ModelInfo] = notebook.on_engine(lambda: list(known(notebook.workspace)))
    return found


def models(notebook: Notebook) -> Table:
    """Known models, with what is known of each."""
    rows = [
        {
            "model": info.full,
            "name": info.name,
            "key": key_of(info, notebook.workspace),
            "context": f"{info.context:,}" if info.context else "",
            "pictures": info.images,
            "per 1M tokens in/out": f"${info.cost.input:g} / ${info.cost.output:g}" if info.cost else "",
        }
        for info in known_models(notebook)
    ]
    return Table(
        rows,
        ("model", "name", "key", "context", "pictures", "per 1M tokens in/out"),
        notes=[*missing_keys(), "Any other name of a provider's model works too; scripted:FILE needs no key."],
        empty="No models are known; name one as provider:model.",
    )
