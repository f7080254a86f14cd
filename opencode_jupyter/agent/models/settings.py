"""A provider and a model as the configuration and the tables describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Format = Literal["openai", "anthropic", "google"]
"""Wire formats: OpenAI's chat completions, Anthropic's messages, Google's generateContent."""


@dataclass(frozen=True, slots=True)
class Provider:
    """How a provider is reached.

    Attributes:
        id: as in ``provider:model``.
        name: for people.
        format: the wire format it speaks.
        url: the base URL, without a slash at its end; "" if it is not known.
        url_from: variables that override the base URL.
        keys: variables that may hold a key.
        keyless: it works without one (a server of the user's own).
        headers: sent with each request.
        key: the configuration's own key.
        timeout: seconds without data after which a request is given up; None for no limit.
        models: the configuration's entries for its models.
        options: the configuration's other options, for requests.
        listed: it has only the models named in `models`.
    """

    id: str
    name: str
    format: Format
    url: str = ""
    url_from: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    keyless: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: str = field(default="", repr=False)
    timeout: float | None = 300.0
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    listed: bool = False


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The configuration of a model beyond its `ModelInfo`.

    Attributes:
        options: sent with each request, under the request's own.
        headers: sent with each request.
        temperature: it takes one.
        tools: it can call tools.
        max_output: most tokens of an answer, where the configuration limits them; else None.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    temperature: bool = True
    tools: bool = True
    max_output: int | None = None
