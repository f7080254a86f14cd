"""From a model's name to the model: what a workspace keeps of providers and models."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.suggestions import near_names, suggestion
from ..errors import ModelError
from ..model import Model, ModelInfo
from . import catalogue
from .anthropic import AnthropicAdapter
from .api_keys import KeySource, from_environment
from .connection import ProviderConnection
from .google import GoogleAdapter
from .openai import OpenAIAdapter
from .provider_adapter import ProviderAdapter
from .provider_model import ProviderModel
from .providers import ALIASES, BUILT_IN, UNSUPPORTED, configured_provider, describe_model, split_name
from .settings import Provider
from .trust import is_trusted, trust_subject

if TYPE_CHECKING:
    from ...core.host import ToolHost

ADAPTERS: dict[str, type[ProviderAdapter]] = {
    "openai": OpenAIAdapter,
    "anthropic": AnthropicAdapter,
    "google": GoogleAdapter,
}


class ModelResolver:
    """The models of a workspace: one object for each name, as long as the configuration stays."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._config: Any = None
        self._models: dict[str, Model] = {}
        self._connections: dict[str, ProviderConnection] = {}
        self._old: list[ProviderConnection] = []

    async def close(self) -> None:
        """Close all connections."""
        for connection in (*self._old, *self._connections.values()):
            await connection.aclose()
        self._models, self._connections, self._old = {}, {}, []

    async def model(self, name: str) -> Model:
        """See `agent.models.resolve`."""
        id, model = split_name(name)
        if id == "scripted":
            return await asyncio.to_thread(self._scripted, model)
        if self._config is not self._workspace.config:
            # connections that are in use end with their requests; they are closed with the workspace
            self._old += self._connections.values()
            self._config, self._models, self._connections = self._workspace.config, {}, {}
        resolved = self._models.get(name)
        if resolved is None:
            resolved = self._models[name] = self._create(name, id, model)
        return resolved

    def _scripted(self, path: str) -> Model:
        from ..scripted import load

        if not path:
            raise ModelError("scripted: needs a file, as in scripted:lesson.yaml", "script", provider="scripted")
        # by the whole path, so that a session that is opened again finds it
        return load(self._workspace.directory / Path(path).expanduser(), name=path)

    # ------------------------------------------------------------------ providers

    def entries(self) -> dict[str, Any]:
        """The configuration's entries for providers."""
        configured = self._workspace.config.get("provider")
        return {str(id): entry for id, entry in configured.items()} if isinstance(configured, Mapping) else {}

    def provider(self, name: str) -> Provider:
        """A provider by its id.

        Raises:
            ModelError: kind ``setup``: there is none, it is switched off, it has a mistake, or it is not trusted.
        """
        configured = self.entries()
        id = name if name in configured or name in BUILT_IN else ALIASES.get(name.lower(), name)
        if id in UNSUPPORTED and id not in configured:
            text = f"{id} is not spoken to here: it would take {UNSUPPORTED[id]}"
            raise ModelError(f"{text}. A proxy that speaks OpenAI's format can be used instead.", "setup", provider=id)
        if not self._enabled(id):
            text = f"The provider {id} is switched off (disabled_providers or enabled_providers of the configuration)"
            raise ModelError(text, "setup", provider=id)
        described = self._described(id, configured)
        if described is None:
            everyone = [*configured, *BUILT_IN, "scripted"]
            text = f"There is no model provider {name!r}.{suggestion(near_names(name, everyone))}"
            own = 'another is {"provider": {"NAME": {"options": {"baseURL": "https://.../v1"}}}} of the configuration'
            raise ModelError(f"{text} There are {', '.join(everyone)}; {own}", "setup", provider=name)
        to_trust = trust_subject(self._workspace, id)
        if not is_trusted(self._workspace, to_trust):
            assert to_trust is not None
            text = f"{to_trust.name}: the project's configuration {to_trust.shown['content']}"
            advice = "Trust it with %tools trust, or put the entry into your own configuration"
            raise ModelError(f"{text}. {advice}.", "setup", provider=id)
        return _with_environment_url(described)

    def _enabled(self, id: str) -> bool:
        only, never = self._workspace.config.get("enabled_providers"), self._workspace.config.get("disabled_providers")
        return (not isinstance(only, list) or id in only) and not (isinstance(never, list) and id in never)

    # ------------------------------------------------------------------ models

    def _create(self, name: str, id: str, model: str) -> Model:
        if not id:
            raise self._no_provider_error(model)
        provider = self.provider(id)
        if not model:
            some = [*provider.models, *catalogue.models(provider.id)][:5]
            example = f" Some: {', '.join(f'{provider.id}:{known_model}' for known_model in some)}" if some else ""
            raise ModelError(f"{name!r} names no model.{example}", "not_found", provider=provider.id)
        if provider.listed and model not in provider.models:
            hint = suggestion([f"{id}:{known_model}" for known_model in near_names(model, provider.models)])
            text = f"provider.{id} of the configuration lists no model {model!r}.{hint}"
            raise ModelError(f"{text} It lists {', '.join(provider.models)}", "not_found", provider=id)
        info, settings = describe_model(provider, model)
        connection = self._connections.setdefault(provider.id, ProviderConnection(provider.timeout))
        names = [*provider.models, *catalogue.models(provider.id)]
        wire = ADAPTERS[provider.format](provider, info, settings)
        return ProviderModel(
            wire,
            KeySource(provider).key,
            connection,
            lambda unknown: [known_model for known_model in near_names(unknown, names) if known_model != unknown],
        )

    def _no_provider_error(self, model: str) -> ModelError:
        if not model:
            return ModelError("No model is named; write one as provider:model, such as openai:gpt-5", "setup")
        full_names = [f"{provider}:{model}" for provider in catalogue.providers_of(model)]
        if not full_names and (model in BUILT_IN or model in self.entries()):
            some = catalogue.models(model)[:3]
            full_names = [f"{model}:{known_model}" for known_model in some]
        if not full_names:
            everything = {
                known_model: provider for provider in catalogue.table() for known_model in catalogue.models(provider)
            }
            full_names = [f"{everything[known_model]}:{known_model}" for known_model in near_names(model, everything)]
        return ModelError(f"{model!r} names no provider; write provider:model.{suggestion(full_names)}", "setup")

    def known(self) -> list[ModelInfo]:
        """See `agent.models.known`."""
        out: list[ModelInfo] = []
        configured = self.entries()
        for id in dict.fromkeys([*configured, *BUILT_IN]):
            try:
                provider = self._described(id, configured)
            except ModelError:
                continue
            if provider is None or not self._enabled(id):
                continue
            usable = provider.keyless or provider.key or from_environment(provider.keys) or id in configured
            more = [] if provider.listed or not usable else catalogue.models(id)
            for model_id in dict.fromkeys([*provider.models, *more]):
                with contextlib.suppress(ModelError):
                    out.append(describe_model(provider, model_id)[0])
        return out

    @staticmethod
    def _described(id: str, entries: Mapping[str, Any]) -> Provider | None:
        """A provider by the configuration's entry, else the built-in one; None if there is neither."""
        entry = entries.get(id)
        return BUILT_IN.get(id) if entry is None else configured_provider(id, entry)


def _with_environment_url(provider: Provider) -> Provider:
    """A provider with the base URL of the environment, where its SDK would take one from there."""
    for name in provider.url_from:
        url = os.environ.get(name, "").strip().rstrip("/")
        if url:
            if provider.id == "anthropic" and not url.endswith("/v1"):
                url += "/v1"  # its SDK puts that in itself
            if provider.id == "google" and not url.rsplit("/", 1)[-1].startswith("v1"):
                url += "/v1beta"
            return replace(provider, url=url)
    if provider.id == "ollama" and provider.url == BUILT_IN["ollama"].url:
        return replace(
            provider, url=ollama_url(os.environ.get("OLLAMA_BASE_URL") or os.environ.get("OLLAMA_HOST") or "")
        )
    return provider


def ollama_url(host: str) -> str:
    """Ollama's base URL from its own variable: a host, host and port, or an address."""
    host = host.strip().rstrip("/")
    if not host:
        return BUILT_IN["ollama"].url
    if "://" not in host:
        host = f"http://{host}" if host.rpartition(":")[2].isdigit() and ":" in host else f"http://{host}:11434"
    host = host.replace("://0.0.0.0", "://127.0.0.1")  # where the server listens, not where it is reached
    return host if host.endswith("/v1") else f"{host}/v1"
