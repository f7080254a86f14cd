"""What a query asks for: its words, and the words that may stand in the code in their place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from .terms import STOP, stem, words
from .vocabulary import GROUPS, neighbours

SYNONYM = 0.6
"""What a synonym counts beside the word itself."""
NEARNESS = {5: 0.2, 6: 0.35, 7: 0.5, 8: 0.6, 9: 0.7}
"""What a neighbour counts, by its nearness in tenths."""
NOISE = 0.25
"""What a word that most queries hold counts."""
_NOISE = frozenset(
    map(stem, ("function", "method", "code", "python", "helper", "implementation", "snippet", "example"))
)
_SYMBOL = re.compile(
    r"\b(?:[A-Za-z_]\w*+(?:\.\w++)++|[A-Za-z][A-Za-z0-9]*+_\w++|[a-z]++[A-Z]\w*+|[A-Z][a-z]++[A-Z]\w*+|[A-Z]{2,}+[a-z]\w*+)"
)
LONGEST = 2000
"""Characters of a query that are looked at."""
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


def question(query: str) -> Question:
    """Take a query apart; no concepts if nothing in it can be looked for."""
    query = query[:LONGEST]
    asked = list(dict.fromkeys(words(query)))
    plain = [word for word in asked if word not in STOP] or asked
    concepts = [Concept(word, NOISE if word in _NOISE else 1.0, dict(_synonyms().get(word, {}))) for word in plain]
    if any(concept.weight == 1.0 for concept in concepts):
        concepts.sort(key=lambda concept: -concept.weight)
    found = [name.lower() for name in _SYMBOL.findall(query)]
    lone = query.strip()
    if lone.isidentifier():
        found.append(lone.lower())
    return Question(tuple(concepts[:MOST]), tuple(found))


@cache
def _synonyms() -> dict[str, dict[str, float]]:
    """For each term those that can stand for it. Of a group of many each counts less."""
    found: dict[str, dict[str, float]] = {}
    for term, others in neighbours().items():
        found[term] = {other: NEARNESS[tenths] for other, tenths in others if tenths in NEARNESS}
    for group in GROUPS:
        stems = list(dict.fromkeys(stem(word) for word in group))
        worth = SYNONYM * min(1.0, 1.15 - 0.05 * len(stems))
        for one in stems:
            mine = found.setdefault(one, {})
            for other in stems:
                if other != one:
                    mine[other] = max(worth, mine.get(other, 0.0))
    return found
