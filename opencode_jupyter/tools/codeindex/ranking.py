"""Finds the pieces that fit a question best, in two steps.

Pieces are gathered in three ways. FTS5 says for each word of the question, with the words that may stand for it, which
pieces have it: rare words first, until enough pieces are at hand. It says too which pieces are called as that is called
what the question describes (`hints`), or use its words. And there are those that point where the question points
(`meaning`), whatever their words.

The most promising are then scored one by one (`scoring`), and of those that read alike one is shown before the others.
"""

from __future__ import annotations

import heapq
import math
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import scoring
from .hints import learn
from .question import Question, question
from .scoring import Described, Wanted
from .store import Store

COMMON = 1000
"""A word that more pieces have says little; of those only the ones that have another word too are looked at."""
HINTED = 400
"""What a hint finds more of says nothing."""
USUAL = 400
"""A name that so many pieces have says half as much as one that few have, and none says less than that."""
RETRIEVED = 0.25
"""What a synonym must count to be looked for."""
SCORED, DESCRIBED, POINTING, FURTHER = 100, 25, 90, 40
"""Pieces scored one by one: those with words of the question, with those of a hint, those that point there, and those
that point to what a hint is called."""
_DIGITS = re.compile(r"\d+")
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


def everywhere(path: str) -> bool:
    """For a search that may show every file."""
    return True


def prepare(folder: Path) -> None:
    """Read the tables that a question needs, once in a process.

    Args:
        folder: where those are kept that are made here.
    """
    learn(folder)
    question("read the tables")


def ranked(store: Store, query: str, limit: int, allowed: Callable[[str], bool] = everywhere) -> list[Hit]:
    """The pieces that fit `query` best, best first.

    Of two that read the same one is left out; those that differ from a better one in numbers alone come last.

    Args:
        store: the index.
        query: words.
        limit: how many.
        allowed: whether a file, by its path in the project, may be shown.
    """
    asked = question(query)
    if not asked.concepts:
        return []
    connection = store.connection
    terms, best = _with_words(connection, asked)
    described, numbers = _described(connection, asked)
    best += numbers
    if asked.direction is not None:
        store.recall.follow(connection)
        best += store.recall.nearest(asked.direction, POINTING)
        for direction in asked.further:
            best += store.recall.nearest(direction, FURTHER)
    if asked.symbols:
        best = [*_named(connection, asked.symbols), *best]
    best = list(dict.fromkeys(best))
    near = store.recall.nearness(asked.direction, best) if asked.direction is not None else {}
    scored: list[tuple[float, str, int, Hit, str]] = []
    for at in range(0, len(best), 500):
        part = best[at : at + 500]
        rows = connection.execute(_FETCH.format(",".join("?" * len(part))), part)
        for number, path, kind, symbol, line, end, *fields, mtime, size in rows:
            score = scoring.score(asked, terms, described, number, symbol, fields, near.get(number, 0.0))
            if not score:
                continue
            hit = Hit(path, kind, symbol, line, end, score * scoring.worth(path, kind, symbol), (mtime, size))
            scored.append((-hit.score, path, line, hit, f"{symbol}|{fields[2]}|{fields[3]}|{fields[4]}|{end - line}"))
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


def _described(connection: sqlite3.Connection, asked: Question) -> tuple[list[Described], list[int]]:
    """The question's hints, each with the pieces that use its words; and the pieces worth scoring for them."""
    found = []
    best: list[int] = []
    for hint in asked.hints:
        by_name = [_having(connection, "heads", name, 0, HINTED) for name in hint.named()]
        named = [number for numbers, _ in by_name for number in numbers]
        using = _having(connection, "words", hint.made_of(), 0, HINTED)[0] if hint.code else []
        found.append(Described(hint, [1 / (1 + count / USUAL) for _, count in by_name], set(using)))
        both = set(using).intersection(named)
        ranked = [*both, *(number for number in named if number not in both), *using[:DESCRIBED]]
        best += ranked[: 3 * DESCRIBED]
    return found, best


def _with_words(connection: sqlite3.Connection, asked: Question) -> tuple[list[Wanted], list[int]]:
    """The concepts with their weights, and the pieces with their words that are worth scoring."""
    total = connection.execute("SELECT max(id) FROM pieces").fetchone()[0] or 1
    promise: dict[int, float] = {}
    get = promise.get
    wanted: list[Wanted] = []
    common: list[tuple[float, str]] = []
    heads_of: list[tuple[float, str]] = []
    for concept in asked.concepts:
        term = f'"{concept.term}"'
        others = " OR ".join(f'"{other}"' for other, worth in concept.others.items() if worth >= RETRIEVED)
        either = f"({term} OR {others})" if others else term
        found = [_having(connection, "words", term, total), _having(connection, "heads", either, total)]
        count = max(found[0][1], found[1][1])
        if found[1][1] > COMMON:
            found.append(_having(connection, "names", either, total))
        weight = concept.weight * math.log(1 + max(0.0, total - count + 0.5) / (count + 0.5))
        wanted.append(Wanted(concept, weight, set(found[0][0])))
        heads_of.append((weight, either))
        if found[1][1] > COMMON:
            common.append((weight, either))
        for (numbers, _), share in zip(found, (0.3, 0.5, 0.5), strict=False):
            for number in numbers:
                promise[number] = get(number, 0.0) + share * weight
    heads_of.sort(reverse=True)
    for weight, head in common:  # of what many have, those that have another thing asked for, too
        for other_weight, other in heads_of[:2]:
            if other != head:
                for number in _having(connection, "heads", f"{head} AND {other}", total)[0]:
                    promise[number] = max(get(number, 0.0), 0.4 * (weight + other_weight))
    if not promise and common:
        rows = connection.execute("SELECT rowid FROM heads WHERE heads MATCH ? LIMIT ?", (common[0][1], SCORED))
        promise = {number: 1.0 for (number,) in rows}
    return wanted, heapq.nlargest(SCORED, promise, key=promise.__getitem__)


def _having(
    connection: sqlite3.Connection, table: str, expression: str, total: int, most: int = COMMON
) -> tuple[list[int], int]:
    """The pieces that an expression fits and their number; none, and an estimate, if they are more than `most`."""
    rows = connection.execute(
        f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT ?",  # noqa: S608 - one of our three tables
        (expression, most + 1),
    )
    numbers = [number for (number,) in rows]
    if len(numbers) <= most:
        return numbers, len(numbers)
    return [], max(most + 1, most * total // numbers[-1])  # the first of them in order say how dense they lie


def _named(connection: sqlite3.Connection, symbols: tuple[str, ...]) -> list[int]:
    names = {name for symbol in symbols for name in (symbol, symbol.rpartition(".")[2])}
    found = []
    for name in names:
        rows = connection.execute("SELECT id FROM pieces WHERE symbol = ? COLLATE NOCASE LIMIT 100", (name,))
        found += [number for (number,) in rows]
    return found
