"""The doom-loop guard: the same call three times in a row, or two calls in turn, needs approval.

OpenCode looks at the last three parts of one message (docs/opencode/core.md 8.1). A text part or a new message
hides a loop there, and A-B-A-B is not seen; so this looks at the session's last calls, on canonical arguments.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

THRESHOLD = 3
"""Same calls in a row, the current one included."""

_SCALARS = frozenset({str, int, float, bool, type(None)})
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


Key = tuple[str, Any]
"""A tool and its arguments: pairs in order, or text."""


def key(tool: str, arguments: Mapping[str, Any]) -> Key:
    """A call in canonical form: the order of keys does not matter, and nothing that changes later is in it.

    A number is the same with and without ``.0``, as in JavaScript.
    """
    try:
        kinds = set(map(type, arguments.values()))
        if _SCALARS.issuperset(kinds):  # most calls; many times as fast as JSON
            return tool, sorted((_without_whole_floats(arguments) if float in kinds else arguments).items())
        return tool, _encode(_without_whole_floats(arguments))
    except (TypeError, ValueError):
        return tool, repr(arguments)


def _without_whole_floats(value: Any) -> Any:
    """The same value, every float in it that has no fraction as an integer."""
    if type(value) is float:
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {name: _without_whole_floats(entry) for name, entry in value.items()}
    return [_without_whole_floats(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def is_looping(recent: deque[Key]) -> bool:
    """Return whether the session's last calls (the current one last) go round in a circle."""
    if len(recent) < THRESHOLD or recent[-1] != recent[-3]:
        return False
    if _are_identical(recent[-1], recent[-2], recent[-3]):
        return True
    turns = len(recent) >= 4 and recent[-2] == recent[-4]
    return turns and _are_identical(recent[-1], recent[-3]) and _are_identical(recent[-2], recent[-4])


def _are_identical(*keys: Key) -> bool:
    """Return whether keys that are equal are the same: for Python 1, 1.0 and True are equal."""
    return len(set(map(repr, keys))) == 1
