"""The pieces of an index that point where a question does, out of all of them; kept in memory between two questions.

Half a million pieces are first compared bit against bit (for each dimension whether it is high, low or neither), which
takes 5 ms, and the best of them exactly.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .products import products

BOUND = 0.55
"""Where a dimension begins to be high, in standard deviations of all of them: of three steps that loses least."""
CLOSER = 8
"""How many times as many pieces as are wanted are compared exactly."""
PART = 16_384
"""New pieces that are taken in at once."""
HAS_POPCOUNT = hasattr(np, "bitwise_count")
"""From numpy 2 on. Without it all pieces are compared exactly, in ten times the time."""


class Recall:
    """What all pieces of an index are about, as read from it; follows the index by reading what is new."""

    def __init__(self, size: int) -> None:
        """Begin with nothing.

        Args:
            size: dimensions of a piece's vector, a multiple of 64.
        """
        self._size = size
        self._last = -1
        self._numbers: NDArray[Any] = np.zeros(0, np.int64)
        """The pieces' numbers in the index, rising; some are there no more."""
        self._vectors: NDArray[Any] = np.zeros((0, size), np.int8)
        self._lengths: NDArray[Any] = np.zeros(0, np.float32)
        self._steps: NDArray[Any] = np.zeros((size // 32, 0), np.uint64)

    def follow(self, connection: sqlite3.Connection) -> None:
        """Read what was added to the index since the last time."""
        query = "SELECT first, vectors FROM meanings WHERE first > ? ORDER BY first"
        rows = connection.execute(query, (self._last,)).fetchall()
        if not rows:
            return
        self._last = rows[-1][0]
        numbers = [np.arange(first, first + len(vectors) // self._size) for first, vectors in rows]
        new = np.frombuffer(b"".join(vectors for _, vectors in rows), np.int8).reshape(-1, self._size)
        self._numbers = np.concatenate([self._numbers, *numbers])
        self._vectors = np.concatenate([self._vectors, new])
        lengths, steps = [self._lengths], [self._steps]
        for at in range(0, len(new), PART):
            part = new[at : at + PART].astype(np.float32)
            length = np.sqrt(np.einsum("ij,ij->i", part, part))
            lengths.append(length)
            steps.append(_steps(part, length).T)
        self._lengths = np.concatenate(lengths)
        self._steps = np.concatenate(steps, axis=1)  # a column at a time is several times as fast

    def nearness(self, direction: NDArray[Any], numbers: list[int]) -> dict[int, float]:
        """The cosine between where a question points and where each of these pieces points; those unknown left out."""
        asked = np.array(numbers, np.int64)
        places = np.searchsorted(self._numbers, asked)
        there = places < len(self._numbers)
        there[there] = self._numbers[places[there]] == asked[there]
        found = self._exactly(direction, places[there])
        return dict(zip(asked[there].tolist(), found.tolist(), strict=True))

    def nearest(self, direction: NDArray[Any], count: int) -> list[int]:
        """The numbers of the `count` pieces that point most where the question does, nearest first."""
        places = np.arange(len(self._numbers))
        if HAS_POPCOUNT and len(places) > CLOSER * count:
            asked = _steps(direction[None], np.ones(1, np.float32))[0]
            unlike = np.zeros(len(places), np.uint16)
            for column, part in zip(self._steps, asked, strict=True):
                unlike += np.bitwise_count(column ^ part)
            places = np.argpartition(unlike, CLOSER * count)[: CLOSER * count]
        near = self._exactly(direction, places)
        best = np.argsort(-near, kind="stable")[:count]
        return [int(number) for number in self._numbers[places[best]]]

    def _exactly(self, direction: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
        """The cosine between a question and the pieces at some places; 0 for one of which nothing is known."""
        near: NDArray[Any] = products(self._vectors, direction, places) / np.maximum(self._lengths[places], 1)
        return near


def _steps(vectors: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """For each dimension whether it is above the lower bound, and above the upper one, as bits."""
    bound = BOUND * (lengths / np.sqrt(vectors.shape[1]))[:, None]
    bits = np.packbits(np.hstack([vectors > bound, vectors >= -bound]), axis=1)
    return np.ascontiguousarray(bits).view(np.uint64)
