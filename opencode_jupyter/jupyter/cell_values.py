"""A call's result as a cell's value: its card is on display already, so the cell's own echo stays silent."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Self

from ..core.result import ToolResult
from .cards.display import Bundle, show_bundle


class CellValue:
    """What a magic returned.

    As the last value of the cell that made it, it displays nothing (the card is there); later it displays its card.
    """

    cell: int
    bundle: Bundle

    def __await__(self) -> Generator[Any, None, Self]:
        """Give the value itself, so that ``await run_line_magic("tool", ...)`` works where the magic has blocked."""
        yield from ()
        return self

    def is_displayed_by_cell(self) -> bool:
        """Whether the cell that runs now has displayed its card."""
        from IPython import get_ipython

        shell = get_ipython()
        return shell is not None and shell.execution_count == self.cell

    def _ipython_display_(self) -> None:
        if not self.is_displayed_by_cell():
            show_bundle(self.bundle if self.bundle[0] else ({"text/plain": repr(self)}, {}))


@dataclass(repr=False)
class CellResult(CellValue, ToolResult):
    """A `ToolResult` that a magic returned."""

    tool: str = ""
    cell: int = -1
    bundle: Bundle = field(default_factory=lambda: ({}, {}))

    def __repr__(self) -> str:
        size = f"{self.output.count(chr(10)) + 1} lines" if self.output else "no output"
        rows = f", {type(self.value).__name__}" if self.value is not None else ""  # rows of a frame would take long
        if self.value is None and self.records is not None:
            rows = f", {len(self.records)} records"
        cut = ", cut" if self.truncated else ""
        return f"<{self.tool} result: {self.title or 'untitled'} ({size}{rows}{cut})>"
