"""Lines are found as the four passes say, and quickly."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.text.patch import seek


@pytest.mark.parametrize(
    ("lines", "pattern", "start", "eof", "expected"),
    [
        (["a", "b", "c"], ["b", "c"], 0, False, 1),
        (["a", "b", "a"], ["a"], 1, False, 2),
        (["a"], ["a"], 1, False, -1),
        (["a"], [], 0, False, -1),
        (["a"], ["a", "b"], 0, False, -1),
        ([], ["a"], 0, False, -1),
        (["a ", "a"], ["a"], 0, False, 1),  # an exact line further down wins over a similar one before it
        (["a \t"], ["a"], 0, False, 0),
        (["  a"], ["a "], 0, False, 0),
        (["\u201chi\u201d \u2014 it\u2019s\u2026\u00a0x"], ['  "hi" - it\'s... x'], 0, False, 0),
        (["10\u202fkg \u2212\u30005"], ["10 kg - 5"], 0, False, 0),  # Codex's list is longer than OpenCode's
        (["x", "y", "x"], ["x"], 0, True, 2),
        (["x", "y"], ["x"], 0, True, 0),
        (["x", "y", "x"], ["x"], 3, True, -1),
        (["\ufeffa"], ["a"], 0, False, 0),
    ],
)
def test_seek(lines: list[str], pattern: list[str], start: int, eof: bool, expected: int) -> None:
    assert seek(lines, pattern, start, eof) == expected


PUNCTUATION = {**dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), **dict.fromkeys("‐‑‒–—―", "-")}
PUNCTUATION |= {"…": "...", "\u00a0": " "}


def plain(line: str) -> str:
    return "".join(PUNCTUATION.get(character, character) for character in line.strip())


def naive(lines: list[str], pattern: list[str], start: int, eof: bool) -> int:
    """The rule of the reference, word by word."""
    alike: list[Callable[[str], str]] = [str, str.rstrip, str.strip, plain]
    for normalise in alike:
        last = len(lines) - len(pattern)
        positions = [last] if eof and last >= start else []
        for at in [*positions, *range(start, last + 1)]:
            if pattern and all(normalise(lines[at + i]) == normalise(pattern[i]) for i in range(len(pattern))):
                return at
    return -1


few = st.lists(st.sampled_from(["a", "b", " a", "a ", "", " ", "\u201ca", '"a', "\u2014", "-"]), max_size=8)


@given(few, few.map(lambda lines: lines[:3]), st.integers(0, 9), st.booleans())
def test_seek_equals_the_rule(lines: list[str], pattern: list[str], start: int, eof: bool) -> None:
    assert seek(lines, pattern, start, eof) == naive(lines, pattern, start, eof)
