"""A text's words as the index knows them: identifiers taken apart, endings taken off."""

from __future__ import annotations

import re
from functools import lru_cache

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
    """The words an identifier is made of: ``readLines`` is read, line."""
    if len(identifier) > _LONGEST:
        return ()
    words = (_PARTS if identifier.isascii() else _FOREIGN).findall(identifier)
    return tuple(part if part in STOP else stem(part) for part in map(str.lower, words))


_VOWEL = re.compile("[aeiouy]")
_ENDINGS = ("ation", "ing", "ment", "ed", "er", "or", "ion", "ly")


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """A word in lower case without its ending: ``parsing`` and ``parser`` are ``pars``, as ``parse`` is."""
    if len(word) <= 3 or not word.isascii() or word.isdigit():
        return word
    word = _singular(word)
    for ending in _ENDINGS:
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and _VOWEL.search(base):
            word = base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    if word.endswith("y") and word[-2] not in "aeiou":
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
