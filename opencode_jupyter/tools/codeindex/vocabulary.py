"""Words of programming: which mean nearly the same, and which identifiers are made of."""

from __future__ import annotations

from functools import cache
from pathlib import Path


def _lines(name: str) -> list[list[str]]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


GROUPS: list[list[str]] = _lines("synonyms.txt")
"""Words of one group can stand for one another. A word may be in several."""

WORDS: frozenset[str] = frozenset(word for line in (*GROUPS, *_lines("words.txt")) for word in line)
"""Every word known here."""


ABBREVIATIONS: dict[str, str] = dict(_lines("abbreviations.txt"))
"""What is meant by what identifiers are often shortened to."""


def neighbours(term: str) -> list[tuple[str, int]]:
    """Terms of nearby meaning by the word vectors of a language model, each with its nearness in hundredths."""
    return [(other[:-2], int(other[-2:])) for other in _table().get(term, "").split()]


@cache
def _table() -> dict[str, str]:
    text = Path(__file__).with_name("neighbours.txt").read_text(encoding="utf-8")
    return {term: rest for term, _, rest in (line.partition(" ") for line in text.splitlines()[1:])}


@cache
def phrases() -> list[tuple[list[str], list[str]]]:
    """Turns of speech, longest first, with the words that code has for them."""
    out = [(line[: i + 1], line[i + 1 :]) for line in _lines("phrases.txt") for i in [_colon(line)]]
    plain = [([*words[:-1], words[-1].rstrip(":")], meant) for words, meant in out]
    return sorted(plain, key=lambda pair: -len(pair[0]))


def _colon(line: list[str]) -> int:
    return next(i for i, word in enumerate(line) if word.endswith(":"))


@cache
def techniques() -> list[tuple[list[list[str]], list[str], list[list[str]]]]:
    """Well-known pieces of code: what each is called (words that belong together), what it uses, the ways of asking."""
    text = Path(__file__).with_name("techniques.txt").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line and not line.startswith("#")]
    return [
        ([name.split() for name in names.split(",")], code.split(), [way.split() for way in asked.split(";")])
        for names, code, asked in rows
    ]
