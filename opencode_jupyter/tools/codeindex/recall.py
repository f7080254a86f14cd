"""The pieces of an index that point where a question does, out of all of them; kept in memory between two questions.

Half a million pieces are compared one by one, bit against bit: 5 ms with numpy, which is used if it is installed, and
50 ms without.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from typing import Any

from .meaning import Direction

try:
    import numpy as np
except ImportError:
    HAS_NUMPY = False
else:
    HAS_NUMPY = hasattr(np, "bitwise_count")  # from numpy 2 on

SAMPLE = 4000
"""Pieces that say how near the nearest are likely to be."""


class Recall:
    """What all pieces of an index are about, as read from it; follows the index by reading what is new."""

    def __init__(self, width: int) -> None:
        """Begin with nothing.

        Args:
            width: bytes of a piece, a multiple of 8.
        """
        self._width = width
        self._last = -1
        self._numbers = array("q")
        """The pieces' numbers in the index; some are there no more."""
        self._whole = bytearray()
        self._array: Any = None
        self._bits: list[int] = []

    def follow(self, connection: sqlite3.Connection) -> None:
        """Read what was added to the index since the last time."""
        rows = connection.execute("SELECT first, bits FROM meanings WHERE first > ? ORDER BY first", (self._last,))
        for first, bits in rows:
            self._array = None
            self._last = first
            self._numbers.extend(range(first, first + len(bits) // self._width))
            self._whole += bits
        if self._array is None and HAS_NUMPY:
            table = np.frombuffer(bytes(self._whole), np.uint64).reshape(-1, self._width // 8)
            self._array = np.ascontiguousarray(table.T)  # a column at a time is several times as fast
        elif not HAS_NUMPY:
            done, width, whole = len(self._bits), self._width, self._whole
            places = range(done * width, len(whole), width)
            self._bits += [int.from_bytes(whole[at : at + width], "big") for at in places]

    def bits(self, numbers: list[int]) -> dict[int, int]:
        """Where these pieces point."""
        found = {}
        for number in numbers:
            place = bisect_left(self._numbers, number)
            if place < len(self._numbers) and self._numbers[place] == number:
                at = place * self._width
                found[number] = int.from_bytes(self._whole[at : at + self._width], "big")
        return found

    def nearest(self, direction: Direction, count: int) -> list[int]:
        """The numbers of the pieces that point most where the question does, about `count` of them."""
        if len(self._numbers) <= count:
            return list(self._numbers)
        if HAS_NUMPY:
            asked = np.frombuffer(direction.bits.to_bytes(self._width, "big"), np.uint64)
            unlike = np.zeros(self._array.shape[1], np.uint16)
            for column, part in zip(self._array, asked, strict=True):
                unlike += np.bitwise_count(column ^ part)
            return [self._numbers[place] for place in np.argpartition(unlike, count)[:count].tolist()]
        asked_bits, bits = direction.bits, self._bits
        step = max(1, len(bits) // SAMPLE)
        sample = sorted((one ^ asked_bits).bit_count() for one in bits[::step])
        most = sample[min(len(sample) - 1, count // step + 1)]
        found = [place for place, one in enumerate(bits) if (one ^ asked_bits).bit_count() <= most]
        found.sort(key=lambda place: (bits[place] ^ asked_bits).bit_count())
        return [self._numbers[place] for place in found[:count]]
