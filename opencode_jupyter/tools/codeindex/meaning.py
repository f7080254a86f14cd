"""What a piece of code is about, as a vector: pieces that no word of a question stands in are found by it.

Each term has two vectors (`meanings.bin`, made by ``bench/make_meanings.py``): one for when it is said, in a name, a
docstring or a question, one for when code uses it. The sum of a piece's vectors points where the sum of a question's
vectors points if it does what is asked. One byte is kept for each of its dimensions.

A term's vector is one long integer with 16 bits for each dimension, so that one addition adds all of them: 20,000 files
have half a million pieces, and the processes that index them must start quickly, so without numpy.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_SAID, MOST_USED = 40, 120
"""Terms of a piece that are added up: more could overflow the 16 bits of a dimension."""
MOST_KEPT = 60_000
"""Terms whose vectors are kept at hand."""
_MIDDLE = 0x8000
_ZERO = 128
"""What is added to a component to make it positive."""


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
        size: their number of dimensions, a multiple of 64; also the bytes of a piece's vector.
    """

    def __init__(self, data: bytes) -> None:
        head, _, rest = data.partition(b"\n")
        names, _, numbers = rest.partition(b"\n")
        self.size = int(head)
        terms = names.decode("ascii").split()
        self.places = {term: place for place, term in enumerate(terms)}
        self._numbers = numbers
        self._code = len(terms) * self.size
        if len(numbers) != 2 * self._code:
            raise ValueError("the table of meanings is cut off")
        self._said = _Lanes(self.places, numbers[: self._code], self.size)
        self._used = _Lanes(self.places, numbers[self._code :], self.size)
        self._ones = sum(1 << (16 * i) for i in range(self.size))

    def vector(self, said: list[str], used: list[str]) -> bytes:
        """Where a piece points: one signed byte for each dimension, the largest between 64 and 127; zeros if unknown.

        Args:
            said: terms of its name and its summary, the first ones first.
            used: different terms of its signature and its code.
        """
        total = sum(map(self._said.__getitem__, said[:MOST_SAID]))
        total += sum(map(self._used.__getitem__, used[:MOST_USED]))
        if not total:
            return bytes(self.size)
        count, ones = total >> (16 * self.size), self._ones
        total += ones * (_MIDDLE - _ZERO * count) - (count << (16 * self.size))
        numbers = array("H", total.to_bytes(2 * self.size, sys.byteorder))
        largest = max(max(numbers) - _MIDDLE, _MIDDLE - min(numbers))
        shift = max(0, largest.bit_length() - 7)
        total -= ones * (_MIDDLE - (_ZERO << shift))
        signed = ((total >> shift) & (ones * 0xFF)) ^ (ones * _ZERO)
        return signed.to_bytes(2 * self.size, "little")[::2]

    def direction(self, terms: Iterable[tuple[str, float]]) -> NDArray[Any] | None:
        """Where terms point, each with its weight: a vector of length 1; None if none of them is known."""
        import numpy as np

        known = [(self.places[term], weight) for term, weight in terms if term in self.places]
        if not known:
            return None
        rows = self.said()[[place for place, _ in known]].astype(np.float32)
        total = np.array([weight for _, weight in known], np.float32) @ rows
        length = np.linalg.norm(total)
        return total / length if length else None

    def said(self) -> NDArray[Any]:
        """The vectors of terms as they are said, a row for each, as signed bytes."""
        import numpy as np

        return np.frombuffer(self._numbers, np.int8, self._code).reshape(-1, self.size)


@cache
def meanings() -> Meanings:
    """The table that is shipped."""
    return Meanings(Path(__file__).with_name("meanings.bin").read_bytes())
