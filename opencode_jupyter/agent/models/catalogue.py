"""Windows, prices and media types of well-known models, without a request."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from ..model import Cost, ModelInfo

FILE = Path(__file__).with_name("catalogue.json")
"""Made by ``bench/make_model_catalogue.py``."""
_VERSION = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|\d{3}|latest|preview(-[\d-]+)?)$")
"""The suffix of a model's name for a dated version."""
_NO_IMAGES = re.compile(r"^(gpt-3\.5|o1-mini|o1-preview|o3-mini|gpt-oss|gpt-4$|gpt-4-\d{4}|gpt-4-32k|claude-2|gemma-)")
"""Models of OpenAI, Anthropic and Google that take no pictures."""
_IMAGES = re.compile(
    r"vl\b|-vl|vision|pixtral|llava|moondream|gemma-?[34]|llama-?4|grok-(2-vision|[4-9])|kimi-k(2\.[5-9]|[3-9])|"
    r"mistral-(small|medium|large)|gpt-(4o|4\.1|[5-9])|claude|gemini|glm-\d(\.\d)?v|minicpm-v|internvl",
    re.IGNORECASE,
)
"""Models of others that do."""
_THINKS = re.compile(r"gemini-(2\.5|[3-9])(?!.*(image|tts|live))")
"""Google's models that show their thoughts when they are asked to."""
MAJOR = ("openai", "anthropic", "google")


@cache
def table() -> dict[str, dict[str, list[float]]]:
    """Provider -> model -> window and prices; see the script that makes it for the columns."""
    rows: dict[str, dict[str, list[float]]] = json.loads(FILE.read_text("utf-8"))["models"]
    return rows


def row(provider: str, model: str) -> list[float] | None:
    """A model's row: under its own name, or under that of the model whose version it is."""
    names = table().get(provider)
    if names is None:
        maker, _, rest = model.partition("/")  # openrouter and the like sell others' models
        return row(maker, rest.partition(":")[0].replace(".", "-" if maker == "anthropic" else ".")) if rest else None
    plain = _VERSION.sub("", model)
    return next((names[name] for name in (model, plain, f"{plain}-latest", f"{plain}-0") if name in names), None)


def describe_model(provider: str, model: str, wire: str) -> ModelInfo:
    """Information about a model from the catalogue; mostly empty for a new one."""
    columns = row(provider, model)
    cost = None
    if columns is not None and (columns[1] or columns[2]):
        cost = Cost(columns[1], columns[2], columns[3] or columns[1], columns[4] or columns[1])
    if provider in MAJOR:
        images = _NO_IMAGES.match(model) is None
        documents = images
    else:
        images, documents = _IMAGES.search(model) is not None, wire != "openai"
    return ModelInfo(
        provider=provider,
        model=model,
        api_id=model,
        name=model,
        context=int(columns[0]) if columns else 0,
        images=images,
        documents=documents,
        media_in_results=wire == "anthropic",
        reasons=wire == "google" and _THINKS.search(model) is not None,
        cost=cost,
    )


def models(provider: str) -> list[str]:
    """The well-known models of a provider."""
    return list(table().get(provider, ()))


def providers_of(model: str) -> list[str]:
    """The providers that have a model of this name."""
    return [provider for provider in table() if row(provider, model) is not None]
