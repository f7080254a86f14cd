"""Whole outputs for the viewer of the JupyterLab extension: pages of lines, bytes, searches; of any size.

Requests come on the control channel's thread, while a cell may be busy; so each takes a bounded time and memory. What
takes long is found in several requests: the positions of lines are remembered between them, and a search runs
in a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .folder import SpillFolder
from .pages import SpillPages
from .search import SpillSearches, marks_in


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
        """The answers by the request's ``kind``, as ``labextension/src/viewer/source.ts`` sends it."""
        return {"page": self._page, "extent": self._extent, "part": self._part, "search": self.searches.on_request}

    def close(self) -> None:
        """End running searches."""
        self.searches.close()

    def _page(self, request: dict[str, Any]) -> dict[str, Any]:
        reply = self.pages.page(
            request.get("path"),
            request.get("line"),
            request.get("count"),
            at=request.get("at"),
            near=request.get("near"),
            before=request.get("before"),
        )
        pattern = self.searches.pattern(request.get("search"))
        if pattern is not None and reply.get("lines"):
            reply["marks"] = marks_in(reply["lines"], pattern)
        return reply

    def _extent(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.pages.extent(request.get("path"), request.get("at"))

    def _part(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.pages.part(request.get("path"), request.get("offset"), request.get("count"))
