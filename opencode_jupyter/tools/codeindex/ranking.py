"""Finds the pieces that fit a question best.

A question is taken apart into words, each with the words that may stand in the code in its place (`synonyms.txt`,
`phrases.txt`). FTS5 says which pieces have them: rare words first, until enough pieces are at hand. The most promising
are then scored one by one: a word in the name counts more than one in the code, a synonym less than the word itself, a
rare word more than a common one, and a piece that speaks of everything asked goes before one that says one word often.
Of those that read alike one is shown before the others.
"""

from __future__ import annotations

import heapq
import math
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path

from .extract import is_test
from .store import Store
from .terms import STOP, stem, words

SYNONYM = 0.42
"""Weight of a synonym; the word itself has 1."""
TURN = 0.8
"""Weight of the further meanings of a phrase; the first has 1."""
_SYMBOL = re.compile(
    r"\b(?:[A-Za-z_]\w*+(?:\.\w++)++|[A-Za-z][A-Za-z0-9]*+_\w++|[a-z]++[A-Z]\w*+|[A-Z][a-z]++[A-Z]\w*+|[A-Z]{2,}+(?!s\b)[a-z]\w*+)"
)
LONGEST = 2000
"""Characters of a query that are looked at."""
MOST = 12
"""Words of a query that count."""
COMMON = 5000
"""A word that more pieces have says little; of those only the ones that have another word too are looked at."""
SCORED = 200
"""Pieces scored one by one."""
FIELDS = (3.0, 1.2, 1.0, 2.2, 0.9, 1.7)
"""Weights of a word in name, place, signature, summary, doc and body."""
LENGTHS = {3: 15, 4: 120}
"""Words of a usual summary and of a usual doc; in a longer one each counts less."""
SATURATION = 2.0
NAMED = 0.5
"""Bonus of a name whose words all stand in the question."""
KINDS = {"function": 1.0, "method": 1.0, "class": 0.92, "cell": 0.9, "section": 0.85, "module": 0.75, "code": 0.6}
TEST = 0.55
COPIED = 0.7
"""For other people's code that lies in the project: copied into it, or installed there."""
PRIVATE = 0.95
_COPIED = re.compile(r"(^|/)(_?vendor(ed)?|third_party|extern(al)?s?|(site|dist)-packages)/")
_DIGITS = re.compile(r"\d+")
_FETCH = """
SELECT f.path, p.kind, p.symbol, p.line, p.end, p.name, p.place, p.signature, p.summary, p.doc, p.body, f.mtime, f.size
FROM pieces p JOIN files f ON f.id = p.file WHERE p.id IN ({})"""


# ------------------------------------------------------------------ what is asked


@dataclass(frozen=True, slots=True)
class Concept:
    """A word of a query.

    Attributes:
        term: as the index has it.
        others: terms that may stand for it, with what they count beside it.
    """

    term: str
    others: dict[str, float]
    words: frozenset[str] = field(init=False)
    """All of them."""

    def __post_init__(self) -> None:
        """Gather its words."""
        object.__setattr__(self, "words", frozenset((self.term, *self.others)))


@dataclass(frozen=True, slots=True)
class Question:
    """A query taken apart.

    Attributes:
        concepts: its words.
        symbols: names of things that stand in it, in lower case.
    """

    concepts: tuple[Concept, ...]
    symbols: tuple[str, ...]


def parse_query(query: str) -> Question:
    """Take a query apart; no concepts if nothing in it can be looked for."""
    query = query[:LONGEST]
    rest, concepts = _turns(query)
    asked = list(dict.fromkeys(words(rest)))
    plain = [word for word in asked if word not in STOP] or ([] if concepts else asked)
    concepts += [Concept(word, _synonyms().get(word, {})) for word in plain]
    symbols = [name.lower() for name in _SYMBOL.findall(query)]
    if query.strip().isidentifier():
        symbols.append(query.strip().lower())
    return Question(tuple(concepts[:MOST]), tuple(symbols))


def _turns(query: str) -> tuple[str, list[Concept]]:
    """The query without its turns of speech, and what they mean."""
    query_words = query.lower().split()
    concepts = []
    for turn, meant in _phrases():
        for at in range(len(query_words) - len(turn) + 1):
            if query_words[at : at + len(turn)] == turn:
                concepts.append(Concept(meant[0], dict.fromkeys(meant[1:], TURN)))
                query_words[at : at + len(turn)] = ["."]
                break
    return (" ".join(query_words), concepts) if concepts else (query, [])


@cache
def _phrases() -> list[tuple[list[str], list[str]]]:
    """Turns of speech, longest first, with the terms that code has for them."""
    out = []
    for line in _lines("phrases.txt"):
        turn, _, meant = line.partition(":")
        out.append((turn.split(), list(dict.fromkeys(map(stem, meant.split())))))
    return sorted(out, key=lambda pair: -len(pair[0]))


@cache
def _synonyms() -> dict[str, dict[str, float]]:
    """For each term those of its groups. Of a group of many each counts less."""
    synonyms: dict[str, dict[str, float]] = {}
    for line in _lines("synonyms.txt"):
        stems = list(dict.fromkeys(map(stem, line.split())))
        worth = SYNONYM * min(1.0, 1.15 - 0.05 * len(stems))
        for term in stems:
            mine = synonyms.setdefault(term, {})
            for other in stems:
                if other != term:
                    mine[other] = max(worth, mine.get(other, 0.0))
    return synonyms


def _lines(name: str) -> list[str]:
    """The lines of one of the lists beside this module, without comments."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


# ------------------------------------------------------------------ what fits

WeightedConcepts = list[tuple[Concept, float]]
"""The concepts of a question, each with what it counts: rare words say more."""


@dataclass(slots=True)
class Hit:
    """A piece that was found, with the place it had when its file was indexed."""

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


def rank(store: Store, query: str, limit: int, allowed: Callable[[str], bool] = allow_all) -> list[Hit]:
    """The pieces that fit `query` best, best first.

    Of two that read the same one is left out; those that differ from a better one in numbers alone come last.

    Args:
        store: the index.
        query: words.
        limit: how many.
        allowed: whether a file, by its path in the project, may be shown.
    """
    asked = parse_query(query)
    if not asked.concepts:
        return []
    weighted, promising = _promising(store.connection, asked)
    numbers = list(dict.fromkeys([*_named(store.connection, asked.symbols), *promising]))
    scored: list[tuple[float, str, int, Hit, str]] = []
    for at in range(0, len(numbers), 500):
        part = numbers[at : at + 500]
        rows = store.connection.execute(_FETCH.format(",".join("?" * len(part))), part)
        for path, kind, symbol, line, end, *fields, mtime, size in rows:
            score = _by_words(weighted, fields) + _by_name(asked.symbols, symbol.lower())
            if score:
                hit = Hit(path, kind, symbol, line, end, score * _worth(path, kind, symbol), (mtime, size))
                scored.append((-hit.score, path, line, hit, "|".join([symbol, *fields[2:5], str(end - line)])))
    scored.sort(key=lambda one: one[:3])
    return _varied([(hit, text) for *_, hit, text in scored], limit, allowed)


def _varied(scored: list[tuple[Hit, str]], limit: int, allowed: Callable[[str], bool]) -> list[Hit]:
    """The first ones that may be shown, without copies, and with those that differ in numbers alone at the end."""
    same: set[str] = set()
    alike: set[str] = set()
    hits: list[Hit] = []
    later: list[Hit] = []
    for hit, text in scored:
        if len(hits) == limit:
            break
        whole = hit.kind not in ("code", "cell", "section")
        if (whole and text in same) or not allowed(hit.path):
            continue
        same.add(text)
        shape = _DIGITS.sub("0", text)
        if whole and shape in alike:
            later.append(hit)
        else:
            alike.add(shape)
            hits.append(hit)
    return [*hits, *later[: limit - len(hits)]]


# ------------------------------------------------------------------ which pieces are scored


def _promising(connection: sqlite3.Connection, asked: Question) -> tuple[WeightedConcepts, list[int]]:
    """The concepts with their weights, and the pieces with their words that are worth scoring."""
    total = connection.execute("SELECT max(id) FROM pieces").fetchone()[0] or 1
    promise: dict[int, float] = {}
    get = promise.get
    weighted: WeightedConcepts = []
    common: list[tuple[float, str]] = []
    heads: list[tuple[float, str]] = []
    for concept in asked.concepts:
        term = f'"{concept.term}"'
        either = " OR ".join(f'"{other}"' for other in (concept.term, *concept.others))
        anywhere, count = _having(connection, "words", term, total)
        head, in_heads = _having(connection, "heads", either, total)
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
            for number in _having(connection, "heads", f"{head_words} AND {other}", total)[0]:
                promise[number] = max(get(number, 0.0), weight + rarest)
    if not promise and common:
        rows = connection.execute("SELECT rowid FROM heads WHERE heads MATCH ? LIMIT ?", (common[0][1], SCORED))
        promise = {number: 1.0 for (number,) in rows}
    return weighted, heapq.nlargest(SCORED, promise, key=promise.__getitem__)


def _having(connection: sqlite3.Connection, table: str, expression: str, total: int) -> tuple[list[int], int]:
    """The pieces that an expression fits and their number; none, and an estimate, if they are more than `COMMON`."""
    fitting = f"SELECT rowid FROM {table} WHERE {table} MATCH ?"  # noqa: S608 - one of our two tables
    beyond = connection.execute(f"{fitting} LIMIT 1 OFFSET ?", (expression, COMMON)).fetchone()
    if beyond:
        return [], max(COMMON + 1, COMMON * total // beyond[0])  # the first of them in order say how dense they lie
    numbers = [number for (number,) in connection.execute(fitting, (expression,))]
    return numbers, len(numbers)


def _named(connection: sqlite3.Connection, symbols: tuple[str, ...]) -> list[int]:
    numbers = []
    for name in {name for symbol in symbols for name in (symbol, symbol.rpartition(".")[2])}:
        rows = connection.execute("SELECT id FROM pieces WHERE symbol = ? COLLATE NOCASE LIMIT 100", (name,))
        numbers += [number for (number,) in rows]
    return numbers


# ------------------------------------------------------------------ how well one fits


def _worth(path: str, kind: str, symbol: str) -> float:
    """The weight of a piece by its kind and file, 1 for most."""
    worth = KINDS.get(kind, 1.0)
    if is_test(path):
        worth *= TEST
    if _COPIED.search(path):
        worth *= COPIED
    return worth * PRIVATE if symbol.rpartition(".")[2].startswith("_") else worth


def _by_name(symbols: tuple[str, ...], symbol: str) -> float:
    last = symbol.rpartition(".")[2]
    if last and any(s in (symbol, last) or s.endswith("." + symbol) for s in symbols):
        return 20.0 if symbol in symbols else 10.0
    return 0.0


def _by_words(weighted: WeightedConcepts, fields: list[str]) -> float:
    """BM25 over fields, times how much of the question is covered, 0 to 1 and a little more."""
    sets = [frozenset(text.split()) for text in fields]
    worths = [w / (0.6 + len(fields[i].split()) / LENGTHS[i]) if i in LENGTHS else w for i, w in enumerate(FIELDS)]
    total = covered = everything = 0.0
    explained: set[str] = set()
    whole = sets[0].union(*sets[1:])
    for concept, weight in weighted:
        strength = best = 0.0
        fitting = whole & concept.words  # of most pieces few words fit
        for i, words_of_field in enumerate(sets if fitting else ()):
            match, by = _match(concept, fitting & words_of_field)
            if match:
                strength += worths[i] * match
                best = max(best, match)
                if i == 0:
                    explained.add(by)
        total += weight * strength / (strength + SATURATION)
        covered += weight * best
        everything += weight
    if not everything:
        return 0.0
    score = total / everything * covered / everything
    return score * (1 + NAMED * len(explained) / len(sets[0])) if sets[0] else score


def _match(concept: Concept, fitting: frozenset[str]) -> tuple[float, str]:
    """How well a field fits a concept, and by which of its `fitting` words."""
    if concept.term in fitting:
        return 1.0, concept.term
    return max(((concept.others[other], other) for other in fitting), default=(0.0, ""))
