"""A text's words as the index knows them: identifiers taken apart, endings taken off."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from .vocabulary import ABBREVIATIONS, WORDS

_WORD = re.compile(r"[^\W\d]\w+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FOREIGN = re.compile(r"[^\W_]+")
_LONGEST = 60
"""Letters of an identifier that is looked into; longer ones are data."""

_STOP = """
a an the of to in on at by for with from into as is are was were be been being it its this that these those and or
not no nor if then else than so such do does did done has have had can could will would should may might must i we
you he she they them their our your his her my me us there here which who whom whose what when where how why all
any each every some other own same too very just also only about but up out off over under again more most both few
s t d ll re ve self cls none true false return returns def class import pass lambda elif except finally raise try
while yield async await global nonlocal del assert isinstance
use used using given whether let lets e g eg ie etc one ones two via per
"""
STOP = frozenset(_STOP.split())
"""Words that say nothing of what code does."""


def words(text: str) -> list[str]:
    """The words of a text in order, in lower case, identifiers taken apart, without endings."""
    return [part for word in _WORD.findall(text) for part in parts(word)]


def terms(text: str) -> str:
    """`words` without those that say nothing, as one text for the index."""
    return " ".join(filter(None, map(_indexed, _WORD.findall(text))))


def distinct(text: str, limit: int) -> str:
    """The terms of the first `limit` different identifiers of code."""
    return " ".join(filter(None, map(_indexed, list(dict.fromkeys(_WORD.findall(text)))[:limit])))


@lru_cache(maxsize=200_000)
def _indexed(identifier: str) -> str:
    return " ".join(part for part in parts(identifier) if part not in STOP)


@lru_cache(maxsize=100_000)
def parts(identifier: str) -> tuple[str, ...]:
    """The words an identifier is made of: ``readlines`` is read, line; ``idx`` is index."""
    if len(identifier) > _LONGEST:
        return ()
    out: list[str] = []
    for part in (_PARTS if identifier.isascii() else _FOREIGN).findall(identifier):
        lower = part.lower()
        if lower in STOP:
            out.append(lower)
        elif lower in ABBREVIATIONS:
            out.append(stem(ABBREVIATIONS[lower]))
        elif pieces := _taken_apart(lower):
            out += [stem(piece) for piece in pieces]
        else:
            out.append(stem(lower))
    return tuple(out)


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(WORDS)


@lru_cache(maxsize=50_000)
def _taken_apart(word: str) -> tuple[str, ...]:
    """The known words that a word is written of without a break; none if it is a word itself or can't be told."""
    known = _vocabulary()
    if len(word) < 5 or word in known or stem(word) in _stems():
        return ()
    return _split(word, 4)


@cache
def _stems() -> frozenset[str]:
    return frozenset(stem(word) for word in WORDS)


def _split(word: str, most: int) -> tuple[str, ...]:
    """The split with the longest first words; `most` is how many there may be."""
    known = _vocabulary()
    if word in known:
        return (word,)
    if most == 1 or len(word) < 4:
        return ()
    for size in range(len(word) - 2, 1, -1):
        if word[:size] in known:
            rest = _split(word[size:], most - 1)
            if rest:
                return (word[:size], *rest)
    return ()


_VOWEL = re.compile("[aeiouy]")
_ENDINGS = (
    ("ational", "ate"), ("ization", "ize"), ("isation", "ize"), ("fulness", "ful"), ("ousness", "ous"),
    ("iveness", "ive"), ("ations", "ate"), ("ation", "ate"), ("ators", "ate"), ("ator", "ate"), ("ically", "ic"),
    ("ments", ""), ("ment", ""), ("ness", ""), ("able", ""), ("ible", ""), ("ally", "al"), ("ently", "ent"),
    ("antly", "ant"), ("ively", "ive"), ("ously", "ous"), ("ising", "ize"), ("ised", "ize"), ("ises", "ize"),
    ("ise", "ize"), ("ly", ""),
)  # fmt: skip
"""Endings and what they become, when enough of the word is left."""


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """A word in lower case without its ending: ``parsing`` and ``parsed`` are ``pars``, as ``parse`` is."""
    if len(word) <= 3 or not word.isascii() or word.isdigit():
        return word
    word = _singular(word)
    for ending, other in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)] + other
            break
    for ending in ("ing", "ed", "er", "or", "ion"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) >= 3 and _VOWEL.search(base):
            short = base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
            if ending in ("er", "or", "ion") and WORDS.isdisjoint((base, base + "e", short)):
                continue
            base = short
            word = base
            break
    if word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        return word[:-1] + "i"
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is", "as", "os")):
        return word[:-1]
    return word
