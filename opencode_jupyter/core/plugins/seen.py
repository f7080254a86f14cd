"""What plugins were looked for in, to notice cheaply that it changed: asked before every call."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from ..config import Config

Stamp = tuple[int, int] | None


PAUSE = 50
"""How many times as long as a look at the folders took the next one is not due: calls made one after another spend a
fiftieth of their time on looking at most."""
LONGEST = 0.02
"""Seconds; the longest such time."""


@dataclass(slots=True)
class Seen:
    """How things stood.

    Attributes:
        files: stamps of what plugins were made of, compared at every call; None for what was not there.
        folders: stamps of where plugins may come to be. There are many (two in each config folder, most of them not
            there), so they are compared again only when that is due, or for a person's call.
        path: ``sys.path``.
        config: the configuration, with what plugins changed in it.
    """

    files: tuple[tuple[str, Stamp], ...]
    folders: tuple[tuple[str, Stamp], ...] = ()
    path: list[str] = field(default_factory=list)
    config: Config | None = None
    _looked: float = 0.0
    _due: float = 0.0

    @classmethod
    def now(cls, files: Iterable[Path], folders: Iterable[Path]) -> Self:
        """How these files and folders stand."""
        return cls(_stamps(files), _stamps(folders))

    def holds(self, config: Config, since: float = 0.0) -> bool:
        """Return whether everything still stands so.

        Args:
            config: the configuration as it is now.
            since: a time of the monotonic clock; what was seen before it counts for nothing.
        """
        if self.config is not config or self.path != sys.path:
            return False
        if self.files and not _same(self.files):
            return False
        began = time.monotonic()
        if began < self._due and self._looked >= since:
            return True
        if not _same(self.folders):
            self._due = 0.0
            return False
        self._looked = began
        now = time.monotonic()
        self._due = now + min(LONGEST, (now - began) * PAUSE)
        return True


def _same(stamps: tuple[tuple[str, Stamp], ...]) -> bool:
    return all(_stamp(name) == stamp for name, stamp in stamps)


def _stamps(paths: Iterable[Path]) -> tuple[tuple[str, Stamp], ...]:
    names = dict.fromkeys(os.fspath(path) for path in paths)
    return tuple((name, _stamp(name)) for name in names)


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size
