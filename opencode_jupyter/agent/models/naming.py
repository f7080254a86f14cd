"""Reads ``provider:model`` and ``provider/model``."""

from __future__ import annotations


def split(name: str) -> tuple[str, str]:
    """Provider and model of a name; the provider is "" if there is none.

    What comes first of ``:`` and ``/`` stands between the two; the model's id may hold both
    (``openrouter/qwen/qwen3:free``, ``ollama:hf.co/x/y:Q4``).
    """
    name = name.strip()
    places = [at for at in (name.find(":"), name.find("/")) if at >= 0]
    if not places:
        return "", name
    at = min(places)
    return name[:at].strip(), name[at + 1 :].strip()
