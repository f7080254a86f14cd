"""Wildcard patterns of permission rules (docs/opencode/core.md 11).

``*`` is any run of characters, ``/`` and newlines included; ``?`` is exactly one character. A pattern that ends
in a space and a star also matches without that tail: ``ls *`` matches ``ls`` and ``ls -la``, not ``lsof``.

No regular expression is built from a whole pattern: the pieces between the stars are looked for one after the
other, each at its first place, which is enough for a glob and never goes back. A hostile pattern or text
therefore costs one pass over the text, not an exponential search.
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
    found: V | None = None
    for pattern, value in _by_length(patterns):
        if match(text, pattern):
            found = value
    return found


def all_structured(head: str, tail: Sequence[str], patterns: Mapping[str, V]) -> V | None:
    """Like `all`, for a command: the pattern's first word must fit `head`, the others words of `tail` in order.

    A pattern's word ``*`` after the first stands for any words, none included; other words may have words of
    `tail` between them.
    """
    found: V | None = None
    for pattern, value in _by_length(patterns):
        words = pattern.split()
        if not match(head, words[0] if words else ""):
            continue
        if _subsequence(words[1:], tail):
            found = value
    return found


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
    whole = _glob(pattern)
    if not pattern.endswith(" *"):
        return whole
    short = _glob(pattern[:-2])
    return lambda text: whole(text) or short(text)


def _glob(pattern: str) -> Matcher:
    head, *rest = pattern.split("*")
    if not rest:
        return pattern.__eq__ if "?" not in pattern else _Blanks(pattern).whole
    *middle, tail = rest
    middle = [piece for piece in middle if piece]
    if "?" not in pattern and not middle:
        if not tail:
            return lambda text: text.startswith(head)
        shortest = len(head) + len(tail)
        return lambda text: len(text) >= shortest and text.startswith(head) and text.endswith(tail)
    return _Glob(head, middle, tail).match


class _Glob:
    """Pieces around stars: the first is at the start, the last at the end, the others somewhere between."""

    __slots__ = ("_head", "_middle", "_tail")

    def __init__(self, head: str, middle: Sequence[str], tail: str) -> None:
        self._head, self._tail = _piece(head), _piece(tail)
        self._middle = [_piece(piece) for piece in middle]

    def match(self, text: str) -> bool:
        head, tail = self._head, self._tail
        end = len(text) - tail.size
        position = head.size
        if position > end or not head.at(text, 0) or not tail.at(text, end):
            return False
        for piece in self._middle:
            position = piece.find(text, position, end)
            if position < 0:
                return False
            position += piece.size
        return True


class _Literal:
    """A piece without ``?``."""

    __slots__ = ("_text", "size")

    def __init__(self, piece: str) -> None:
        self.size, self._text = len(piece), piece

    def at(self, text: str, position: int) -> bool:
        return text.startswith(self._text, position)

    def find(self, text: str, start: int, end: int) -> int:
        return text.find(self._text, start, end)


class _Blanks:
    """A piece with ``?``: of fixed length, so a regular expression for it has nothing to go back over."""

    __slots__ = ("_re", "size")

    def __init__(self, piece: str) -> None:
        self.size = len(piece)
        self._re = re.compile("".join("." if c == "?" else re.escape(c) for c in piece), re.DOTALL)

    def whole(self, text: str) -> bool:
        return self._re.fullmatch(text) is not None

    def at(self, text: str, position: int) -> bool:
        return self._re.match(text, position) is not None

    def find(self, text: str, start: int, end: int) -> int:
        found = self._re.search(text, start, end)
        return found.start() if found else -1


def _piece(piece: str) -> _Literal | _Blanks:
    return _Blanks(piece) if "?" in piece else _Literal(piece)
