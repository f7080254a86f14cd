"""Which model a request goes to, and the words where there is none: what could be asked, and which keys were found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agent.errors import ModelError

if TYPE_CHECKING:
    from ...agent.model import ModelInfo
    from ...core.sessions import Session
    from ...workspace import Workspace
    from .agent_request import AgentRequest
    from .agent_state import AgentState

SHOWN = 6
"""Models that an error names."""
WELL_KNOWN = ("openai", "anthropic", "google", "openrouter")
"""Providers whose variables are named where no key is found."""


def choose(
    workspace: Workspace, state: AgentState, request: AgentRequest, session: Session | None, agent: str | None
) -> str | None:
    """The model that is named: by the cell, by ``%agent -m``; in a new session the one that was used last.

    Returns:
        Its name; None where the agent, the session or the configuration names one.

    Raises:
        ModelError: none is named anywhere.
    """
    chosen = request.model or state.model
    if chosen:
        return chosen
    who = workspace.agent(agent or (session.agent if session is not None else None) or None)
    if who.model or (session is not None and session.model) or workspace.config.get("model"):
        return None
    if state.last_model:
        return state.last_model
    raise ModelError(nothing_named(workspace), "setup")


def nothing_named(workspace: Workspace) -> str:
    """What to do where no model is named, with what there is to choose from."""
    from ...agent.models import known
    from ...agent.models.providers import BUILT_IN

    found = keys_found()
    own = list(workspace.config.get("provider", default={}) or {})
    listed = [info.full for info in known(workspace)]
    usable = [name for name in listed if name.partition(":")[0] in {*found, *own}]
    words = (
        'No model is named. Give one with -m (openai:gpt-5), with %agent -m MODEL for all cells, or as "model" in '
        "opencode.json."
    )
    if found:
        said = ", ".join(f"{id} ({variable})" for id, variable in found.items())
        words += f" Keys were found for {said}."
    else:
        variables = ", ".join(BUILT_IN[id].keys[0] for id in WELL_KNOWN)
        words += f" No provider's key is in the environment ({variables}, ...)."
    if usable:
        more = f", ... (%agent models lists {len(usable)})" if len(usable) > SHOWN else ""
        words += f" To choose from: {', '.join(usable[:SHOWN])}{more}."
    return words + " ollama:NAME uses a model on this machine, and scripted:FILE needs no model at all."


def keys_found() -> dict[str, str]:
    """By provider: the variable of the environment that holds its key."""
    from ...agent.models.keys import from_environment
    from ...agent.models.providers import BUILT_IN

    found = {id: from_environment(provider.keys) for id, provider in BUILT_IN.items()}
    return {id: key.source for id, key in found.items() if key is not None}


def missing_keys() -> list[str]:
    """A line that names well-known providers without a key, and the variable that would hold it."""
    from ...agent.models.providers import BUILT_IN

    found = keys_found()
    missing = [f"{id} ({BUILT_IN[id].keys[0]})" for id in WELL_KNOWN if id not in found]
    return [f"No key in the environment for {', '.join(missing)}."] if missing else []


def key_of(info: ModelInfo, workspace: Workspace) -> str:
    """Where the key for a model is, in a word or two; empty if it was not found (the keyring is not asked)."""
    from ...agent.models.providers import BUILT_IN

    found = keys_found().get(info.provider)
    entry = (workspace.config.get("provider", default={}) or {}).get(info.provider)
    if isinstance(entry, dict) and (entry.get("options") or {}).get("apiKey"):
        return "configuration"
    if found:
        return found
    built_in = BUILT_IN.get(info.provider)
    return "none needed" if built_in is not None and built_in.keyless else ""
