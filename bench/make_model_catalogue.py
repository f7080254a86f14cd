"""Make `agent/models/catalogue.json`: windows and prices of well-known models, out of the genai-prices package.

    python bench/make_model_catalogue.py

The table is kept in the package because loading genai-prices takes half a second and 60 MB, and what a completion or a
cost needs of it is a few kilobytes. Columns: tokens of the window, US dollars per million tokens of input, output,
cache read, cache write; 0 where it is not known. Prices are those of the day it is made, without tiers.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

OURS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "deepseek": "deepseek",
    "groq": "groq",
    "mistral": "mistral",
    "x-ai": "xai",
    "moonshotai": "moonshotai",
    "cerebras": "cerebras",
    "zai": "zai",
}
"""Their provider ids and ours."""
NO_CHAT = re.compile(
    r"embed|whisper|tts|audio|realtime|transcribe|moderation|image|dall|davinci|curie|babbage|^ada$|instruct$|live|voice|"
    r"orpheus|guard|robotics|ocr|search|translate|rosalind|cyber|computer-use|omni|banana|^ft:|^text-|deep-research|"
    r"claude-2|claude-v1|gpt-3|gemini-pro|gemini-flash-|gemini-1|^gpt-4o:|-maas$|preview-\d"
)
"""Models that hold no conversation, or are no more."""
NO_CHAT_COMPLETIONS = re.compile(r"-pro\b|codex")
"""OpenAI's models that only its newer API has, which is not spoken yet."""


def number(price: Any) -> float:
    base = getattr(price, "base", price)
    return float(base) if base is not None else 0.0


def main() -> None:
    from genai_prices.data_snapshot import get_snapshot

    now = datetime.now(UTC)
    table: dict[str, dict[str, list[float]]] = {}
    for provider in get_snapshot().providers:
        if provider.id not in OURS:
            continue
        of = table.setdefault(OURS[provider.id], {})
        for model in provider.models:
            if provider.id == "openai" and NO_CHAT_COMPLETIONS.search(model.id):
                continue
            if NO_CHAT.search(model.id) or (provider.id == "google" and model.id.startswith("claude")):
                continue
            price = model.get_prices(now)
            kinds = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
            of[model.id] = [model.context_window or 0, *(number(getattr(price, kind)) for kind in kinds)]
    target = Path(__file__).parents[1] / "opencode_jupyter" / "agent" / "models" / "catalogue.json"
    rows = ",\n".join(
        f'  "{name}": {{\n'
        + ",\n".join(f"    {json.dumps(model)}: {json.dumps(row)}" for model, row in of.items())
        + "\n  }"
        for name, of in table.items()
    )
    about = json.dumps(
        f"made by bench/make_model_catalogue.py from genai-prices {version('genai-prices')}, {now:%Y-%m-%d}"
    )
    target.write_text(f'{{\n  "about": {about},\n  "models": {{\n{rows}\n  }}\n}}\n')


if __name__ == "__main__":
    main()
