"""Finds the pieces that fit a question best, in two steps.

FTS5 says for each word of the question, with the words that may stand for it, which pieces have it: rare words first,
until enough pieces are at hand. The most promising are then scored one by one: BM25 over fields (a word in the name
counts more than one in the code), and what can't be said in SQL: a synonym counts less than the word, and a piece that
speaks of everything asked goes before one that says one word often.
"""

from __future__ import annotations

import heapq
import math
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from .extract import is_test
from .question import Concept, Question, question

COMMON = 4000
"""A word that more pieces have says little; of those only the ones that have another word too are looked at."""
RETRIEVED = 0.25
"""What a synonym must count to be looked for."""
SCORED = 250
"""Pieces scored one by one."""
FIELDS = {"name": 3.0, "place": 1.2, "signature": 0.7, "summary": 2.2, "doc": 0.9}
LENGTHS = (15, 120)
"""Words of a usual summary and of a usual doc; in a longer one each counts less."""
BODY = 0.7
SATURATION = 2.0
COVERAGE = 0.95
"""How much of a score hangs on how much of the question a piece covers."""
NAMED = 0.5
"""What a name that the question explains in full adds."""
KINDS = {"function": 1.0, "method": 1.0, "class": 0.92, "cell": 0.9, "section": 0.85, "module": 0.75, "code": 0.6}
TEST = 0.55
COPIED = 0.85
"""For other people's code that lies in the project."""
PRIVATE = 0.95
_COPIED = re.compile(r"(^|/)(_?vendor(ed)?|third_party|extern(al)?s?)/")
_FETCH = """
SELECT p.id, f.path, p.kind, p.symbol, p.line, p.end, p.name, p.place, p.signature, p.summary, p.doc, f.mtime, f.size
FROM pieces p JOIN files f ON f.id = p.file WHERE p.id IN ({})"""


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


@dataclass(slots=True)
class _Wanted:
    """A concept with what it counts (rare words say more) and the pieces that have the word itself anywhere."""

    concept: Concept
    weight: float
    there: set[int]


def everywhere(path: str) -> bool:
    """For a search that may show every file."""
    return True


def ranked(
    connection: sqlite3.Connection, query: str, limit: int, allowed: Callable[[str], bool] = everywhere
) -> list[Hit]:
    """The pieces that fit `query` best, best first; of two that read the same, one.

    Args:
        connection: to the index.
        query: words.
        limit: how many.
        allowed: whether a file, by its path in the project, may be shown.
    """
    asked = question(query)
    if not asked.concepts:
        return []
    wanted, numbers = _gathered(connection, asked)
    scored: list[tuple[float, str, int, Hit, str]] = []
    for at in range(0, len(numbers), 500):
        part = numbers[at : at + 500]
        rows = connection.execute(_FETCH.format(",".join("?" * len(part))), part)
        for number, path, kind, symbol, line, end, *fields, mtime, size in rows:
            score = _score(asked, wanted, number, symbol, fields) * _worth(path, kind, symbol)
            hit = Hit(path, kind, symbol, line, end, score, (mtime, size))
            scored.append((-score, path, line, hit, f"{symbol}|{fields[2]}|{fields[3]}|{fields[4]}|{end - line}"))
    scored.sort(key=lambda one: one[:3])
    alike: set[str] = set()
    hits = []
    for *_, hit, text in scored:
        if (text not in alike or hit.kind in ("code", "cell", "section")) and allowed(hit.path):
            alike.add(text)
            hits.append(hit)
            if len(hits) == limit:
                break
    return hits


def _gathered(connection: sqlite3.Connection, asked: Question) -> tuple[list[_Wanted], list[int]]:
    """The concepts with their weights, and the pieces that are worth scoring."""
    total = connection.execute("SELECT max(id) FROM pieces").fetchone()[0] or 1
    promise: dict[int, float] = {}
    get = promise.get
    wanted: list[_Wanted] = []
    common: list[tuple[float, str]] = []
    heads_of: list[tuple[float, str]] = []
    for concept in asked.concepts:
        term = f'"{concept.term}"'
        others = " OR ".join(f'"{other}"' for other, worth in concept.others.items() if worth >= RETRIEVED)
        either = f"({term} OR {others})" if others else term
        asks = (("words", term), ("heads", either), ("names", either))
        found = [_having(connection, table, expression, total) for table, expression in asks]
        count = max(found[0][1], found[1][1])
        weight = concept.weight * math.log(1 + max(0.0, total - count + 0.5) / (count + 0.5))
        wanted.append(_Wanted(concept, weight, set(found[0][0])))
        heads_of.append((weight, either))
        if found[1][1] > COMMON:
            common.append((weight, either))
        for (numbers, _), share in zip(found, (0.3, 0.4, 0.3), strict=True):
            for number in numbers:
                promise[number] = get(number, 0.0) + share * weight
    heads_of.sort(reverse=True)
    for weight, head in common:  # of what many have, those that have another thing asked for, too
        for other_weight, other in heads_of[:4]:
            if other != head:
                for number in _having(connection, "heads", f"{head} AND {other}", total)[0]:
                    promise[number] = max(get(number, 0.0), 0.4 * (weight + other_weight))
    if not promise and common:
        rows = connection.execute("SELECT rowid FROM heads WHERE heads MATCH ? LIMIT ?", (common[0][1], SCORED))
        promise = {number: 1.0 for (number,) in rows}
    best = heapq.nlargest(SCORED, promise, key=promise.__getitem__)
    if asked.symbols:
        best = list(dict.fromkeys([*_named(connection, asked.symbols), *best]))
    return wanted, best


def _having(connection: sqlite3.Connection, table: str, expression: str, total: int) -> tuple[list[int], int]:
    """The pieces that an expression fits and their number; none, and an estimate, if they are more than `COMMON`."""
    rows = connection.execute(
        f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT ?",  # noqa: S608 - one of our three tables
        (expression, COMMON + 1),
    )
    numbers = [number for (number,) in rows]
    if len(numbers) <= COMMON:
        return numbers, len(numbers)
    return [], max(COMMON + 1, COMMON * total // numbers[-1])  # the first of them in order say how dense they lie


def _named(connection: sqlite3.Connection, symbols: tuple[str, ...]) -> list[int]:
    names = {name for symbol in symbols for name in (symbol, symbol.rpartition(".")[2])}
    found = []
    for name in names:
        rows = connection.execute("SELECT id FROM pieces WHERE symbol = ? COLLATE NOCASE LIMIT 100", (name,))
        found += [number for (number,) in rows]
    return found


def _worth(path: str, kind: str, symbol: str) -> float:
    worth = KINDS.get(kind, 1.0)
    if is_test(path):
        worth *= TEST
    if _COPIED.search(path):
        worth *= COPIED
    return worth * PRIVATE if symbol.rpartition(".")[2].startswith("_") else worth


def _score(asked: Question, wanted: list[_Wanted], number: int, symbol: str, fields: list[str]) -> float:
    texts = [field.split() for field in fields]
    sets = [set(text) for text in texts]
    worths = list(FIELDS.values())
    worths[3] /= 0.6 + len(texts[3]) / LENGTHS[0]
    worths[4] /= 0.6 + len(texts[4]) / LENGTHS[1]
    total = covered = everything = 0.0
    explained: set[str] = set()
    for one in wanted:
        concept = one.concept
        strength = best = 0.0
        for i, there in enumerate(sets):
            match, by = _match(concept, there)
            if match:
                strength += worths[i] * match
                best = max(best, match)
                if i == 0:
                    explained.add(by)
        if not best and number in one.there:
            strength, best = BODY, 0.6
        total += one.weight * strength / (strength + SATURATION)
        covered += one.weight * best
        everything += one.weight
    score = total * (1 - COVERAGE + COVERAGE * covered / (everything or 1.0))
    if sets[0]:
        score *= 1 + NAMED * len(explained) / len(sets[0])
    lower = symbol.lower()
    last = lower.rpartition(".")[2]
    if last and any(s in (lower, last) or s.endswith("." + lower) for s in asked.symbols):
        score += 10 * (everything or 1.0) * (2 if lower in asked.symbols else 1)
    return score


def _match(concept: Concept, there: set[str]) -> tuple[float, str]:
    """How well a field's words fit a concept, and by which word."""
    if concept.term in there:
        return 1.0, concept.term
    others = concept.others
    best, by = 0.0, ""
    for other in there.intersection(others):
        if others[other] > best:
            best, by = others[other], other
    return best, by
