"""What a piece of code is about, as a few bits: pieces that no word of a question stands in are found by them.

Each term has two vectors (`meanings.bin`, made by ``bench/make_meanings.py``): one for when it is said, in a name, a
docstring or a question, one for when code uses it. The sum of a piece's vectors points where the sum of a question's
vectors points if it does what is asked. Of a piece's sum only the signs are kept, one bit for each dimension.

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
from pathlib import Path

MOST = 250
"""Terms of a piece that are added up: more could overflow the 16 bits of a dimension."""
_ZERO = 128
"""What is added to a component to make it positive."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Where a question points.

    Attributes:
        vector: of length 1.
        bits: its signs.
    """

    vector: tuple[float, ...]
    bits: int


class Meanings:
    """The vectors of terms.

    Attributes:
        size: their number of dimensions, a multiple of 8.
    """

    def __init__(self, data: bytes) -> None:
        head, _, rest = data.partition(b"\n")
        names, _, numbers = rest.partition(b"\n")
        self.size = int(head)
        terms = names.decode("ascii").split()
        self._places = {term: place for place, term in enumerate(terms)}
        self._numbers = numbers
        self._code = len(terms) * self.size
        if len(numbers) != 2 * self._code:
            raise ValueError("the table of meanings is cut off")
        self._lanes: dict[int, int] = {}
        self._ones = sum(1 << (16 * i) for i in range(self.size))
        self._signs = bytes(48 + (number & 1) for number in range(256))

    def bits(self, said: Iterable[str], used: Iterable[str]) -> int:
        """The signs of a piece's sum; 0 if none of its terms is known.

        Args:
            said: terms of its name and its summary, the first ones first.
            used: different terms of its signature and its code.
        """
        places = self._places
        wanted = [places[term] * self.size for term in said if term in places]
        wanted += [self._code + places[term] * self.size for term in used if term in places]
        if not wanted:
            return 0
        del wanted[MOST:]
        lanes = self._lanes
        total = self._ones * (0x8000 - _ZERO * len(wanted))
        for at in wanted:
            total += lanes.get(at) or self._lane(at)
        high = ((total >> 15) & self._ones).to_bytes(2 * self.size, "little")
        return int(high[::2].translate(self._signs), 2)

    def _lane(self, at: int) -> int:
        numbers = array("H", (number ^ _ZERO for number in self._numbers[at : at + self.size]))
        if sys.byteorder == "big":
            numbers.byteswap()
        found = self._lanes[at] = int.from_bytes(numbers.tobytes(), "little")
        return found

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
        signs = "".join("1" if number >= 0 else "0" for number in total)
        return Direction(tuple(number / length for number in total), int(signs, 2))

    def nearness(self, direction: Direction, bits: int) -> float:
        """How much a piece points where a question does: about -1 to 1, 0 if nothing is known of it."""
        if not bits:
            return 0.0
        signs = bits.to_bytes(self.size // 8, "big")
        rows = _rows(direction.vector)
        return sum(row[byte] for row, byte in zip(rows, signs, strict=True)) / math.sqrt(self.size)


@lru_cache(maxsize=4)
def _rows(vector: tuple[float, ...]) -> list[list[float]]:
    """For each byte of a piece's signs and each value it can have, the sum over its dimensions."""
    rows = []
    for at in range(0, len(vector), 8):
        row = [0.0]
        for number in vector[at : at + 8]:
            row = [one for before in row for one in (before - number, before + number)]
        rows.append(row)
    return rows


@cache
def meanings() -> Meanings:
    """The table that is shipped."""
    return Meanings(Path(__file__).with_name("meanings.bin").read_bytes())
