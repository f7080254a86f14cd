"""Model providers: those that need no configuration but a key, and the configuration's ``provider`` entries."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ..compaction.limits import LONGEST_ANSWER
from ..errors import ModelError
from ..model import Cost, ModelInfo
from . import catalogue
from .settings import Format, ModelSettings, Provider


def _like_openai(id: str, name: str, url: str, *keys: str, keyless: bool = False, url_from: str = "") -> Provider:
    return Provider(id, name, "openai", url, (url_from,) if url_from else (), keys, keyless)


BUILT_IN: dict[str, Provider] = {
    provider.id: provider
    for provider in (
        Provider("openai", "OpenAI", "openai", "https://api.openai.com/v1", ("OPENAI_BASE_URL",), ("OPENAI_API_KEY",)),
        Provider(
            "anthropic",
            "Anthropic",
            "anthropic",
            "https://api.anthropic.com/v1",
            ("ANTHROPIC_BASE_URL",),
            ("ANTHROPIC_API_KEY",),
        ),
        Provider(
            "google",
            "Google",
            "google",
            "https://generativelanguage.googleapis.com/v1beta",
            ("GOOGLE_GEMINI_BASE_URL",),
            ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ),
        _like_openai("ollama", "Ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY", keyless=True),
        _like_openai("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", keyless=True),
        _like_openai(
            *("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
            url_from="OPENROUTER_BASE_URL",
        ),
        _like_openai("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        _like_openai("deepseek", "DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
        _like_openai("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        _like_openai("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY"),
        _like_openai("togetherai", "Together AI", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        _like_openai("fireworks-ai", "Fireworks AI", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        _like_openai("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
        _like_openai(
            *("moonshotai", "Moonshot AI", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
            url_from="MOONSHOTAI_BASE_URL",
        ),
        _like_openai("zai", "Z.AI", "https://api.z.ai/api/paas/v4", "ZHIPU_API_KEY", "ZAI_API_KEY"),
        _like_openai("huggingface", "Hugging Face", "https://router.huggingface.co/v1", "HF_TOKEN"),
        _like_openai("nvidia", "NVIDIA", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    )
}
"""By id. Ids and variables are OpenCode's (the models.dev list); addresses are the providers' own."""

ALIASES = {"google-gla": "google", "gemini": "google", "claude": "anthropic", "together": "togetherai"}
"""Other names that people and libraries use."""

FORMAT_OF_PACKAGE: dict[str, Format] = {
    "@ai-sdk/openai-compatible": "openai",
    "@ai-sdk/openai": "openai",
    "@ai-sdk/anthropic": "anthropic",
    "@ai-sdk/google": "google",
    "@openrouter/ai-sdk-provider": "openai",
    "@ai-sdk/groq": "openai",
    "@ai-sdk/mistral": "openai",
    "@ai-sdk/xai": "openai",
    "@ai-sdk/deepseek": "openai",
    "@ai-sdk/togetherai": "openai",
    "@ai-sdk/fireworks": "openai",
    "@ai-sdk/cerebras": "openai",
    "@ai-sdk/deepinfra": "openai",
    "@ai-sdk/perplexity": "openai",
}
"""Wire format of the provider packages that a configuration names."""

UNSUPPORTED = {
    "amazon-bedrock": "Amazon's own signatures",
    "google-vertex": "Google Cloud's logins",
    "google-vertex-anthropic": "Google Cloud's logins",
    "azure": "Azure's addresses",
    "github-copilot": "GitHub's login",
    "opencode": "OpenCode's own service",
}
"""OpenCode's providers that are not supported here, and what they would need."""


def split_name(name: str) -> tuple[str, str]:
    """Provider and model of a name; the provider is "" if there is none.

    The first ``:`` or ``/`` separates the two; the model's id may contain both
    (``openrouter/qwen/qwen3:free``, ``ollama:hf.co/x/y:Q4``).
    """
    name = name.strip()
    separator = re.search("[:/]", name)
    if separator is None:
        return "", name
    return name[: separator.start()].strip(), name[separator.end() :].strip()


# ---------------------------------------------------------------------- the configuration's entries

TIMEOUT = 300.0
"""Seconds without data, unless the configuration sets another limit; OpenCode's."""
NO_LIMIT = float("inf")
PRICES = ("input", "output", "cache_read", "cache_write")


class _Entry(BaseModel):
    """An object of the configuration in OpenCode's form. It may have other keys too; null is as good as no value."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        return {k: v for k, v in value.items() if v is not None} if isinstance(value, Mapping) else value


EntryType = TypeVar("EntryType", bound=_Entry)


def _check_url(url: str) -> str:
    if url and not url.startswith(("http://", "https://")):
        raise ValueError(f"is {url!r}; it must start with https:// or http://")
    with contextlib.suppress(ValueError):
        if urlsplit(url).port != 0:
            return url.rstrip("/")
    raise ValueError(f"is {url!r}; a port is a number from 1 to 65535")


def _seconds(value: Any) -> float:
    """Milliseconds as seconds; False is no limit."""
    if value is False:
        return NO_LIMIT
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ValueError("must be a number of milliseconds, or false for no limit")
    return value / 1000


def _format(npm: Any) -> Format:
    if not isinstance(npm, str) or npm not in FORMAT_OF_PACKAGE:
        raise ValueError(f"is {npm!r}; supported are {', '.join(FORMAT_OF_PACKAGE)}")
    return FORMAT_OF_PACKAGE[npm]


Url = Annotated[str, AfterValidator(_check_url)]
Timeout = Annotated[float | None, BeforeValidator(_seconds)]


class _Options(_Entry):
    """How a provider is reached; other keys go into its requests, but for those that are only for OpenCode."""

    url: Url = Field(default="", alias="baseURL")
    key: str = Field(default="", alias="apiKey")
    headers: dict[str, str] = {}
    timeout: Timeout = None
    chunk_timeout: Timeout = Field(default=None, alias="chunkTimeout")
    set_cache_key: Any = Field(default=None, alias="setCacheKey")
    name: Any = None
    include_usage: Any = Field(default=None, alias="includeUsage")


class _ProviderEntry(_Entry):
    name: str = ""
    format: Annotated[Format | None, BeforeValidator(_format), Field(alias="npm")] = None
    api: Url = ""
    env: tuple[str, ...] | None = None
    options: _Options = _Options()
    models: dict[str, dict[str, Any] | None] = {}


class _ModelEntry(_Entry):
    id: str = ""
    name: str = ""
    limit: dict[str, Annotated[int, Field(ge=0)] | None] = {}
    cost: dict[str, Any] | None = None
    attachment: bool | None = None
    modalities: dict[str, tuple[str, ...] | None] = {}
    reasoning: bool | None = None
    temperature: bool = True
    tool_call: bool = True
    options: dict[str, Any] = {}
    headers: dict[str, str] = {}


def configured_provider(id: str, value: Mapping[str, Any]) -> Provider:
    """The provider that an entry of the configuration describes or, if it is a built-in one, changes.

    Raises:
        ModelError: kind ``setup``: the entry has a mistake.
    """
    entry, built_in = _validate(_ProviderEntry, value, id), BUILT_IN.get(id)
    base = built_in or Provider(id, id, "openai", keyless=not entry.env)
    options, models = entry.options, {name: model or {} for name, model in entry.models.items()}
    timeout = next((t for t in (options.chunk_timeout, options.timeout) if t is not None), TIMEOUT)
    provider = replace(
        base,
        name=entry.name or base.name,
        format=entry.format or base.format,
        url=options.url or entry.api or base.url,
        url_from=() if options.url else base.url_from,
        keys=base.keys if entry.env is None else entry.env,
        headers=options.headers,
        key=options.key.strip(),
        timeout=None if timeout == NO_LIMIT else timeout,
        models=models,
        options=dict(options.model_extra or {}),
        listed=built_in is None and bool(models),
    )
    if not provider.url:
        raise _mistake(id, 'has no address: give it {"options": {"baseURL": "https://.../v1"}}')
    return provider


def describe_model(provider: Provider, id: str) -> tuple[ModelInfo, ModelSettings]:
    """Information about a model, from the configuration's entry before the catalogue, and its settings.

    Raises:
        ModelError: kind ``setup``: the entry has a mistake.
    """
    entry = _validate(_ModelEntry, provider.models.get(id, {}), provider.id, f"models.{id}")
    info = catalogue.describe_model(provider.id, entry.id or id, provider.format)
    images, documents = info.images, info.documents
    if entry.attachment is not None:
        images, documents = entry.attachment, entry.attachment and documents
    if (accepted := entry.modalities.get("input")) is not None:
        images, documents = "image" in accepted, "pdf" in accepted
    output = entry.limit.get("output")
    prices = {k: v for k, v in (entry.cost or {}).items() if k in PRICES and isinstance(v, int | float)}
    info = replace(
        info,
        model=id,
        name=entry.name or info.name,
        context=entry.limit.get("context") or info.context,
        output=output or info.output,
        cost=info.cost if entry.cost is None else Cost(**prices),
        images=images,
        documents=documents,
        reasons=info.reasons if entry.reasoning is None else entry.reasoning,
    )
    # No more than what is kept free for an answer (`compaction.limits.usable`): a server that adds the two up would
    # refuse a conversation that still fits.
    max_output = min(output, LONGEST_ANSWER, info.context // 2 or output) if output else None
    return info, ModelSettings(entry.options, entry.headers, entry.temperature, entry.tool_call, max_output)


def _validate(form: type[EntryType], value: Any, id: str, path: str = "") -> EntryType:
    try:
        return form.model_validate(value)
    except ValidationError as invalid:
        error = invalid.errors(include_url=False)[0]
        location = ".".join(filter(None, (path, *map(str, error["loc"]))))
        problem = "must be an object ({...})" if error["type"] in ("model_type", "dict_type") else error["msg"]
        raise _mistake(id, f"{location} {problem.removeprefix('Value error, ')}".strip()) from None


def _mistake(id: str, problem: str) -> ModelError:
    return ModelError(f"provider.{id} of the configuration: {problem}", "setup", provider=id)
