"""MIME bundles: displaying them, keeping them for pages that missed one, and values of cells that display theirs."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Self

from ...core.result import ToolResult

Bundle = tuple[dict[str, Any], dict[str, Any]]
KEPT = 50
"""Cards kept, the last ones; each of a call has at most some 200 KB."""
CHARS = 20_000_000
"""Most characters of them together, by their HTML: a run's card can have some MB."""


def show_bundle(bundle: Bundle, *, display_id: str | None = None, update: bool = False) -> None:
    """Display a MIME bundle as it is, or put it in the place of the display with this id."""
    from IPython.display import display

    data, metadata = bundle
    options: dict[str, Any] = {"display_id": display_id, "update": update} if display_id else {}
    display(data, metadata=metadata, raw=True, **options)  # type: ignore[no-untyped-call]


def show_object(value: Any, display_id: str) -> None:
    """Display an object that can be replaced later."""
    from IPython.display import display

    display(value, display_id=display_id)  # type: ignore[no-untyped-call]


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


class SettledCards:
    """The MIME bundles that replaced live cards, by the id of their call.

    A reloaded page shows a live card, but not what takes its place; when it finds the live card gone, it requests that
    on the control channel.
    """

    def __init__(self) -> None:
        self._cards: dict[str, Bundle] = {}

    def keep(self, call_id: str, bundle: Bundle) -> None:
        """Keep a card's MIME bundle; the oldest goes."""
        self._cards[call_id] = bundle
        while len(self._cards) > 1 and (len(self._cards) > KEPT or self._size() > CHARS):
            del self._cards[next(iter(self._cards))]

    def _size(self) -> int:
        return sum(len(str(data.get("text/html", ""))) for data, _ in self._cards.values())

    def on_message(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a page: ``cards`` (MIME bundles by call id) of those that are kept, and their ``metadata``.

        On the control thread.
        """
        call_ids = request.get("callIDs")
        names = [name for name in call_ids if isinstance(name, str)] if isinstance(call_ids, list) else []
        cards = {name: self._cards[name] for name in names if name in self._cards}
        return {
            "cards": {name: data for name, (data, _) in cards.items()},
            "metadata": {name: metadata for name, (_, metadata) in cards.items()},
        }
