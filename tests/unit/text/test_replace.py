"""The nine ways to find what an edit means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.text import replace as module
from opencode_jupyter.text.replace import (
    AmbiguousMatchError,
    DisproportionateMatchError,
    NoMatchError,
    distance,
    replace,
)

BLOCK = "def area(r):\n    pi = 3.14\n    square = r * r\n    return pi * square\n"


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        pytest.param("a b c", "b", "B", "a B c", id="exact"),
        pytest.param("  if x:\n    go()\n", "if x:\ngo()", "pass", "pass\n", id="lines trimmed take the indentation"),
        pytest.param("  a\n", "a\n", "b\n", "  b\n", id="exact goes before trimmed"),
        pytest.param("  foo\nfoobar\n", "foo", "X", "X\nfoobar\n", id="ambiguous text unique as a line"),
        pytest.param(
            BLOCK,
            "def area(r):\n    pi = 3.1415\n    square = r ** r\n    return pi * square\n",
            "Z\n",
            "Z\n\n",
            id="block between anchors",
        ),
        pytest.param("x =   1 +\t2\n", "x = 1 + 2", "y", "y\n", id="white space in a line"),
        pytest.param("go(x =   1)\n", "x = 1", "y", "go(y)\n", id="white space in a part of a line"),
        pytest.param("a  b\nc   d\n", "a b\nc d", "y", "y\n", id="white space in a block"),
        pytest.param('say "hi"\nnext\n', 'say \\"hi\\"\\nnext', "ok", "ok\n", id="escapes in old"),
        pytest.param("x = 'a\\tb'\n", "x = 'a\tb'", "y", "y\n", id="escapes in the text"),
        pytest.param("one two three", "\n two \n", "2", "one 2 three", id="boundary trimmed"),
        pytest.param(
            "start\n  a\n  b\n  wholly different\nend\n",
            "start\na\nb\nnothing like that ever\nend",
            "Z",
            "Z\n",
            id="context: half of the inner lines",
        ),
        pytest.param("a", "a", "$& $$ $' \\1 \\g<0>", "$& $$ $' \\1 \\g<0>", id="no dollar or backslash sequences"),
        pytest.param("", "x", "y", None, id="empty text"),
    ],
)
def test_strategies(content: str, old: str, new: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(NoMatchError):
            replace(content, old, new)
    else:
        assert replace(content, old, new) == expected


def test_replace_all() -> None:
    assert replace("a a a", "a", "$&", replace_all=True) == "$& $& $&"
    assert replace("aaa", "aa", "b", replace_all=True) == "ba"


NOT_FOUND = (
    "Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings."
)
MANY = "Found multiple matches for oldString. Provide more surrounding context to make the match unique."


@pytest.mark.parametrize(
    ("content", "old", "error", "message"),
    [("abc", "x", NoMatchError, NOT_FOUND), ("a a", "a", AmbiguousMatchError, MANY)],
)
def test_errors(content: str, old: str, error: type[ToolError], message: str) -> None:
    with pytest.raises(error) as raised:
        replace(content, old, "new")
    assert str(raised.value) == message


def test_an_empty_old_text_is_refused() -> None:
    with pytest.raises(ToolError, match="must not be empty"):
        replace("a", "", "b")


def test_equal_texts_are_refused() -> None:
    with pytest.raises(ToolError, match=r"^No changes to apply: oldString and newString are identical\.$"):
        replace("a", "a", "a")


@pytest.mark.parametrize(
    "old",
    [
        pytest.param("def area(r):\n...\n    return pi * square", id="an ellipsis does not stand for the inside"),
        pytest.param("def area(r):\n    open(file)\n    close(file)\n    return pi * square", id="another inside"),
        pytest.param("def area(r):\n    return pi * square\n", id="only the anchors"),
    ],
)
def test_a_block_must_resemble(old: str) -> None:
    with pytest.raises((NoMatchError, DisproportionateMatchError)):
        replace(BLOCK, old, "Z")


def test_the_most_similar_block_is_taken() -> None:
    content = "begin\n  total = price * 2\nend\nbegin\n  total = price * 30\nend\n"
    assert replace(content, "begin\n  total = price * 300\nend", "Z") == "begin\n  total = price * 2\nend\nZ\n"


def test_a_much_larger_match_is_refused() -> None:
    content = "call(" + " " * 3000 + "a,\n" + " " * 3000 + "b)\n"
    with pytest.raises(DisproportionateMatchError):
        replace(content, "call( a,\nb)", "x")


@given(st.text("ab \n\t\\", max_size=40), st.text("ab \n\t\\", min_size=1, max_size=12))
def test_only_the_match_changes(content: str, old: str) -> None:
    mark = "«»"
    try:
        changed = replace(content, old, mark)
    except ToolError:
        positions = [at for at in range(len(content)) if content.startswith(old, at)]  # also those that overlap
        assert len(positions) != 1
        return
    head, _, tail = changed.partition(mark)
    assert content.startswith(head) and content.endswith(tail)
    replaced = content[len(head) : len(content) - len(tail)]
    lines = old.count("\n") + 1
    assert replaced == old or replaced.count("\n") + 1 < max(lines + 3, lines * 2)


def _windows(content: str, count: int) -> list[list[str]]:
    lines = content.split("\n")
    return [lines[at : at + count] for at in range(len(lines) - count + 1)]


@given(st.text("ab \n\\", max_size=25), st.text("ab \n\\", min_size=1, max_size=10))
def test_fast_strategies_find_what_a_plain_reading_of_their_rules_finds(content: str, find: str) -> None:
    text, count = module.SearchedText(content), find.count("\n") + 1
    lines = find.split("\n")[: -1 if find.endswith("\n") else None]
    assert list(module.line_trimmed(text, find)) == [
        "\n".join(window)
        for window in _windows(content, len(lines))
        if [line.strip() for line in window] == [line.strip() for line in lines]
    ]
    assert list(module.indentation_flexible(text, find)) == [
        "\n".join(window)
        for window in _windows(content, count)
        if module.dedent(window) == module.dedent(find.split("\n"))
    ]
    plain = module.unescaped(find)
    escaped = [
        "\n".join(window)
        for window in _windows(content, plain.count("\n") + 1)
        if module.unescaped("\n".join(window)) == plain and "\\" in content
    ]
    assert list(module.escape_normalised(text, find)) == ([plain] if plain in content else []) + escaped
    trimmed = find.strip()
    if trimmed and trimmed != find:
        blocks = {"\n".join(window) for window in _windows(content, count) if "\n".join(window).strip() == trimmed}
        assert set(module.trimmed_boundary(text, find)) == blocks | ({trimmed} if trimmed in content else set())


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_distance_is_levenshtein(a: str, b: str) -> None:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    assert distance(a, b) == row[-1]


@pytest.mark.parametrize(
    ("content", "old"),
    [
        pytest.param("x = 1\n" * 170_000, "y = 1\nx = 1\nz = 2\nx = 1\n", id="alike lines"),
        pytest.param("\n" * 1_000_000, "\n" * 2000 + "x", id="blank lines"),
        pytest.param("a" * 1_000_000, "a" * 500_000 + "b", id="one line"),
        pytest.param(("begin\n" + "x" * 90 + "\nend\n") * 10_000, "begin\n" + "y" * 90 + "\nend", id="many blocks"),
        pytest.param(
            "begin\n" + "xy" * 250_000 + "\nend\n", "begin\n" + "yz" * 250_000 + "\nend", id="long inner lines"
        ),
        pytest.param("a\\tb \n" * 160_000, "a b\nb a\n" * 1000, id="escapes"),
    ],
)
@pytest.mark.timeout(60)
def test_a_megabyte_takes_seconds_at_most(content: str, old: str) -> None:
    with pytest.raises(ToolError):
        replace(content, old, "new")
