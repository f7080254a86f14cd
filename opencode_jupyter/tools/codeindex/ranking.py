"""Finds the pieces that fit a query best.

A query is taken apart into words, each with its synonyms (`synonyms.txt`, `phrases.txt`). FTS5 says which pieces have
them: rare words first, until enough pieces are at hand. The most promising are then scored one by one: a word in the
name counts more than one in the code, a synonym less than the word itself, a rare word more than a common one, and a
piece that speaks of everything in the query goes before one that repeats one word.
"""

from __future__ import annotations

import heapq
import math
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path

from .store import IndexStore
from .tokenizer import STOP, stem, words

SYNONYM = 0.42
"""Weight of a synonym; the word itself has 1."""
MAX_CHARACTERS = 2000
"""Characters of a query that are looked at."""
MAX_WORDS = 12
"""Words of a query that count."""
COMMON = 5000
"""A word that more pieces have says little; of those only the ones that have another word too are looked at."""
SCORED = 100
"""Pieces scored one by one."""
FIELDS = (3.0, 1.0, 1.0, 2.0, 1.0, 1.0)
"""Weights of a word in name, place, signature, summary, doc and body."""
SATURATION = 2.0
NAMED = 0.5
"""Bonus of a name whose words all stand in the query."""
KINDS = {"class": 0.92, "cell": 0.9, "section": 0.85, "module": 0.75, "code": 0.6}
"""Weights of a piece by its kind; functions and methods have 1."""
TEST = 0.55
"""Weight of a piece in a test."""
_FETCH = """
SELECT f.path, p.kind, p.symbol, p.line, p.end, p.name, p.place, p.signature, p.summary, p.doc, p.body, f.mtime, f.size
FROM pieces p JOIN files f ON f.id = p.file WHERE p.id IN ({})"""


@dataclass(frozen=True, slots=True)
class Concept:
    """A word of a query.

    Attributes:
        term: as the index has it.
        synonyms: terms that may stand for it.
    """

    term: str
    synonyms: frozenset[str]


def parse_query(query: str) -> list[Concept]:
    """Take a query apart; empty if nothing in it can be looked for."""
    rest, concepts = _take_phrases(query[:MAX_CHARACTERS])
    terms = list(dict.fromkeys(words(rest)))
    telling = [term for term in terms if term not in STOP] or ([] if concepts else terms)
    concepts += [Concept(term, _synonyms().get(term, frozenset()) - {term}) for term in telling]
    return concepts[:MAX_WORDS]


def _take_phrases(query: str) -> tuple[str, list[Concept]]:
    """The query without the phrases in it that `phrases.txt` has, and what those mean."""
    query_words = query.lower().split()
    concepts = []
    for phrase, meanings in _phrases():
        for at in range(len(query_words) - len(phrase) + 1):
            if query_words[at : at + len(phrase)] == phrase:
                concepts.append(Concept(meanings[0], frozenset(meanings[1:])))
                query_words[at : at + len(phrase)] = ["."]
                break
    return (" ".join(query_words), concepts) if concepts else (query, [])


@cache
def _phrases() -> list[tuple[list[str], list[str]]]:
    """Turns of speech, longest first, with the terms that code has for them."""
    pairs = [line.split(":") for line in _lines("phrases.txt")]
    return sorted(
        ((phrase.split(), list(map(stem, terms.split()))) for phrase, terms in pairs), key=lambda p: -len(p[0])
    )


@cache
def _synonyms() -> dict[str, frozenset[str]]:
    """For each term those of its lines in `synonyms.txt`, itself too."""
    synonyms: dict[str, frozenset[str]] = {}
    for line in _lines("synonyms.txt"):
        group = frozenset(map(stem, line.split()))
        for term in group:
            synonyms[term] = synonyms.get(term, frozenset()) | group
    return synonyms


def _lines(name: str) -> list[str]:
    """The lines of one of the lists beside this module, without comments."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


WeightedConcepts = list[tuple[Concept, float]]
"""The concepts of a query, each with what it counts: rare words say more."""


@dataclass(slots=True)
class Hit:
    """A matching piece, with the lines it had when its file was indexed."""

    path: str
    kind: str
    symbol: str
    line: int
    end_line: int
    score: float
    state: tuple[int, int]
    """Time of change (ns) and size of the file then."""


def allow_all(path: str) -> bool:
    """For a search that may show every file."""
    return True


def rank(store: IndexStore, query: str, limit: int, allowed: Callable[[str], bool] = allow_all) -> list[Hit]:
    """The pieces that fit `query` best, best first.

    Args:
        store: the index.
        query: words.
        limit: how many.
        allowed: whether a file, by its path in the project, may be shown.
    """
    concepts = parse_query(query)
    if not concepts:
        return []
    weighted, numbers = _select_candidates(store.connection, concepts)
    hits: list[Hit] = []
    for path, kind, symbol, line, end, *fields, mtime, size in store.connection.execute(
        _FETCH.format(",".join("?" * len(numbers))), numbers
    ):
        score = _score(weighted, fields) * KINDS.get(kind, 1.0) * (TEST if is_test(path) else 1.0)
        if score:
            hits.append(Hit(path, kind, symbol, line, end, score, (mtime, size)))
    hits.sort(key=lambda hit: (-hit.score, hit.path, hit.line))
    return list(islice((hit for hit in hits if allowed(hit.path)), limit))


def _select_candidates(connection: sqlite3.Connection, concepts: list[Concept]) -> tuple[WeightedConcepts, list[int]]:
    """The concepts with their weights, and the pieces with their words that are worth scoring."""
    total = connection.execute("SELECT max(id) FROM pieces").fetchone()[0] or 1
    promise: dict[int, float] = {}
    get = promise.get
    weighted: WeightedConcepts = []
    common: list[tuple[float, str]] = []
    heads: list[tuple[float, str]] = []
    for concept in concepts:
        either = " OR ".join(f'"{term}"' for term in (concept.term, *sorted(concept.synonyms)))
        anywhere, count = _matching(connection, "words", f'"{concept.term}"', total)
        head, in_heads = _matching(connection, "heads", either, total)
        count = max(count, in_heads)
        weight = math.log(1 + max(0.0, total - count + 0.5) / (count + 0.5))
        weighted.append((concept, weight))
        heads.append((weight, f"({either})"))
        if in_heads > COMMON:
            common.append(heads[-1])
        for number in chain(anywhere, head):
            promise[number] = get(number, 0.0) + weight
    rarest, other = max(heads)
    for weight, head_words in common:  # of what many have, those that have the rarest thing asked for, too
        if other != head_words:
            for number in _matching(connection, "heads", f"{head_words} AND {other}", total)[0]:
                promise[number] = max(get(number, 0.0), weight + rarest)
    if not promise and common:
        rows = connection.execute("SELECT rowid FROM heads WHERE heads MATCH ? LIMIT ?", (common[0][1], SCORED))
        promise = {number: 1.0 for (number,) in rows}
    return weighted, heapq.nlargest(SCORED, promise, key=promise.__getitem__)


def _matching(connection: sqlite3.Connection, table: str, expression: str, total: int) -> tuple[list[int], int]:
    """The pieces that an expression fits and their number; none, and an estimate, if they are more than `COMMON`."""
    fitting = f"SELECT rowid FROM {table} WHERE {table} MATCH ?"  # noqa: S608 - one of our two tables
    beyond = connection.execute(f"{fitting} LIMIT 1 OFFSET ?", (expression, COMMON)).fetchone()
    if beyond:
        return [], max(COMMON + 1, COMMON * total // beyond[0])  # the first of them in order say how dense they lie
    numbers = [number for (number,) in connection.execute(fitting, (expression,))]
    return numbers, len(numbers)


def _score(weighted: WeightedConcepts, fields: list[str]) -> float:
    """BM25 over fields, times how much of the query is covered, 0 to 1 and a little more."""
    sets = [frozenset(text.split()) for text in fields]
    name, whole = sets[0], sets[0].union(*sets[1:])
    total = covered = everything = 0.0
    explained: set[str] = set()
    for concept, weight in weighted:
        everything += weight
        synonyms = whole & concept.synonyms
        if concept.term not in whole and not synonyms:
            continue
        strength = best = 0.0
        for field, field_weight in zip(sets, FIELDS, strict=True):
            match = 1.0 if concept.term in field else SYNONYM if synonyms & field else 0.0
            strength += field_weight * match
            best = max(best, match)
        if concept.term in name:
            explained.add(concept.term)
        elif synonyms & name:
            explained.add(min(synonyms & name))
        total += weight * strength / (strength + SATURATION)
        covered += weight * best
    if not everything:
        return 0.0
    score = total / everything * covered / everything
    return score * (1 + NAMED * len(explained) / len(name)) if name else score


_TESTS = re.compile(r"(^|/)(tests?|testing|conftest|test_[^/]*|[^/]*_test)(\.py)?(/|$)", re.IGNORECASE)


def is_test(path: str) -> bool:
    """Return whether a file holds tests, by its path."""
    return _TESTS.search(path) is not None
