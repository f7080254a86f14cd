"""``%%agent`` and ``%agent``: reading their lines, the state that ``%agent`` shows, and the model of a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...agent.errors import ModelError
from ...core.errors import InvalidArgumentsError
from ...core.permission.modes import mode_of
from ...core.suggestions import did_you_mean
from ..tables import Notice, Table
from .command_line import read_option
from .commands import AGENT_OPTIONS, MagicOptions
from .interpolation import fill
from .line_syntax import line_error, lookup, next_word

if TYPE_CHECKING:
    from ...agent.model import ModelInfo
    from ...core.sessions import Session
    from ...workspace import Workspace
    from ..notebook import AgentState, Notebook

USAGE = "%%agent [-m MODEL] [-a AGENT] ..., and the request on the lines below"
MODEL_OPTION = MagicOptions(AGENT_OPTIONS.by_name["-m"])
BELOW = "The request itself goes below this line."
SHOWN = 6
"""Models that an error names."""
WELL_KNOWN = ("openai", "anthropic", "google", "openrouter")
"""Providers whose variables are named where no key is found."""


@dataclass(slots=True)
class AgentRequest:
    """The request of a ``%%agent`` cell; see `AGENT_OPTIONS`.

    Attributes:
        text: the request, the notebook's values filled in.
    """

    text: str = ""
    model: str | None = None
    agent: str | None = None
    session: str | None = None
    new: bool = False
    max_steps: int | None = None
    format: Any = None
    mode: str | None = None
    record: Path | None = None
    output: str | None = None
    quiet: bool = False
    background: bool = False


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


def parse(line: str, variables: Mapping[str, Any]) -> AgentRequest:
    """Read the line.

    Args:
        line: the text after ``%%agent``.
        variables: the names that ``--json`` and ``--type`` may use.

    Raises:
        InvalidArgumentsError: an option is not known, or its value makes no sense; it points at the place.
    """
    request, position, used = AgentRequest(), 0, set()
    while (word := next_word(line, position)) is not None:
        if not word.raw.startswith("-"):
            raise line_error(f"%%agent takes options only. {BELOW}", line, word.start)
        option, value, start, position = read_option(AGENT_OPTIONS, line, word.start, BELOW)
        if option.name in used:
            raise line_error(f"{option.name} is given twice.", line, word.start)
        used.add(option.name)
        try:
            setattr(request, option.field, _value(option.name, value, variables))
        except InvalidArgumentsError as error:
            raise line_error(str(error), line, start) from None
    if request.new and request.session:
        raise line_error("--new and --session cannot be combined.", line, 0)
    if {"--json", "--type"} <= used:
        raise line_error("--json and --type cannot be combined: both set the form of the answer.", line, 0)
    return request


def _value(name: str, value: Any, variables: Mapping[str, Any]) -> Any:
    if name == "--json" and isinstance(value, str):
        return _schema(value, variables)
    if name == "--type":
        return _type(value, variables)
    return Path(value).expanduser() if name == "--record" else value


def _schema(value: str, variables: Mapping[str, Any]) -> Any:
    if value.endswith(".json"):
        try:
            schema = json.loads(Path(value).expanduser().read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidArgumentsError(f"--json: {value} can't be read ({error.strerror}).") from None
        except ValueError as error:
            raise InvalidArgumentsError(f"--json: {value} is not JSON ({error}).") from None
    else:
        schema = lookup("--json", value, variables)
    if not isinstance(schema, dict):
        raise InvalidArgumentsError(f"--json needs a JSON schema (a dict), and {value} is {type(schema).__name__}.")
    return schema


def _type(value: str, variables: Mapping[str, Any]) -> Any:
    """The type that ``--type`` names: a variable, an attribute of one, or one of Python's own.

    Raises:
        InvalidArgumentsError: there is none of that name.
    """
    plain = {"int": int, "float": float, "str": str, "bool": bool, "dict": dict, "list": list}
    if value in plain and value not in variables:
        return plain[value]
    type_ = lookup("--type", value, variables)
    if isinstance(type_, (str, int, float, bytes)) or type_ is None:
        raise InvalidArgumentsError(f"--type needs a type, and {value} is {type(type_).__name__}.")
    return type_


def run(notebook: Notebook, line: str) -> Any:
    """``%agent``, ``%agent NAME``, ``%agent -m MODEL`` (or both), ``%agent models``.

    Raises:
        InvalidArgumentsError: there is no such agent or option.
        ModelError: the model's name has no provider.
    """
    if not line.strip():
        return _show_state(notebook)
    if line.strip() == "models":
        return _models(notebook)
    name, position = "", 0
    model: str | None = None
    while (word := next_word(line, position)) is not None:
        if word.raw.startswith("-"):
            _, model, _, position = read_option(MODEL_OPTION, line, word.start, "%agent takes -m MODEL.")
        elif name:
            raise line_error(f"%agent takes one agent. To send a request, use {USAGE}.", line, word.start)
        else:
            name, position = word.text, word.end
            _check_agent(notebook, name, line, word.start)
    if model not in (None, "default"):
        notebook.on_engine(_check_provider, notebook.workspace, model)
    changes = []
    if name:
        notebook.agent.name = name
        changes.append(f"agent {name}")
    if model is not None:
        notebook.agent.model = "" if model == "default" else model
        changes.append(f"model {model}")
    return Notice(f"The next %%agent goes to {', '.join(changes)}.")


def _check_agent(notebook: Notebook, name: str, line: str, position: int) -> None:
    agent = notebook.workspace.agents.get(name)
    if agent is None:
        names = primary_agents(notebook)
        raise line_error(
            f"There is no agent {name}.{did_you_mean(name, names)} Agents: {', '.join(names)}. "
            f"To send a request, use {USAGE}.",
            line,
            position,
        )
    if agent.mode == "subagent":
        raise line_error(f"{name} only works for other agents (its mode is subagent).", line, position)


def primary_agents(notebook: Notebook) -> list[str]:
    """The agents that can answer a person's request."""
    return [key for key, agent in notebook.workspace.agents.items() if agent.mode != "subagent" and not agent.hidden]


def _show_state(notebook: Notebook) -> Table:
    """The agent, model and session of the next request, and the session's tokens and cost."""
    session, workspace = notebook.agent_session, notebook.workspace
    agent = notebook.agent.name or (session.agent if session is not None else "") or workspace.agent().name
    rows = [
        {"": "agent", "now": agent},
        {"": "model", "now": _model(notebook, session, agent)},
        {"": "session", "now": f"{session.title} ({session.id})" if session is not None else "a new one"},
        {"": "mode", "now": mode_of(workspace, session)},
    ]
    if session is not None:
        tokens, cost = _usage(session)
        count = len(session.messages)
        rows.append({"": "tokens", "now": f"{tokens:,} in {count} message{'' if count == 1 else 's'}"})
        if cost:
            rows.append({"": "cost", "now": f"${cost:.4f}"})
    notes = [
        f"{USAGE}. %%agent? shows the options.",
        f"%agent NAME switches ({', '.join(primary_agents(notebook))}), %agent -m MODEL sets the model,",
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


def _usage(session: Session) -> tuple[int, float]:
    tokens, cost = 0, 0.0
    for message in session.messages:
        if message.role == "assistant":
            used = message.info.get("tokens") or {}
            parts = {**used, **(used.get("cache") or {})}
            counted = ("input", "output", "reasoning", "read", "write")
            tokens += int(used.get("total") or sum(parts.get(name) or 0 for name in counted))
            cost += float(message.info.get("cost") or 0)
    return tokens, cost


# ---------------------------------------------------------------------- models


async def choose_model(
    workspace: Workspace, state: AgentState, request: AgentRequest, session: Session | None, agent: str | None
) -> str | None:
    """Choose the model: that of the cell or of ``%agent -m``; in a new session the one that was used last.

    Returns:
        Its name; None where the agent, the session or the configuration names one.

    Raises:
        ModelError: none is named anywhere, or the cell's names no provider.
    """
    if request.model:
        await _check_provider(workspace, request.model)
        return request.model
    if state.model:
        return state.model
    info = workspace.agent(agent or (session.agent if session is not None else None) or None)
    if info.model or (session is not None and session.model) or workspace.config.get("model"):
        return None
    if state.last_model:
        return state.last_model
    raise ModelError(_no_model_text(workspace), "setup")


async def _check_provider(workspace: Workspace, name: str) -> None:
    """Check that a model's name begins with a provider. Which providers there are is known when plugins have run.

    Raises:
        ModelError: it does not; the message names the models of that name.
    """
    from ...agent.models import resolve
    from ...agent.models.providers import split_name

    if not split_name(name)[0]:
        await resolve(workspace, name)


def _no_model_text(workspace: Workspace) -> str:
    """The error text where no model is named, with the models to choose from."""
    from ...agent.models import known
    from ...agent.models.providers import BUILT_IN

    keys = _provider_keys()
    configured = list(workspace.config.get("provider", default={}) or {})
    usable = [info.full for info in known(workspace) if info.full.partition(":")[0] in {*keys, *configured}]
    text = (
        'No model is named. Give one with -m (openai:gpt-5), with %agent -m MODEL for all cells, or as "model" in '
        "opencode.json."
    )
    if keys:
        found_for = ", ".join(f"{id} ({variable})" for id, variable in keys.items())
        text += f" Keys were found for {found_for}."
    else:
        variables = ", ".join(BUILT_IN[id].keys[0] for id in WELL_KNOWN)
        text += f" No provider's key is in the environment ({variables}, ...)."
    if usable:
        more = f", ... (%agent models lists {len(usable)})" if len(usable) > SHOWN else ""
        text += f" To choose from: {', '.join(usable[:SHOWN])}{more}."
    return text + " ollama:NAME uses a model on this machine, and scripted:FILE needs no model at all."


def _provider_keys() -> dict[str, str]:
    """By provider: the variable of the environment that holds its key."""
    from ...agent.models.api_keys import from_environment
    from ...agent.models.providers import BUILT_IN

    keys = {id: from_environment(provider.keys) for id, provider in BUILT_IN.items()}
    return {id: key.source for id, key in keys.items() if key is not None}


def known_models(notebook: Notebook) -> list[ModelInfo]:
    """The models that are known without a request to a provider."""
    from ...agent.models import known

    models: list[ModelInfo] = notebook.on_engine(lambda: list(known(notebook.workspace)))
    return models


def _models(notebook: Notebook) -> Table:
    """A table of the known models."""
    from ...agent.models.providers import BUILT_IN

    keys = _provider_keys()
    rows = [
        {
            "model": info.full,
            "name": info.name,
            "key": _key_of(info, notebook.workspace, keys),
            "context": f"{info.context:,}" if info.context else "",
            "pictures": info.images,
            "per 1M tokens in/out": f"${info.cost.input:g} / ${info.cost.output:g}" if info.cost else "",
        }
        for info in known_models(notebook)
    ]
    missing = [f"{id} ({BUILT_IN[id].keys[0]})" for id in WELL_KNOWN if id not in keys]
    notes = [f"No key in the environment for {', '.join(missing)}."] if missing else []
    return Table(
        rows,
        ("model", "name", "key", "context", "pictures", "per 1M tokens in/out"),
        notes=[*notes, "Any other name of a provider's model works too; scripted:FILE needs no key."],
        empty="No models are known; name one as provider:model.",
    )


def _key_of(info: ModelInfo, workspace: Workspace, keys: dict[str, str]) -> str:
    """The origin of a model's key, short; empty if it was not found (the keyring is not read)."""
    from ...agent.models.providers import BUILT_IN

    entry = (workspace.config.get("provider", default={}) or {}).get(info.provider)
    if isinstance(entry, dict) and (entry.get("options") or {}).get("apiKey"):
        return "configuration"
    if info.provider in keys:
        return keys[info.provider]
    built_in = BUILT_IN.get(info.provider)
    return "none needed" if built_in is not None and built_in.keyless else ""
