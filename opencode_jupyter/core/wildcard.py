"""Wildcard patterns of permission rules (docs/opencode/core.md 11).

``*`` is any run of characters, ``/`` and newlines included; ``?`` is exactly one character. A pattern that ends
in a space and a star also matches without that tail: ``ls *`` matches ``ls`` and ``ls -la``, not ``lsof``.

The pieces between the stars are looked for one after the other, each at its first place, which is enough for a glob:
the regular expressions never go back. A hostile pattern or text costs one pass over the text, no exponential search.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

V = TypeVar("V")
Matcher = Callable[[str], bool]

_FOLD_CASE = sys.platform == "win32"


def match(text: str, pattern: str) -> bool:
    """Return whether the whole of `text` fits `pattern`. Backslashes count as slashes in both."""
    if pattern == "*" or text == pattern:
        return True
    if "\\" in text:
        text = text.replace("\\", "/")
    if _FOLD_CASE:
        text = text.lower()
    return compiled(pattern)(text)


def all(text: str, patterns: Mapping[str, V]) -> V | None:
    """The value of the most specific pattern that `text` fits: the longest, then the last in code order.

    Returns:
        The value, or None if no pattern fits.
    """
    values = [value for pattern, value in _by_length(patterns) if match(text, pattern)]
    return values[-1] if values else None


def all_structured(head: str, tail: Sequence[str], patterns: Mapping[str, V]) -> V | None:
    """Like `all`, for a command: the pattern's first word must fit `head`, the others words of `tail` in order.

    A pattern's word ``*`` after the first stands for any words, none included; other words may have words of
    `tail` between them.
    """
    result: V | None = None
    for pattern, value in _by_length(patterns):
        first, *words = pattern.split() or [""]
        if match(head, first) and _subsequence(words, tail):
            result = value
    return result


def _by_length(patterns: Mapping[str, V]) -> list[tuple[str, V]]:
    # UTF-16 code units, as OpenCode's engine counts and compares strings.
    def key(item: tuple[str, V]) -> tuple[int, bytes]:
        units = item[0].encode("utf-16-be", "surrogatepass")
        return len(units), units

    return sorted(patterns.items(), key=key)


def _subsequence(words: Sequence[str], tokens: Sequence[str]) -> bool:
    """Return whether every word fits a token of its own, in order. Taking the first token that fits is enough."""
    rest = iter(tokens)
    for word in words:
        if word == "*":
            continue
        for token in rest:
            if match(token, word):
                break
        else:
            return False
    return True


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Matcher:
    """The matcher of one pattern, for text that has slashes only (and is lower case on Windows)."""
    pattern = pattern.replace("\\", "/")
    if _FOLD_CASE:
        pattern = pattern.lower()
    matches = _glob(pattern)
    if not pattern.endswith(" *"):
        return matches
    short = _glob(pattern[:-2])
    return lambda text: matches(text) or short(text)


def _glob(pattern: str) -> Matcher:
    head, *rest = pattern.split("*")
    if not rest and "?" not in pattern:
        return pattern.__eq__
    *middle, tail = rest or [""]
    middle = [piece for piece in middle if piece]
    if rest and "?" not in pattern and not middle:
        if not tail:
            return lambda text: text.startswith(head)
        shortest = len(head) + len(tail)
        return lambda text: len(text) >= shortest and text.startswith(head) and text.endswith(tail)
    # (?>...) keeps a piece where it was found first; (?=.{n}) leaves room for the tail, which is then compared once.
    end = f"(?=.{{{len(tail)}}}).*+(?<={_piece(tail)})" if rest else ""
    fullmatch = re.compile(_piece(head) + "".join(f"(?>.*?{_piece(p)})" for p in middle) + end, re.DOTALL).fullmatch
    return lambda text: fullmatch(text) is not None


def _piece(text: str) -> str:
    return "".join("." if char == "?" else re.escape(char) for char in text)
