"""What loads a tool file of one language: the contract between finding such files and running them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .errors import ToolError

if TYPE_CHECKING:
    from .tool import Tool


class ToolFileError(ToolError):
    """A tool file can't be loaded.

    Attributes:
        path: the file.
        line: where it went wrong, from 1; None if that is not known.
    """

    def __init__(self, message: str, path: Path, line: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


class Loader(Protocol):
    """Loads tool files of one language. Files are trusted before they reach it (`core.trust`)."""

    suffixes: Sequence[str]
    """File name endings that it takes, with the dot."""

    def why_not(self) -> str:
        """Why no file can be loaded on this machine, and what to do about it; "" if they can."""

    async def load(self, path: Path, namespace: str) -> list[Tool]:
        """Run a file and give its tools; the default export is ``namespace``, an export ``x`` is ``namespace_x``.

        Loading a path again gives what the file holds now.

        Raises:
            ToolFileError: it can't be loaded; the message says why in one line.
        """

    async def forget(self, path: Path) -> None:
        """The file is gone or was changed: nothing of it is to be kept."""
