"""Sources of tools besides this package (files, plugins, other programs): the protocols that they implement."""

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
    """Order of the sources of custom tools; on equal ids the later one wins (docs/opencode/core.md 4)."""

    FILES = 0
    PLUGINS = 1
    REGISTERED = 2
    MCP = 3


class Unavailable(NamedTuple):
    """A known tool that can't be called now, or a source that should have some."""

    id: str
    """The tool's id; ``namespace_*`` when the tools of a source are not known."""
    source: str
    """Where it would come from: a file, a package, a server."""
    reason: str
    """Why it can't be called, and what to do about it; one line."""
    quiet: bool = False
    """Intended (a server that is switched off, a file of helpers): reported to callers, not listed."""


class ToolSource(Protocol):
    """A source of tools while the workspace is open.

    A source is made with the workspace, so making one does no work and imports nothing heavy. Everything but `prepare`
    is called often and on any thread: it must be quick and must not block. A source calls
    `Registry.changed` when its tools have changed.
    """

    rank: Rank

    def tools(self) -> Sequence[Tool]:
        """The tools that are loaded and callable now."""

    def unavailable(self) -> Sequence[Unavailable]:
        """Known tools that can't be called, `quiet` ones too."""

    @property
    def quiet(self) -> bool:
        """True if it has no tools, waits for none, and could get some only by a change on the disk.

        While all sources are quiet, calls by code do not check them each time (`Registry.is_fresh`).
        """

    def is_fresh(self, tool_id: str | None) -> bool:
        """Return whether `prepare` has nothing to do for a tool of that id (None: for all)."""

    async def prepare(self, tool_id: str | None, call: Call | None) -> None:
        """Bring the source up to date, as far as the tool of this id may come from it.

        Trouble of one tool, file or server is kept for `unavailable`, not raised.

        Args:
            tool_id: the requested id; None for all tools that need no approval.
            call: the call that needs it, which can request trust (`Call.ask_trust`); None when nobody may be asked.

        Raises:
            ToolError: a person denied what `call` needed.
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
            ToolFileError: it can't be loaded; the message is one line.
        """

    async def forget(self, path: Path) -> None:
        """The file is gone or was changed: nothing of it is to be kept."""
