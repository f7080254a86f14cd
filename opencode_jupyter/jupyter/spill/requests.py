"""What the viewer asks for, by the request's ``kind``: see ``labextension/src/viewer/source.ts``."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .folder import SpillFolder
from .marks import marks_in
from .pages import SpillPages
from .search import SpillSearches


class SpillRequests:
    """Answers the viewers of one workspace's whole outputs. On the control channel's thread; never raises.

    Args:
        directory: The workspace's ``tool-output`` folder.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        folder = SpillFolder(directory)
        self.pages = SpillPages(folder)
        self.searches = SpillSearches(folder)

    @property
    def handlers(self) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
        """The answers, by kind."""
        return {"page": self._page, "extent": self._extent, "part": self._part, "search": self.searches.request}

    def close(self) -> None:
        """End what goes on."""
        self.searches.close()

    def _page(self, asked: dict[str, Any]) -> dict[str, Any]:
        reply = self.pages.page(
            asked.get("path"),
            asked.get("line"),
            asked.get("count"),
            at=asked.get("at"),
            near=asked.get("near"),
            before=asked.get("before"),
        )
        pattern = self.searches.pattern(asked.get("search"))
        if pattern is not None and reply.get("lines"):
            reply["marks"] = marks_in(reply["lines"], pattern)
        return reply

    def _extent(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self.pages.extent(asked.get("path"), asked.get("at"))

    def _part(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self.pages.part(asked.get("path"), asked.get("offset"), asked.get("count"))
