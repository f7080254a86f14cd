"""Reads the configuration's ``provider`` entries, in OpenCode's form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

from ..compaction.limits import LONGEST_ANSWER
from ..errors import ModelError
from ..model import Cost, ModelInfo
from . import catalogue
from .provider_adapter import count
from .providers import BUILT_IN, SPOKEN
from .settings import Format, ModelSettings, Provider

TIMEOUT = 300.0
"""Seconds without data, unless the configuration sets another limit; OpenCode's."""
OWN = frozenset({"baseURL", "apiKey", "headers", "timeout", "chunkTimeout", "setCacheKey", "name", "includeUsage"})
"""Options of a provider that describe its connection; the others go into its requests."""


def provider(id: str, entry: Mapping[str, Any] | None) -> Provider | None:
    """A provider by its id and the configuration's entry for it; None if neither knows it.

    Raises:
        ModelError: kind ``setup``: the entry has a mistake.
    """
    known = BUILT_IN.get(id)
    if entry is None:
        return known
    options = _mapping(id, "options", entry.get("options"))
    models = {
        str(name): _mapping(id, f"models.{name}", model_entry)
        for name, model_entry in _mapping(id, "models", entry.get("models")).items()
    }
    url = options.get("baseURL") or entry.get("api") or (known.url if known else "")
    if not isinstance(url, str) or (url and not url.startswith(("http://", "https://"))):
        raise _mistake(id, f"options.baseURL is {url!r}; it must start with https:// or http://")
    if not _has_valid_port(url):
        raise _mistake(id, f"options.baseURL is {url!r}; a port is a number from 1 to 65535")
    key = options.get("apiKey") or ""
    if not isinstance(key, str):
        raise _mistake(id, "options.apiKey must be a text")
    headers = _mapping(id, "options.headers", options.get("headers"))
    names = entry.get("env")
    keys = tuple(str(model_entry) for model_entry in names) if isinstance(names, list) else known.keys if known else ()
    described = Provider(
        id,
        name=str(entry.get("name") or (known.name if known else id)),
        format=_format(id, entry.get("npm"), known),
        url=url.rstrip("/"),
        url_from=known.url_from if known and not options.get("baseURL") else (),
        keys=keys,
        keyless=known.keyless if known else not keys,
        headers={str(name): str(value) for name, value in headers.items()},
        key=key.strip(),
        timeout=_timeout(id, options),
        models=models,
        options={name: value for name, value in options.items() if name not in OWN},
        listed=known is None and bool(models),
    )
    if not described.url:
        raise _mistake(id, 'has no address: give it {"options": {"baseURL": "https://.../v1"}}')
    return described


def model(of: Provider, id: str) -> tuple[ModelInfo, ModelSettings]:
    """What is known of a model, from the table and, before it, from the configuration."""
    entry = of.models.get(id, {})
    api_id = str(entry.get("id") or id)
    info = replace(catalogue.describe_model(of.id, api_id, of.format), model=id)
    if entry.get("name"):
        info = replace(info, name=str(entry["name"]))
    limit = entry.get("limit")
    most: int | None = None
    if isinstance(limit, Mapping):
        context, output = count(limit.get("context")), count(limit.get("output"))
        info = replace(info, context=context or info.context, output=output or info.output)
        most = _answer_limit(output, info.context) if output else None
    cost = entry.get("cost")
    if isinstance(cost, Mapping):
        kinds = ("input", "output", "cache_read", "cache_write")
        prices = {kind: float(cost[kind]) for kind in kinds if isinstance(cost.get(kind), int | float)}
        info = replace(info, cost=Cost(**prices))
    if isinstance(entry.get("attachment"), bool):
        info = replace(info, images=entry["attachment"], documents=entry["attachment"] and info.documents)
    modalities = entry.get("modalities")
    if isinstance(modalities, Mapping) and isinstance(modalities.get("input"), list):
        info = replace(info, images="image" in modalities["input"], documents="pdf" in modalities["input"])
    if isinstance(entry.get("reasoning"), bool):
        info = replace(info, reasons=entry["reasoning"])
    options, headers = entry.get("options"), entry.get("headers")
    return info, ModelSettings(
        options=dict(options) if isinstance(options, Mapping) else {},
        headers={str(k): str(v) for k, v in headers.items()} if isinstance(headers, Mapping) else {},
        temperature=entry.get("temperature") is not False,
        tools=entry.get("tool_call") is not False,
        most=most,
    )


def _answer_limit(output: int, context: int) -> int:
    """Tokens to ask for at the most, where `limit.output` limits the model's answers.

    No more than what is kept free for an answer (`compaction.limits.usable`): a server that adds the two up would
    refuse a conversation that still fits.
    """
    return min(output, LONGEST_ANSWER, context // 2 or output)


def _format(id: str, npm: Any, known: Provider | None) -> Format:
    if npm is None:
        return known.format if known else "openai"
    format = SPOKEN.get(str(npm))
    if format is None:
        raise _mistake(id, f"npm is {npm!r}; what is spoken here: {', '.join(SPOKEN)}")
    return cast("Format", format)


def _timeout(id: str, options: Mapping[str, Any]) -> float | None:
    """Seconds without a word. ``chunkTimeout`` and ``timeout`` are milliseconds; False is no limit."""
    for name in ("chunkTimeout", "timeout"):
        value = options.get(name)
        if value is False:
            return None
        if value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise _mistake(id, f"options.{name} must be a number of milliseconds, or false for no limit")
        return value / 1000
    return TIMEOUT


def _mapping(id: str, key: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _mistake(id, f"{key} must be an object ({{...}})")
    return dict(value)


def _mistake(id: str, problem: str) -> ModelError:
    return ModelError(f"provider.{id} of the configuration: {problem}", "setup", provider=id)


def _has_valid_port(url: str) -> bool:
    """Return whether the port that an address names, if it names one, can be."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False
