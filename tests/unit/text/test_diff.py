"""Patches: applied to the old text they give the new one, and they look as jsdiff writes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.text import diff as diff_module
from opencode_jupyter.text.diff import diff, shorten, trim_diff

TEXT = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "-x\n", "@@ -1,1 +1,1 @@\n", "d"]), max_size=30).map(
    "".join
)


def body(patch: str) -> str:
    return patch.split("\n", 4)[4]


def apply(patch: str, old: str) -> str:
    lines, out, position = old.splitlines(keepends=True) if "\r" not in old else _split(old), [], 0
    rows = patch.split("\n")[4:-1]
    at = 0
    while at < len(rows):
        header = re.match(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@", rows[at])
        assert header, rows[at]
        start, removed, _, added = map(int, header.groups())
        start -= removed > 0
        out += lines[position:start]
        position, at = start, at + 1
        while removed or added:
            sign, text = rows[at][0], rows[at][1:]
            at += 1
            if at < len(rows) and rows[at].startswith("\\"):
                at += 1
            else:
                text += "\n"
            if sign in " -":
                assert lines[position] == text
                position += 1
                removed -= 1
            if sign in " +":
                out.append(text)
                added -= 1
    return "".join(out + lines[position:])


def _split(text: str) -> list[str]:
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


@given(TEXT, TEXT)
def test_applying_gives_the_new_text(old: str, new: str) -> None:
    result = diff("f", old, new)
    assert apply(result.patch, old) == new
    assert result.patch.startswith("Index: f\n" + "=" * 67 + "\n--- f\n+++ f\n") and result.patch.endswith("\n")
    lines = body(result.patch).split("\n")
    assert result.additions == sum(line.startswith("+") for line in lines)
    assert result.deletions == sum(line.startswith("-") for line in lines)


@given(TEXT, TEXT, st.sampled_from(["difflib", "ends"]))
def test_every_way_to_find_the_edits_is_right(old: str, new: str, way: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff_module, "_myers", lambda *_: None)
        if way == "ends":
            patch.setattr(diff_module, "DIFFLIB_LINES", 0)
        assert apply(diff("f", old, new).patch, old) == new


@given(TEXT, TEXT)
def test_the_shortest_diff_is_found(old: str, new: str) -> None:
    a, b = _split(old), _split(new)
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], previous if x == y else min(row[j], row[j - 1]) + 1
    result = diff("f", old, new)
    assert result.additions + result.deletions == row[-1]


def test_form() -> None:
    assert (
        body(diff("f", "one\ntwo\nthree\n", "one\nTWO\nthree\n").patch) == "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
    )
    assert body(diff("f", "", "n\n").patch) == "@@ -0,0 +1,1 @@\n+n\n"
    assert body(diff("f", "n\n", "").patch) == "@@ -1,1 +0,0 @@\n-n\n"
    assert body(diff("f", "a", "b").patch) == (
        "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    )
    assert body(diff("f", "same\n", "same\n").patch) == ""


def test_four_lines_of_context_and_joined_hunks() -> None:
    lines = [f"{n}\n" for n in range(40)]
    old = "".join(lines)
    near, far = lines[:], lines[:]
    near[10], near[19] = "x\n", "y\n"
    far[10], far[20] = "x\n", "y\n"
    assert re.findall("@@.*@@", diff("f", old, "".join(near)).patch) == ["@@ -7,18 +7,18 @@"]
    assert re.findall("@@.*@@", diff("f", old, "".join(far)).patch) == ["@@ -7,9 +7,9 @@", "@@ -17,9 +17,9 @@"]


def test_trim_takes_the_shared_indentation_away() -> None:
    patch = diff("f", "    a\n\n      b\n", "    a\n\n      c\n").patch
    assert body(trim_diff(patch)) == "@@ -1,3 +1,3 @@\n a\n \n-  b\n+  c\n"
    flat = diff("f", "a\n  b\n", "a\n  c\n").patch
    assert trim_diff(flat) == flat


def test_shorten_says_what_is_missing() -> None:
    patch = diff("f", "", "line\n" * 1000).patch
    short = shorten(patch, 500)
    assert len(short) < 600
    shown_count = short.count("\n+line")
    assert short.endswith(f"\n\\ Cut here: {1000 - shown_count} more lines of this diff are not shown\n")
    assert shorten(patch) == patch


@pytest.mark.timeout(60)
def test_huge_and_repetitive_texts_take_seconds_at_most() -> None:
    old = "".join(f"{n * n % 7}\n" for n in range(60_000))
    new = "".join(f"{n * 3 % 7}\n" for n in range(60_000))
    assert apply(diff("f", old, new).patch, old) == new
