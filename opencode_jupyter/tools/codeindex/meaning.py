"""What a piece of code is about, as a few bits: pieces that no word of a question stands in are found by them.

Each term has two vectors (`meanings.bin`, made by ``bench/make_meanings.py``): one for when it is said, in a name, a
docstring or a question, one for when code uses it. The sum of a piece's vectors points where the sum of a question's
vectors points if it does what is asked. Of a piece's sum little is kept: for each dimension whether it is high, low or
neither, as two bits (above the lower bound, above the upper one); how many bits differ says how far two are apart.

A vector is one long integer with 16 bits for each dimension, so that one addition adds all of them: 20,000 files have
half a million pieces, and neither the index nor a query may need numpy for them.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import mul
from pathlib import Path

MOST_SAID, MOST_USED = 40, 120
"""Terms of a piece that are added up: more could overflow the 16 bits of a dimension."""
MOST_KEPT = 60_000
"""Terms whose vectors are kept at hand."""
BOUND = 0.55
"""Where a dimension begins to be high, in standard deviations of all of them: of three steps that loses least."""
_MIDDLE = 0x8000
_ZERO = 128
"""What is added to a component to make it positive."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Where a question points.

    Attributes:
        vector: of length 1.
        bits: its steps, as a piece has them.
    """

    vector: tuple[float, ...]
    bits: int


class _Lanes(dict[str, int]):
    """Terms' vectors as long integers, made when they are first asked for; 0 for a term that is not known.

    Above the dimensions stands a 1, so that a sum says how many terms it is of.
    """

    def __init__(self, places: dict[str, int], numbers: bytes, size: int) -> None:
        super().__init__()
        self._places, self._numbers, self._size = places, numbers, size

    def __missing__(self, term: str) -> int:
        found = 0
        if term in self._places:
            at = self._places[term] * self._size
            lanes = array("H", (number ^ _ZERO for number in self._numbers[at : at + self._size]))
            if sys.byteorder == "big":
                lanes.byteswap()
            found = int.from_bytes(lanes.tobytes(), "little") + (1 << (16 * self._size))
        if len(self) < MOST_KEPT:
            self[term] = found
        return found


class Meanings:
    """The vectors of terms.

    Attributes:
        size: their number of dimensions, a multiple of 32.
        width: bytes of a piece's steps.
    """

    def __init__(self, data: bytes) -> None:
        head, _, rest = data.partition(b"\n")
        names, _, numbers = rest.partition(b"\n")
        self.size = int(head)
        self.width = self.size // 4
        terms = names.decode("ascii").split()
        self._places = {term: place for place, term in enumerate(terms)}
        self._numbers = numbers
        self._code = len(terms) * self.size
        if len(numbers) != 2 * self._code:
            raise ValueError("the table of meanings is cut off")
        self._said = _Lanes(self._places, numbers[: self._code], self.size)
        self._used = _Lanes(self._places, numbers[self._code :], self.size)
        self._ones = sum(1 << (16 * i) for i in range(self.size))
        self._digits = bytes(48 + (number & 1) for number in range(256))

    def bits(self, said: list[str], used: list[str]) -> int:
        """The steps of a piece's sum; 0 if none of its terms is known.

        Args:
            said: terms of its name and its summary, the first ones first.
            used: different terms of its signature and its code.
        """
        total = sum(map(self._said.__getitem__, said[:MOST_SAID]))
        total += sum(map(self._used.__getitem__, used[:MOST_USED]))
        if not total:
            return 0
        count, ones = total >> (16 * self.size), self._ones
        total += ones * (_MIDDLE - _ZERO * count) - (count << (16 * self.size))
        numbers = array("H", total.to_bytes(2 * self.size, sys.byteorder))[::2]  # half of them tell their deviation
        squares = sum(map(mul, numbers, numbers)) - 2 * _MIDDLE * sum(numbers) + len(numbers) * _MIDDLE**2
        bound = int(BOUND * math.sqrt(max(0, squares) / len(numbers)))
        return self._packed(total - ones * (bound + 1)) << self.size | self._packed(total + ones * bound)

    def _packed(self, total: int) -> int:
        """The highest bit of each dimension, side by side."""
        high = ((total >> 15) & self._ones).to_bytes(2 * self.size, "little")
        return int(high[::2].translate(self._digits), 2)

    def direction(self, terms: Iterable[tuple[str, float]]) -> Direction | None:
        """Where a question's terms point, each with its weight; None if none of them is known."""
        total = [0.0] * self.size
        for term, weight in terms:
            if term in self._places:
                at = self._places[term] * self.size
                for i, number in enumerate(self._numbers[at : at + self.size]):
                    total[i] += weight * ((number ^ _ZERO) - _ZERO)
        length = math.sqrt(sum(number * number for number in total))
        if not length:
            return None
        bound = BOUND * length / math.sqrt(self.size)
        steps = "".join("01"[number > bound] for number in total) + "".join("01"[number >= -bound] for number in total)
        return Direction(tuple(number / length for number in total), int(steps, 2))

    def nearness(self, direction: Direction, bits: int) -> float:
        """How much a piece points where a question does: about -1 to 1, 0 if nothing is known of it."""
        if not bits:
            return 0.0
        steps = bits.to_bytes(self.width, "big")
        high = bits >> self.size
        low = self.size - (bits & ((1 << self.size) - 1)).bit_count()
        rows = _rows(direction.vector)
        twice = sum([row[byte] for row, byte in zip(rows, steps, strict=True)])
        return twice / 2 / math.sqrt(high.bit_count() + low or 1)


@lru_cache(maxsize=4)
def _rows(vector: tuple[float, ...]) -> list[list[float]]:
    """For each byte of a piece's steps and each value it can have, the sum over its dimensions, set or not."""
    rows = []
    for at in range(0, len(vector), 8):
        row = [0.0]
        for number in vector[at : at + 8]:
            row = [one for before in row for one in (before - number, before + number)]
        rows.append(row)
    return rows * 2


@cache
def meanings() -> Meanings:
    """The table that is shipped."""
    return Meanings(Path(__file__).with_name("meanings.bin").read_bytes())
