"""Reads ``provider:model`` and ``provider/model``, and finds names that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_NEAR = 3


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


def near(name: str, names: Iterable[str]) -> list[str]:
    """The names that resemble one, the best first."""
    by_lower = {one.lower(): one for one in names}
    found = difflib.get_close_matches(name.lower(), list(by_lower), MOST_NEAR, 0.6)
    return [by_lower[one] for one in found]


def suggestion(found: list[str]) -> str:
    """`` Did you mean a or b?``, or nothing."""
    return f" Did you mean {' or '.join(found)}?" if found else ""
