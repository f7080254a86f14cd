"""Where tools come from besides this package: files, plugins, other programs. What each such place must offer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .errors import ToolError

if TYPE_CHECKING:
    from .call import Call
    from .tool import Tool


class Rank(IntEnum):
    """Order of the places among custom tools; on equal ids the later one wins (docs/opencode/core.md 4)."""

    FILES = 0
    PLUGINS = 1
    REGISTERED = 2
    MCP = 3


class Unavailable(NamedTuple):
    """A tool that is known of but can't be called now, or a place that should have given some."""

    id: str
    """The tool's id; ``namespace_*`` when the tools of a place are not known."""
    source: str
    """Where it would come from: a file, a package, a server."""
    reason: str
    """Why it can't be called, and what to do about it; one line."""
    quiet: bool = False
    """As its owner wants it (a server that is switched off, a file of helpers): told to who calls it, not listed."""


class ToolSource(Protocol):
    """A place that tools come from while the workspace is open.

    A source is made with the workspace, so making one does no work and imports nothing heavy. Everything but `prepare`
    is called often and on any thread: it must be quick and must not block. A source tells the registry
    (`Registry.changed`) when what it has is not what it had.
    """

    rank: Rank

    def tools(self) -> Sequence[Tool]:
        """The tools that are loaded and callable now."""

    def unavailable(self) -> Sequence[Unavailable]:
        """What is known of and can't be called; what is `quiet` too."""

    @property
    def quiet(self) -> bool:
        """True if it has nothing, waits for nothing, and could learn of something by a look at the disk alone.

        While all sources are quiet, calls by code do not ask them each time (`Registry.settled`).
        """

    def is_fresh(self, wanted: str | None) -> bool:
        """Return whether `prepare` has nothing to do for a tool of that id (None: for all)."""

    async def prepare(self, wanted: str | None, call: Call | None) -> None:
        """Bring the source up to date, as far as a tool of the id `wanted` may come from it.

        Trouble of one tool, file or server is kept for `unavailable`, not raised.

        Args:
            wanted: an id as it was asked for; None for all that can be had without asking anybody.
            call: the call that wants it, which can ask a person (`Call.ask_trust`); None when nobody may be asked.

        Raises:
            ToolError: a person refused what `call` needed.
        """


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


class ToolFileLoader(Protocol):
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
