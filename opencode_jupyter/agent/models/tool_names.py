"""Tool names as providers take them, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 64
"""Characters of a tool's name, for OpenAI and Google; Anthropic takes more."""
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")


def wire_name(name: str) -> str:
    """A tool's name in the characters ``^[a-zA-Z0-9_-]{1,64}$`` that every provider takes; the same each time."""
    plain = _OTHER.sub("_", name)
    if plain == name and 0 < len(name) <= LONGEST:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]  # two names must not become one
    return f"{plain[: LONGEST - 9]}_{mark}"


def ours(names: Iterable[str]) -> dict[str, str]:
    """Name on the wire -> our name, for the names that differ."""
    return {wire: name for name in names if (wire := wire_name(name)) != name}
