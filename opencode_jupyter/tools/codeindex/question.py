"""What a query asks for: its words, and the words that may stand in the code in their place."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from .hints import Hint, hints
from .meaning import meanings
from .terms import STOP, stem, words
from .vocabulary import GROUPS, neighbours, phrases

if TYPE_CHECKING:
    from numpy.typing import NDArray

SYNONYM = 0.6
"""What a synonym counts beside the word itself."""
TURN = 0.8
"""What the further meanings of a turn of speech count beside the first."""
NEAR = 0.42
"""The least nearness of two words by their vectors (a cosine) that counts."""
NEARNESS = 0.7
"""What the nearest neighbour counts."""
NOISE = 0.3
"""What a word that most queries hold counts."""
_NOISE = """
function method code python helper implementation snippet example
everything anything something nothing somebody someone certain several many much few little lot lots kind sort thing
things stuff part parts way ways while new old good bad well better best want wants need needs needed come comes coming
go goes going gone take takes taken put puts give gives given make makes made get gets got keep keeps become becomes
look looks like tell tells know knows known see seen happen happens always never away back together already yet still
even else somewhere anywhere elsewhere piece itself themselves yourself due around able possible properly really
simply actually particular specific different various appears belongs think turn turns along across behind without
within instead because since though although however therefore
"""
_WEAK = frozenset(map(stem, _NOISE.split()))
_SYMBOL = re.compile(
    r"\b(?:[A-Za-z_]\w*+(?:\.\w++)++|[A-Za-z][A-Za-z0-9]*+_\w++|[a-z]++[A-Z]\w*+|[A-Z][a-z]++[A-Z]\w*+|[A-Z]{2,}+(?!s\b)[a-z]\w*+)"
)
LONGEST = 2000
"""Characters of a query that are looked at."""
FURTHER = 1
"""Pieces of code that it may describe, by whose names it is looked for too."""
MOST = 12
"""Words of a query that count."""


@dataclass(frozen=True, slots=True)
class Concept:
    """A word of a query.

    Attributes:
        term: as the index has it.
        weight: how much it counts, 1 for most.
        others: terms that may stand for it, with what they count beside it.
    """

    term: str
    weight: float
    others: dict[str, float]


@dataclass(frozen=True, slots=True)
class Question:
    """A query taken apart."""

    concepts: tuple[Concept, ...]
    symbols: tuple[str, ...]
    """Names of things that stand in it, in lower case."""
    hints: tuple[Hint, ...] = ()
    """Well-known pieces of code that it seems to describe."""
    direction: NDArray[Any] | None = field(default=None, compare=False)
    """Where it points, None if none of its words is known."""
    further: tuple[NDArray[Any], ...] = field(default=(), compare=False)
    """Where it would point in the words of the code that it seems to describe."""


def question(query: str) -> Question:
    """Take a query apart; no concepts if nothing in it can be looked for."""
    query = query[:LONGEST]
    rest, concepts = _turns(query)
    asked = list(dict.fromkeys(words(rest)))
    plain = [word for word in asked if word not in STOP] or ([] if concepts else asked)
    concepts += [Concept(word, NOISE if word in _WEAK else 1.0, _others(word)) for word in plain]
    if any(concept.weight == 1.0 for concept in concepts):
        concepts.sort(key=lambda concept: -concept.weight)
    found = [name.lower() for name in _SYMBOL.findall(query)]
    lone = query.strip()
    if lone.isidentifier():
        found.append(lone.lower())
    said = [word for word in dict.fromkeys(words(query)) if word not in STOP]
    weights = [(word, NOISE if word in _WEAK else 1.0) for word in said[:MOST]]
    near = [(word, weight, tuple(_synonyms().get(word, ()))) for word, weight in weights]
    direction = meanings().direction(weights)
    described = tuple(hints(query, tuple(near), direction))
    further = tuple(one for hint in described[:FURTHER] for one in [_towards(direction, hint)] if one is not None)
    return Question(tuple(concepts[:MOST]), tuple(found), described, direction, further)


def _towards(direction: NDArray[Any] | None, hint: Hint) -> NDArray[Any] | None:
    """The middle between where a question points and where the names of what it describes point."""
    named = meanings().direction(Counter(word for name in hint.names for word in name).items())
    if named is None or direction is None:
        return named
    both = direction + named
    length = (both @ both) ** 0.5
    return both / length if length else None


def _turns(query: str) -> tuple[str, list[Concept]]:
    """The query without its turns of speech, and what they mean."""
    said = query.lower().split()
    concepts = []
    for turn, meant in phrases():
        for at in range(len(said) - len(turn) + 1):
            if said[at : at + len(turn)] == turn:
                terms = list(dict.fromkeys(stem(word) for word in meant))
                concepts.append(Concept(terms[0], 1.0, dict.fromkeys(terms[1:], TURN)))
                said[at : at + len(turn)] = ["."]
                break
    return (" ".join(said), concepts) if concepts else (query, [])


@lru_cache(maxsize=1000)
def _others(term: str) -> dict[str, float]:
    """The terms that can stand for one, with what each counts."""
    found = {other: NEARNESS * (near / 100 - NEAR) / (0.85 - NEAR) for other, near in neighbours(term)}
    for other, worth in _synonyms().get(term, {}).items():
        found[other] = max(worth, found.get(other, 0.0))
    return found


@cache
def _synonyms() -> dict[str, dict[str, float]]:
    """For each term those of its groups. Of a group of many each counts less."""
    found: dict[str, dict[str, float]] = {}
    for group in GROUPS:
        stems = list(dict.fromkeys(stem(word) for word in group))
        worth = SYNONYM * min(1.0, 1.15 - 0.05 * len(stems))
        for one in stems:
            mine = found.setdefault(one, {})
            for other in stems:
                if other != one:
                    mine[other] = max(worth, mine.get(other, 0.0))
    return found
