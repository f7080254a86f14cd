"""Cards for the calls of other libraries' agents that use the notebook's tools (`core.host.Presenter`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .magics.arguments import CallRequest

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.result import ToolResult
    from .notebook import Notebook


class Cards:
    """Shows each call in a card of the cell that runs the agent."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook

    async def run(self, id: str, make: Callable[[], Call]) -> ToolResult:
        """See `Presenter.run`."""
        return await self._notebook.run_async(_request(id, make))

    def run_sync(self, id: str, make: Callable[[], Call]) -> ToolResult:
        """See `Presenter.run_sync`."""
        return self._notebook.run_sync(_request(id, make))


def _request(id: str, make: Callable[[], Call]) -> CallRequest:
    return CallRequest(id, make=lambda workspace, request: make())
