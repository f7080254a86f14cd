"""Finds the pieces that fit a question best, in two steps.

FTS5 gathers pieces that have most of the question's words, or synonyms of them: first those that have all, then those
that lack one, and so on until there are enough. Those are then scored one by one: BM25 over fields (a word in the name
counts more than one in the code), and what can't be said in SQL: a synonym counts less than the word, and a piece that
speaks of everything asked goes before one that says one word often.
"""

from __future__ import annotations

import math
import sqlite3
from dataclasses import dataclass
from itertools import combinations

from .extract import is_test
from .question import Concept, Question, question

ENOUGH = 300
"""Pieces gathered before looser ones are not looked for."""
MOST = 1500
"""Pieces scored."""
MAIN = 6
"""Words of a question that pieces are gathered by; the rarest ones."""
FIELDS = {"name": 3.0, "place": 0.9, "signature": 0.7, "summary": 2.2, "doc": 0.9}
BODY = 0.5
SATURATION = 2.0
KINDS = {"function": 1.0, "method": 1.0, "class": 0.92, "cell": 0.9, "section": 0.85, "module": 0.75, "code": 0.6}
TEST = 0.55
_HEAD = "{name place signature summary doc}"
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


def ranked(connection: sqlite3.Connection, query: str, limit: int) -> list[Hit]:
    """The pieces that fit `query` best, best first."""
    asked = question(query)
    if not asked.concepts:
        return []
    weights = _weights(connection, asked)
    found = _gathered(connection, asked, weights)
    scored: list[Hit] = []
    numbers = list(found)
    for at in range(0, len(numbers), 500):
        part = numbers[at : at + 500]
        rows = connection.execute(_FETCH.format(",".join("?" * len(part))), part)
        for number, path, kind, symbol, line, end, *fields, mtime, size in rows:
            score = _score(asked, weights, found[number], kind, symbol, fields)
            score *= KINDS.get(kind, 1.0) * (TEST if is_test(path) else 1.0)
            scored.append(Hit(path, kind, symbol, line, end, score, (mtime, size)))
    scored.sort(key=lambda hit: (-hit.score, hit.path, hit.line))
    return scored[:limit]


def _weights(connection: sqlite3.Connection, asked: Question) -> list[float]:
    """What each concept counts: rare words say more (the idf of BM25)."""
    total = connection.execute("SELECT max(rowid) FROM pieces").fetchone()[0] or 1
    out = []
    for concept in asked.concepts:
        row = connection.execute("SELECT doc FROM counts WHERE term = ?", (concept.term,)).fetchone()
        count = row[0] if row else 0
        out.append(concept.weight * math.log(1 + (total - count + 0.5) / (count + 0.5)))
    return out


def _gathered(connection: sqlite3.Connection, asked: Question, weights: list[float]) -> dict[int, int]:
    """Pieces, each with the number of concepts (of the `MAIN` ones) that it has at least."""
    order = sorted(range(len(weights)), key=lambda i: -weights[i])[:MAIN]
    expressions = [_expression(asked.concepts[i]) for i in order]
    found: dict[int, int] = {}
    if asked.symbols:
        marks = ",".join("?" * len(asked.symbols))
        names = [symbol.rpartition(".")[2] for symbol in asked.symbols]
        rows = connection.execute(
            f"SELECT id FROM pieces WHERE lower(symbol) IN ({marks},{marks}) LIMIT 200",  # noqa: S608
            [*asked.symbols, *names],
        )
        found.update((number, 1) for (number,) in rows)
    for size in range(len(expressions), 0, -1):
        joined = " OR ".join("(" + " AND ".join(chosen) + ")" for chosen in combinations(expressions, size))
        rows = connection.execute("SELECT rowid FROM words WHERE words MATCH ? LIMIT ?", (joined, MOST))
        for (number,) in rows:
            found.setdefault(number, size)
        if len(found) >= ENOUGH or (size <= 2 and len(found) >= ENOUGH / 10):
            break
    return found


def _expression(concept: Concept) -> str:
    text = f'"{concept.term}"'
    if concept.others:
        others = " OR ".join(f'"{other}"' for other in concept.others)
        text = f"({text} OR {_HEAD} : ({others}))"
    return text


def _score(asked: Question, weights: list[float], size: int, kind: str, symbol: str, fields: list[str]) -> float:
    texts = [field.split() for field in fields]
    sets = [set(text) for text in texts]
    name = texts[0]
    worths = list(FIELDS.values())
    norms = [1.0, 1.0, 1.0, 1 / (0.6 + len(texts[3]) / 25), 1 / (0.6 + len(texts[4]) / 60)]
    total = covered = 0.0
    missing: list[float] = []
    explained: set[str] = set()
    for concept, weight in zip(asked.concepts, weights, strict=True):
        strength = best = 0.0
        for i, there in enumerate(sets):
            if concept.term in there:
                match = 1.0
                if i == 0:
                    explained.add(concept.term)
            else:
                match = 0.0
                for other, worth in concept.others.items():
                    if other in there:
                        if i == 0:
                            explained.add(other)
                        match = max(match, worth)
            if match:
                strength += worths[i] * norms[i] * match
                best = max(best, match)
        if best:
            total += weight * strength / (strength + SATURATION)
            covered += weight * best
        else:
            missing.append(weight)
    in_body = max(0, size - (len(weights) - len(missing)))
    for weight in sorted(missing, reverse=True)[:in_body]:
        total += weight * BODY / (BODY + SATURATION)
        covered += weight * 0.6
    coverage = covered / (sum(weights) or 1.0)
    score = total * (0.3 + 0.7 * coverage)
    if name:
        score *= 1 + 0.35 * len(explained.intersection(name)) / len(set(name))
    last = symbol.rpartition(".")[2].lower()
    if last and any(symbol.lower() == s or last == s or s.endswith("." + symbol.lower()) for s in asked.symbols):
        score += 10 * (sum(weights) or 1.0)
    return score
