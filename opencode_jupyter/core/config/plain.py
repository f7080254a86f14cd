"""What a parser or a person's code gave, as plain JSON data of a sane size: what follows may walk it without a care."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEEPEST = 100
"""Objects and lists within each other. OpenCode's files have six; Python's own walks end at about 300."""
MOST = 500_000
"""Entries in all: an object that holds itself, or a YAML file whose names stand for each other, has no end."""


class UnusableError(ValueError):
    """The data can't be used as a configuration. Says why."""


def plain(data: Any) -> Any:
    """A copy: objects as dicts whose keys are texts, lists and tuples as lists, anything else as it is.

    Raises:
        UnusableError: it is nested too deeply, too large, or a key holds a NUL character.
    """
    return _Copier().copy(data, 0)


class _Copier:
    def __init__(self) -> None:
        self.count = 0

    def copy(self, value: Any, depth: int) -> Any:
        self.count += 1
        if self.count > MOST:
            raise UnusableError(f"has more than {MOST:,} entries")
        if isinstance(value, Mapping):
            self._deeper(depth)
            return {_key(str(key)): self.copy(entry, depth + 1) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            self._deeper(depth)
            return [self.copy(entry, depth + 1) for entry in value]
        return value

    @staticmethod
    def _deeper(depth: int) -> None:
        if depth >= DEEPEST:
            raise UnusableError(f"is nested too deeply (more than {DEEPEST} objects and lists within each other)")


def _key(text: str) -> str:
    if "\0" in text:
        raise UnusableError(f"has a key with a NUL character: {text[:40]!r}")
    return text
