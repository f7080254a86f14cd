"""What plugins were looked for in, to notice cheaply that it changed: asked before every call."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from ..config import Config

Stamp = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Seen:
    """How things stood.

    Attributes:
        stamps: of files and folders, None for those that were not there.
        path: ``sys.path``.
        config: the configuration, with what plugins changed in it.
    """

    stamps: tuple[tuple[str, Stamp], ...]
    path: list[str] = field(default_factory=list)
    config: Config | None = None

    @classmethod
    def now(cls, watched: Iterable[Path]) -> Self:
        """How these files and folders stand."""
        names = dict.fromkeys(os.fspath(path) for path in watched)
        return cls(tuple((name, _stamp(name)) for name in names))

    def holds(self, config: Config) -> bool:
        """Whether everything still stands so."""
        if self.config is not config or self.path != sys.path:
            return False
        return all(_stamp(name) == stamp for name, stamp in self.stamps)


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size
