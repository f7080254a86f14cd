"""The answer as a cell's value: its card has been shown already, so the cell's own echo stays silent."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from ...agent.answer import Answer
from .._show import Bundle, show_bundle

if TYPE_CHECKING:
    from .card import RunCard


@dataclass(repr=False)
class CellAnswer(Answer):
    """An `Answer` that ``%%agent`` gave.

    As the last value of the cell that made it, it displays nothing (the card is there); later it displays its card.
    """

    cell: int = -1
    bundle: Bundle = field(default_factory=lambda: ({}, {}))

    def _ipython_display_(self) -> None:
        from IPython import get_ipython

        shell = get_ipython()
        if shell is not None and shell.execution_count == self.cell:
            return
        show_bundle(self.bundle if self.bundle[0] else ({"text/plain": repr(self)}, {}))


def cell_answer(answer: Answer, card: RunCard, cell: int) -> CellAnswer:
    """The answer of a run as the value of the cell with this number."""
    values = {f.name: getattr(answer, f.name) for f in fields(Answer)}
    return CellAnswer(**values, cell=cell, bundle=card.bundle())
