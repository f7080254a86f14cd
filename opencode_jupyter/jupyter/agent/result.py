"""The answer as a cell's value: its card is on display already, so the cell's own echo stays silent."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from ...agent.answer import Answer
from ..cards.display import Bundle
from ..cell_values import CellValue

if TYPE_CHECKING:
    from ..cards.run_card import RunCard


@dataclass(repr=False)
class CellAnswer(CellValue, Answer):
    """An `Answer` that ``%%agent`` gave."""

    cell: int = -1
    bundle: Bundle = field(default_factory=lambda: ({}, {}))


def cell_answer(answer: Answer, card: RunCard, cell: int) -> CellAnswer:
    """The answer of a run as the value of the cell with this number."""
    values = {f.name: getattr(answer, f.name) for f in fields(Answer)}
    return CellAnswer(**values, cell=cell, bundle=card.bundle())
