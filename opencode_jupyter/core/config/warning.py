"""A mistake in a config that was worked around, and who is told of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

LONGEST = 60
"""Characters of a wrong value that are shown."""

UNTRUSTED = "project configuration"
"""What a person trusts by trusting a project's configuration; key of the warning about one that is not trusted."""

Keys = tuple[str, ...]
Report = Callable[[Keys, str], None]
"""Told of a mistake: where (the keys down to it) and what is wrong, with what to write instead."""


class ConfigWarning(NamedTuple):
    """A mistake in a config that was worked around.

    Attributes:
        message: what is wrong and what to do.
        path: the file (or ``OPENCODE_PERMISSION`` and the like).
        line: 1-based, if known.
        key: the entry, such as ``permission.bash``.
    """

    message: str
    path: str = ""
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}" if where else self.message


def shown(value: Any) -> str:
    """A value as a warning shows it."""
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
