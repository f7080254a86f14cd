"""What a question describes without naming it: "how far apart two places on earth are" is a haversine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations

from .terms import STOP, words
from .vocabulary import techniques

LEAST, FLOOR = 0.5, 0.4
"""How much of a question a description must cover, and what it covers when it is worth nothing."""
BESIDE = 0.75
"""What the others must cover of what the best covers."""
MOST = 3
"""Descriptions that count for one question."""
RELATED = 0.5
"""What a word of nearly the same meaning counts."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A well-known piece of code that a question seems to describe.

    Attributes:
        worth: how much of the question it explains, 0 to 1.
        names: what it is called; each a set of words that belong together.
        code: words of its code.
    """

    worth: float
    names: tuple[frozenset[str], ...]
    code: tuple[str, ...]

    def named(self) -> str:
        """What to match with FTS5 to find it by its names."""
        return " OR ".join("(" + " AND ".join(f'"{word}"' for word in sorted(name)) + ")" for name in self.names)

    def made_of(self) -> str:
        """What to match with FTS5 to find it by its code, two words of it; empty if none is known."""
        if len(self.code) == 1:
            return f'"{self.code[0]}"'
        return " OR ".join(f'("{one}" AND "{other}")' for one, other in combinations(self.code, 2))


@dataclass(frozen=True, slots=True)
class _Technique:
    names: tuple[frozenset[str], ...]
    code: tuple[str, ...]
    said: frozenset[str]


def hints(asked: tuple[tuple[str, float, tuple[str, ...]], ...]) -> list[Hint]:
    """The well-known pieces of code that a question describes, best first.

    Args:
        asked: the question's words, each with its weight and words of nearly the same meaning.
    """
    table, holders = _table()
    usual = math.log(1 + len(table))
    rarity = {word: math.log(1 + len(table) / len(holders[word])) if word in holders else usual for word, _, _ in asked}
    everything = sum(rarity[word] * weight for word, weight, _ in asked)
    covered: dict[int, float] = {}
    matched: dict[int, int] = {}
    for word, weight, others in asked:
        whole = rarity[word] * weight
        mine = dict.fromkeys((place for other in others for place in holders.get(other, ())), RELATED)
        mine |= dict.fromkeys(holders.get(word, ()), 1.0)
        for place, share in mine.items():
            covered[place] = covered.get(place, 0.0) + share * whole
            matched[place] = matched.get(place, 0) + 1
    few = min(2, len(asked))
    ranked = sorted(
        ((worth / everything, -place) for place, worth in covered.items() if matched[place] >= few), reverse=True
    )
    best = [(worth, -place) for worth, place in ranked[:MOST] if worth >= max(LEAST, BESIDE * ranked[0][0])]
    return [Hint((worth - FLOOR) / (1 - FLOOR), table[place].names, table[place].code) for worth, place in best]


@cache
def _table() -> tuple[list[_Technique], dict[str, list[int]]]:
    """The techniques, and for each word the places of those that it describes."""
    table: list[_Technique] = []
    holders: dict[str, list[int]] = {}
    for names, code, said in techniques():
        called = tuple(dict.fromkeys(_terms(" ".join(name)) for name in names))
        described = frozenset().union(_terms(" ".join(said)), *called)
        for word in described:
            holders.setdefault(word, []).append(len(table))
        used = dict.fromkeys(term for word in code for term in words(word) if term not in STOP)
        table.append(_Technique(tuple(name for name in called if name), tuple(used), described))
    return table, holders


@lru_cache(maxsize=5000)
def _terms(text: str) -> frozenset[str]:
    return frozenset(word for word in words(text) if word not in STOP)
