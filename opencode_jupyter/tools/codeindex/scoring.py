"""How well one piece fits a question.

Three things count: its words (BM25 over fields: a word in the name counts more than one in the code, a synonym less
than the word itself, and a piece that speaks of everything asked goes before one that says one word often), whether it
is what the question describes (`hints`), and whether it points where the question does (`meaning`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from .extract import is_test
from .hints import Hint
from .question import Concept, Question

FIELDS = {"name": 3.0, "place": 1.2, "signature": 0.7, "summary": 2.2, "doc": 0.9}
LENGTHS = (15, 120)
"""Words of a usual summary and of a usual doc; in a longer one each counts less."""
BODY = 0.7
SATURATION = 2.0
COVERAGE = 0.95
"""How much of a score hangs on how much of the question a piece covers."""
NAMED = 0.5
"""What a name that the question explains in full adds."""
HINT = 1.15
"""What a piece that is called as what the question describes gets."""
HINT_WHOLE, HINT_SAID, HINT_PART, HINT_CODE = 0.8, 0.6, 0.6, 0.5
"""What counts beside the name: that it is called so with its class or module, that its summary has the name, that it is
called by a part of the name; and that its code has the words of such a piece."""
FURTHER = 0.5
"""What it counts that it is what other hints say too."""
MEANING = 1.0
"""What a piece that points exactly where the question does gets."""
ALONE = 0.35
"""How near a piece must point that has nothing else to say for it."""
KINDS = {"function": 1.0, "method": 1.0, "class": 0.92, "cell": 0.9, "section": 0.85, "module": 0.75, "code": 0.6}
TEST = 0.55
COPIED = 0.7
"""For other people's code that lies in the project: copied into it, or installed there."""
PRIVATE = 0.95
_COPIED = re.compile(r"(^|/)(_?vendor(ed)?|third_party|extern(al)?s?|(site|dist)-packages)/")


@dataclass(slots=True)
class Wanted:
    """A concept with what it counts (rare words say more) and the pieces that have the word itself anywhere."""

    concept: Concept
    weight: float
    there: set[int]
    words: frozenset[str] = field(init=False)
    """All words that fit it."""

    def __post_init__(self) -> None:
        """Gather its words."""
        self.words = frozenset((self.concept.term, *self.concept.others))


@dataclass(slots=True)
class Described:
    """A hint with how much each of its names says (of a name that many pieces have, less), and who uses its words."""

    hint: Hint
    telling: list[float]
    using: set[int]


def worth(path: str, kind: str, symbol: str) -> float:
    """What any piece of this kind in this file is worth as an answer, 1 for most."""
    found = KINDS.get(kind, 1.0)
    if is_test(path):
        found *= TEST
    if _COPIED.search(path):
        found *= COPIED
    return found * PRIVATE if symbol.rpartition(".")[2].startswith("_") else found


def score(
    asked: Question,
    wanted: list[Wanted],
    described: list[Described],
    number: int,
    symbol: str,
    fields: list[str],
    near: float,
) -> float:
    """How well a piece fits; 0 if not at all.

    Args:
        asked: the question.
        wanted: its words.
        described: what it describes.
        number: of the piece.
        symbol: its name.
        fields: the words of its name, place, signature, summary and doc.
        near: how much it points where the question does (a cosine).
    """
    sets = [set(words.split()) for words in fields]
    lengths = (len(fields[3].split()), len(fields[4].split()))
    found = _by_words(wanted, number, sets, lengths)
    found += HINT * _by_hints(described, number, sets)
    if near > 0:
        found = found + MEANING * near if found or (near >= ALONE and not asked.symbols) else 0.0
    lower = symbol.lower()
    last = lower.rpartition(".")[2]
    if last and any(s in (lower, last) or s.endswith("." + lower) for s in asked.symbols):
        found += 10 * (2 if lower in asked.symbols else 1)
    return found


def _by_words(wanted: list[Wanted], number: int, sets: list[set[str]], lengths: tuple[int, int]) -> float:
    worths = list(FIELDS.values())
    worths[3] /= 0.6 + lengths[0] / LENGTHS[0]
    worths[4] /= 0.6 + lengths[1] / LENGTHS[1]
    total = covered = everything = 0.0
    explained: set[str] = set()
    whole = sets[0].union(*sets[1:])
    for one in wanted:
        strength = best = 0.0
        fitting = whole & one.words  # of most pieces few words fit
        if fitting:
            for i, there in enumerate(sets):
                match, by = _match(one.concept, fitting & there)
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
    if not everything:
        return 0.0
    found = total / everything * (1 - COVERAGE + COVERAGE * covered / everything)
    return found * (1 + NAMED * len(explained) / len(sets[0])) if sets[0] else found


def _by_hints(described: list[Described], number: int, sets: list[set[str]]) -> float:
    """How well a piece is what the question describes, 0 to 1 and a little more."""
    best = total = 0.0
    name, place, summary = sets[0], sets[1], sets[3]
    for one in described:
        called = 0.0
        for words, telling in zip(one.hint.names, one.telling, strict=True):
            if words <= name:  # the more of the name it is, the surer
                fit = math.sqrt(len(words) / len(name))
            elif not words.isdisjoint(name) and words <= name | place:
                fit = HINT_WHOLE
            elif words <= name | summary:
                fit = HINT_SAID
            elif name and name < words:
                fit = HINT_PART * len(name) / len(words)
            else:
                continue
            called = max(called, fit * telling)
        fits = one.hint.worth * (called + (HINT_CODE if number in one.using else 0.0))
        best = max(best, fits)
        total += fits
    return best + FURTHER * (total - best)


def _match(concept: Concept, fitting: set[str]) -> tuple[float, str]:
    """How well a field fits a concept, and by which of its `fitting` words."""
    if concept.term in fitting:
        return 1.0, concept.term
    others = concept.others
    best, by = 0.0, ""
    for other in fitting:
        if others[other] > best:
            best, by = others[other], other
    return best, by
