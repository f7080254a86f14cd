"""The model of a request, the known models and keys, and the error where no model is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agent.errors import ModelError
from ..tables import Table

if TYPE_CHECKING:
    from ...agent.model import ModelInfo
    from ...core.sessions import Session
    from ...workspace import Workspace
    from ..notebook import Notebook
    from ..settings import AgentState
    from .agent import AgentRequest

SHOWN = 6
"""Models that an error names."""
WELL_KNOWN = ("openai", "anthropic", "google", "openrouter")
"""Providers whose variables are named where no key is found."""


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
        await check_provider(workspace, request.model)
        return request.model
    if state.model:
        return state.model
    info = workspace.agent(agent or (session.agent if session is not None else None) or None)
    if info.model or (session is not None and session.model) or workspace.config.get("model"):
        return None
    if state.last_model:
        return state.last_model
    raise ModelError(no_model_text(workspace), "setup")


async def check_provider(workspace: Workspace, name: str) -> None:
    """Check that a model's name begins with a provider. Which providers there are is known when plugins have run.

    Raises:
        ModelError: it does not; the message names the models of that name.
    """
    from ...agent.models import resolve
    from ...agent.models.providers import split_name

    if not split_name(name)[0]:
        await resolve(workspace, name)


def no_model_text(workspace: Workspace) -> str:
    """The error text where no model is named, with the models to choose from."""
    from ...agent.models import known
    from ...agent.models.providers import BUILT_IN

    keys = provider_keys()
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


def provider_keys() -> dict[str, str]:
    """By provider: the variable of the environment that holds its key."""
    from ...agent.models.api_keys import from_environment
    from ...agent.models.providers import BUILT_IN

    keys = {id: from_environment(provider.keys) for id, provider in BUILT_IN.items()}
    return {id: key.source for id, key in keys.items() if key is not None}


def missing_keys() -> list[str]:
    """A line that names well-known providers without a key, and the variable that would hold it."""
    from ...agent.models.providers import BUILT_IN

    keys = provider_keys()
    missing = [f"{id} ({BUILT_IN[id].keys[0]})" for id in WELL_KNOWN if id not in keys]
    return [f"No key in the environment for {', '.join(missing)}."] if missing else []


def known_models(notebook: Notebook) -> list[ModelInfo]:
    """The models that are known without a request to a provider."""
    from ...agent.models import known

    models: list[ModelInfo] = notebook.on_engine(lambda: list(known(notebook.workspace)))
    return models


def models(notebook: Notebook) -> Table:
    """A table of the known models."""
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


def key_of(info: ModelInfo, workspace: Workspace) -> str:
    """The origin of a model's key, short; empty if it was not found (the keyring is not read)."""
    from ...agent.models.providers import BUILT_IN

    variable = provider_keys().get(info.provider)
    entry = (workspace.config.get("provider", default={}) or {}).get(info.provider)
    if isinstance(entry, dict) and (entry.get("options") or {}).get("apiKey"):
        return "configuration"
    if variable:
        return variable
    built_in = BUILT_IN.get(info.provider)
    return "none needed" if built_in is not None and built_in.keyless else ""
