"""How much one line of text resembles another: Levenshtein distance, with a bound on its cost."""

from __future__ import annotations

MAX_LENGTH = 20_000
"""Longer differing parts are taken for wholly different: about 0.2 s at this length."""


def similarity(a: str, b: str) -> float:
    """1 for equal texts, 0 for texts with nothing in common: ``1 - distance / longer length``."""
    longest = max(len(a), len(b))
    return 1.0 if longest == 0 else 1.0 - distance(a, b) / longest


def distance(a: str, b: str) -> int:
    """Insertions, deletions and substitutions between `a` and `b`.

    Beyond `MAX_LENGTH` differing characters the answer is the largest possible one, so a caller that
    looks for resemblance errs on the side of "different".
    """
    if a == b:
        return 0
    start = _common_prefix(a, b)
    a, b = a[start:], b[start:]
    end = _common_prefix(a[::-1], b[::-1])
    if end:
        a, b = a[:-end], b[:-end]
    if not a or not b or max(len(a), len(b)) > MAX_LENGTH:
        return max(len(a), len(b))
    return _bit_parallel(a, b)


def _common_prefix(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:  # bisection over slices: comparisons run at memcmp's speed
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _bit_parallel(a: str, b: str) -> int:
    """One column of the distance table a step, its differences held in the bits of two integers (Hyyrö 2003)."""
    positions: dict[str, int] = {}
    for index, character in enumerate(a):
        positions[character] = positions.get(character, 0) | (1 << index)
    mask = (1 << len(a)) - 1
    top = 1 << (len(a) - 1)
    plus, minus, score = mask, 0, len(a)
    for character in b:
        equal = positions.get(character, 0)
        diagonal = (((equal & plus) + plus) ^ plus) | equal | minus
        horizontal_plus = minus | (~(diagonal | plus) & mask)
        horizontal_minus = plus & diagonal
        if horizontal_plus & top:
            score += 1
        elif horizontal_minus & top:
            score -= 1
        horizontal_plus = (horizontal_plus << 1) | 1
        plus = ((horizontal_minus << 1) | ~(diagonal | horizontal_plus)) & mask
        minus = horizontal_plus & diagonal & mask
    return score
