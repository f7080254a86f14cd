"""Names that resemble a misspelled one, for error messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST = 3
"""Names that are suggested."""


def near_names(name: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The names that resemble one (as alike as `cutoff`; 1 is the same), the best first."""
    from difflib import get_close_matches  # here: only errors need it

    by_lower = {known.lower(): known for known in names}
    return [by_lower[match] for match in get_close_matches(name.lower(), list(by_lower), MOST, cutoff)]


def suggestion(names: Sequence[str]) -> str:
    """`` Did you mean a, b or c?``, or nothing."""
    if not names:
        return ""
    *others, last = names
    return f" Did you mean {', '.join(others)} or {last}?" if others else f" Did you mean {last}?"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`suggestion` of the names that resemble one."""
    return suggestion(near_names(name, names))
