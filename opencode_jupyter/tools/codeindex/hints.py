"""What a question describes without naming it: "how far apart two places on earth are" is a haversine.

A table of well-known pieces of code (`techniques.txt`) says how each is called, what its code holds, and in which ways
people ask for it who do not know the name. A question is compared with each way of asking: by the words they share
(rare ones count more), by where both point (`meaning`), and by a sentence encoder if there is one (`encoder`).
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .encoder import encoder
from .meaning import meanings
from .products import products
from .terms import STOP, words
from .vocabulary import techniques
from .ways import Learning

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARING, POINTING = 0.4, 0.6
"""What count the words that both share, and that both point the same way."""
WITH_ENCODER = (0.15, 0.35, 0.7)
"""The same where there is an encoder, and what its cosine counts, which is rarely near 1."""
SLOPE = 0.6
"""How much a long way of asking is held against it, 1 as in a cosine."""
RELATED = 0.5
"""What a word of nearly the same meaning counts."""
FLOOR = (0.3, 0.35)
"""How near a way of asking is when it is worth nothing, without an encoder and with one."""
BESIDE = 0.75
"""How near the others must be beside the nearest."""
PART = 2048
"""Ways of asking whose vectors are made at once."""
MOST = 5
"""Descriptions that count for one question."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A well-known piece of code that a question seems to describe.

    Attributes:
        worth: how surely it is meant, 0 to 1.
        names: what it is called; each a set of words that belong together.
        code: words of its code.
    """

    worth: float
    names: tuple[frozenset[str], ...]
    code: tuple[str, ...]

    def named(self) -> list[str]:
        """What to match with FTS5 to find it by its names, one after the other."""
        return [" AND ".join(f'"{word}"' for word in sorted(name)) for name in self.names]

    def made_of(self) -> str:
        """What to match with FTS5 to find it by its code, two words of it; empty if none is known."""
        if len(self.code) == 1:
            return f'"{self.code[0]}"'
        return " OR ".join(f'("{one}" AND "{other}")' for one, other in combinations(self.code, 2))


def hints(
    query: str, asked: tuple[tuple[str, float, tuple[str, ...]], ...], direction: NDArray[Any] | None
) -> list[Hint]:
    """The well-known pieces of code that a question describes, surest first.

    Args:
        query: the question.
        asked: its words, each with its weight and words of nearly the same meaning.
        direction: where it points.
    """
    table = _table()
    seen = _seen(query)
    sharing, pointing, seeing = (SHARING, POINTING, 0.0) if seen is None else WITH_ENCODER
    near = sharing * table.shared(asked)
    if direction is not None:
        near += pointing * np.maximum(table.towards(direction), 0)
    if seen is not None:
        near += seeing * np.maximum(seen, 0)
    floor = FLOOR[seen is not None]
    best = np.maximum.reduceat(near, table.starts)
    order = np.argsort(-best, kind="stable")[:MOST]
    chosen = [int(place) for place in order if best[place] > max(floor, BESIDE * best[order[0]])]
    return [Hint(min(1.0, (float(best[place]) - floor) / (1 - floor)), *table.entries[place]) for place in chosen]


def learn(folder: Path) -> Learning | None:
    """Have the encoder's view of the ways of asking at hand; None without an encoder.

    Args:
        folder: where it is kept if it has to be made, which goes on in the background.
    """
    global _learning
    with _lock:
        if _learning is None and (found := encoder()) is not None:
            _learning = Learning(found, _table().texts, folder)
        return _learning


def ways_of_asking() -> list[str]:
    """The texts that a question is compared with."""
    return _table().texts


def _seen(query: str) -> NDArray[Any] | None:
    """For each way of asking, how near the encoder says it is; None as long as it can't."""
    learning = _learning
    if learning is None or learning.table is None:
        return None
    return learning.table.near(learning.encoder.encode(query))


class _Table:
    """The ways of asking, side by side.

    Attributes:
        entries: names and code of each piece of code.
        starts: where each one's ways of asking begin.
        texts: the ways of asking.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[tuple[frozenset[str], ...], tuple[str, ...]]] = []
        self.texts: list[str] = []
        starts: list[int] = []
        asks: list[frozenset[str]] = []
        for names, code, ways in techniques():
            called: dict[frozenset[str], str] = {}
            for name in names:
                called.setdefault(_terms(name), " ".join(name))
            called.pop(frozenset(), None)
            used = tuple(dict.fromkeys(term for word in code for term in _parts(word)))
            self.entries.append((tuple(called), used))
            starts.append(len(asks))
            asks += [*called, *map(_terms, ways)]
            self.texts += [*called.values(), *map(" ".join, ways)]
        self.starts = np.array(starts)
        holders: dict[str, list[int]] = {}
        for place, ask in enumerate(asks):
            for term in ask:
                holders.setdefault(term, []).append(place)
        self._usual = math.log(1 + len(asks))
        self._rarity = {term: math.log(1 + len(asks) / len(places)) for term, places in holders.items()}
        self._holders = {term: np.array(places, np.int32) for term, places in holders.items()}
        sizes = np.sqrt(np.array([sum([self._rarity[term] for term in ask]) for ask in asks], np.float32))
        self._sizes = SLOPE * sizes + (1 - SLOPE) * np.median(sizes) + 1e-6
        self._vectors, self._lengths = _vectors(asks)

    def shared(self, asked: tuple[tuple[str, float, tuple[str, ...]], ...]) -> NDArray[Any]:
        """For each way of asking, how much it shares with these words, 0 to 1 and a little more."""
        found = np.zeros(len(self._sizes), np.float32)
        everything = 0.0
        for word, weight, others in asked:
            rarity = self._rarity.get(word, self._usual) * weight
            everything += rarity
            mine = np.zeros_like(found)
            for other in others:
                if other in self._holders:
                    mine[self._holders[other]] = RELATED * math.sqrt(rarity * min(rarity, self._rarity[other]))
            if word in self._holders:
                mine[self._holders[word]] = rarity
            found += mine
        shared: NDArray[Any] = found / (self._sizes * (math.sqrt(everything) + 1e-6))
        return shared

    def towards(self, direction: NDArray[Any]) -> NDArray[Any]:
        """For each way of asking, the cosine between where it points and a direction."""
        near: NDArray[Any] = products(self._vectors, direction) / self._lengths
        return near


def _vectors(asks: list[frozenset[str]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where ways of asking point, as signed bytes, and the lengths of these vectors."""
    table = meanings()
    said = table.said()
    by_length: dict[int, tuple[list[int], list[list[int]]]] = {}
    for place, ask in enumerate(asks):
        known = [table.places[term] for term in ask if term in table.places]
        if known:
            places, rows = by_length.setdefault(len(known), ([], []))
            places.append(place)
            rows.append(known)
    vectors = np.zeros((len(asks), table.size), np.int8)
    lengths = np.ones(len(asks), np.float32)
    for places, rows in by_length.values():
        for at in range(0, len(places), PART):
            part = places[at : at + PART]
            sums = said[np.array(rows[at : at + PART])].sum(1, dtype=np.int16).astype(np.float32)
            sums *= 127 / np.maximum(np.abs(sums).max(1, keepdims=True), 1)
            vectors[part] = np.rint(sums, out=sums)
            lengths[part] = np.maximum(np.sqrt(np.einsum("ij,ij->i", sums, sums)), 1)
    return vectors, lengths


_lock = threading.Lock()
_learning: Learning | None = None


@cache
def _table() -> _Table:
    return _Table()


def _terms(said: list[str]) -> frozenset[str]:
    return frozenset(term for word in said for term in _parts(word))


@cache
def _parts(word: str) -> tuple[str, ...]:
    return tuple(part for part in words(word) if part not in STOP)
