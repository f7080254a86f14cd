from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core import wildcard

ALPHABET = "ab?* /\n.\\"


def oracle(text: str, pattern: str) -> bool:
    """The definition, read aloud: slow and plain."""
    text, pattern = text.replace("\\", "/"), pattern.replace("\\", "/")

    @cache
    def fits(i: int, j: int, end: int) -> bool:
        if j == end:
            return i == len(text)
        if pattern[j] == "*":
            return fits(i, j + 1, end) or (i < len(text) and fits(i + 1, j, end))
        return i < len(text) and pattern[j] in ("?", text[i]) and fits(i + 1, j + 1, end)

    if fits(0, 0, len(pattern)):
        return True
    return pattern.endswith(" *") and fits(0, 0, len(pattern) - 2)


@given(st.text(ALPHABET, max_size=12), st.text(ALPHABET, max_size=10))
def test_match_is_the_definition(text: str, pattern: str) -> None:
    assert wildcard.match(text, pattern) == oracle(text, pattern)


@given(st.text(max_size=30))
def test_every_text_fits_itself_and_the_star(text: str) -> None:
    assert wildcard.match(text, text)
    assert wildcard.match(text, "*")
    assert wildcard.match(text, "*" + text + "*")
    assert wildcard.match(text, "?" * len(text)) or "\\" in text


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("file1.txt", "file?.txt", True),
        ("file12.txt", "file?.txt", False),
        ("foo+bar", "foo+bar", True),
        ("fooobar", "foo+bar", False),
        ("ls", "ls *", True),
        ("ls -la", "ls *", True),
        ("lsof", "ls *", False),
        ("ls", "ls*", True),
        ("ls -la", "ls*", True),
        ("lsof", "ls*", True),
        ("ls", "ls **", False),
        ("ls x", "ls **", True),
        ("", " *", True),
        ("git status", "git * --x *", False),
        ("git a --x", "git * --x *", True),
        ("a/b/c.ts", "a/*.ts", True),
        ("a\nb", "a*b", True),
        ("ls\n", "ls", False),
        ("ls\n", "ls?", True),
        ("src\\a\\b.ts", "src/*", True),
        ("src/a/b.ts", "src\\a\\*", True),
        ("a.b", "a[.]b", False),
        ("a", "{a,b}", False),
        ("a", "a|b", False),
        ("$(x)^", "$(*)^", True),
        ("aba", "ab*ba", False),
        ("abba", "ab*ba", True),
        ("é", "?", True),
        ("😀", "?", True),
        ("", "", True),
        ("", "*", True),
        ("", "?", False),
        ("a", "", False),
    ],
)
def test_known_answers(text: str, pattern: str, expected: bool) -> None:
    assert wildcard.match(text, pattern) is expected


@pytest.mark.parametrize(
    "pattern", ["*a" * 50 + "b", "*a?" * 50 + "b", "a*" * 500 + "b", "*" + "a" * 1000 + "b*", "*a" * 40_000 + "*b *"]
)
@pytest.mark.timeout(60)
def test_a_hostile_pattern_takes_no_time(pattern: str) -> None:
    assert not wildcard.match("a" * 100_000, pattern)


def test_all_takes_the_longest_then_the_last_in_order() -> None:
    assert wildcard.all("git status", {"git status": "exact", "*": "any", "git *": "git"}) == "exact"
    assert wildcard.all("git log", {"git *": "git", "*": "any"}) == "git"
    assert wildcard.all("ab", {"b?": 0, "a?": 1, "?b": 2}) == 1  # "?b" sorts before "a?"
    assert wildcard.all("zz", {"a*": 1}) is None
    assert wildcard.all("x", {}) is None


def test_all_structured() -> None:
    rules = {"git *": "any git", "git push *": "push", "git push --force": "force", "*": "other"}
    assert wildcard.all_structured("git", ["push", "origin", "--force"], rules) == "force"
    assert wildcard.all_structured("git", ["push"], rules) == "push"
    assert wildcard.all_structured("git", [], rules) == "any git"
    assert wildcard.all_structured("ls", ["push"], rules) == "other"
    assert wildcard.all_structured("git", ["--force", "push"], {"git push --force": 1}) is None
    assert wildcard.all_structured("sed", ["-n", "1p"], {"sed -i *": 0, "sed -n*": 1}) == 1
    assert wildcard.all_structured("a", ["b"], {"a b b": 1}) is None
