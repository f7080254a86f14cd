"""Rows of small numbers against one direction, in a part of memory that stays in the processor's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART = 1024
"""Rows that are made floats at once."""


def products(rows: NDArray[Any], direction: NDArray[Any], places: NDArray[Any] | None = None) -> NDArray[Any]:
    """The scalar product of each row and a direction, as single floats.

    Args:
        rows: signed bytes, a row for each thing.
        direction: single floats, one for each column.
        places: the rows that are wanted, in this order; all if left out.
    """
    count = len(rows) if places is None else len(places)
    found: NDArray[Any] = np.empty(count, np.float32)
    room = np.empty((min(PART, count), len(direction)), np.float32)
    for at in range(0, count, PART):
        part = room[: min(PART, count - at)]
        part[:] = rows[at : at + PART] if places is None else rows[places[at : at + PART]]
        np.dot(part, direction, out=found[at : at + PART])
    return found
