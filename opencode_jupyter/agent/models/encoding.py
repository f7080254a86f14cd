"""JSON that is made once and sent many times.

A conversation grows by a turn or two at each step, and a provider wants the whole of it each time. So every turn is
encoded when it is first sent and its bytes are kept beside it; a request is these bytes, joined.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from ..model import ToolSpec
from ..turns import Turn

T = TypeVar("T")
_LONE = re.compile("[\ud800-\udfff]")
"""Half characters, as bytes of another encoding become when they are read with ``surrogateescape``."""


def encode(value: Any) -> bytes:
    """A value as compact JSON in UTF-8, whatever strings and numbers are in it.

    What JSON has no form for becomes the next best: half a character becomes U+FFFD, an infinite number null.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _LONE.sub("\ufffd", text).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


class TurnCache(Generic[T]):
    """The encoded form of each turn, for as long as the turn exists."""

    def __init__(self, make: Callable[[Turn], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Turn, T] = WeakKeyDictionary()

    def __call__(self, turn: Turn) -> T:
        """The encoded form, made now if it is new."""
        encoded = self._made.get(turn)
        if encoded is None:
            encoded = self._made[turn] = self._make(turn)
        return encoded


class ToolsCache(Generic[T]):
    """The encoded form of the last list of tools, which stays the same for most of a session."""

    def __init__(self, make: Callable[[Sequence[ToolSpec]], T]) -> None:
        self._make = make
        self._last: tuple[tuple[ToolSpec, ...], T] | None = None

    def __call__(self, tools: Sequence[ToolSpec]) -> T:
        """The encoded form, made now if it is new."""
        if self._last is not None:
            before, encoded = self._last
            if len(before) == len(tools) and all(a is b for a, b in zip(before, tools, strict=True)):
                return encoded
        self._last = (tuple(tools), self._make(tools))
        return self._last[1]


def join_members(head: dict[str, Any], **parts: bytes) -> bytes:
    """A JSON object of what is encoded now (`head`, not empty) and of members that are JSON already."""
    pieces = [encode(head)[:-1]]
    for name, value in parts.items():
        pieces += (b',"', name.encode(), b'":', value)
    pieces.append(b"}")
    return b"".join(pieces)


def join_array(items: Sequence[bytes]) -> bytes:
    """A JSON array of what is JSON already."""
    return b"[" + b",".join(items) + b"]"
