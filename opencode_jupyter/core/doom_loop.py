"""The doom-loop guard: the same call three times in a row, or two calls in turn, asks a person first.

OpenCode looks at the last three parts of one message (reference: core.md 8.1). A text part or a new message
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


def key(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call as canonical text: the order of keys does not matter."""
    try:
        if _SCALARS.issuperset(map(type, arguments.values())):  # most calls; five times as fast as JSON
            return f"{tool}{sorted(arguments.items())}"
        return tool + _encode(arguments)
    except (TypeError, ValueError):
        return tool + repr(arguments)


def looping(recent: deque[str]) -> bool:
    """Whether the session's last calls (the current one last) go round in a circle."""
    if len(recent) >= THRESHOLD and recent[-1] == recent[-2] == recent[-3]:
        return True
    return len(recent) >= 4 and recent[-1] == recent[-3] and recent[-2] == recent[-4] and recent[-1] != recent[-2]
