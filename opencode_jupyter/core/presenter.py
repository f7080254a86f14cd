"""Where calls are shown that neither a cell nor this package's own code makes: another library's agent does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .call import Call
    from .result import ToolResult


class Presenter(Protocol):
    """Runs calls where a person sees them and can answer their asks: a notebook gives each a card.

    Both are used on the thread of whoever wants the call; the call itself runs on the workspace's loop.
    """

    async def run(self, id: str, make: Callable[[], Call]) -> ToolResult:
        """Make a call of the tool `id` with `make`, show it and await its end."""

    def run_sync(self, id: str, make: Callable[[], Call]) -> ToolResult:
        """`run`, from code that can't await."""
