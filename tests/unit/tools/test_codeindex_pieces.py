"""The pieces of source files, and their words."""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opencode_jupyter
from opencode_jupyter.tools.codeindex.extract import rows
from opencode_jupyter.tools.codeindex.pieces import blanked, decode, pieces, python_pieces
from opencode_jupyter.tools.codeindex.ranking import is_test
from opencode_jupyter.tools.codeindex.tokenizer import STOP, distinct, parts, stem, terms, words

SOURCE = '''\
"""Reads shapes.

More of it.
"""
import os

LIMIT = 3


@cached
@other(
    1)
class Shape(Base):
    """A closed figure."""

    sides = 0

    async def area(self, unit: str = "m)", *, exact: bool = (1, (2, 3))) -> float:
        # a comment first
        """How much it covers:
def not_me(): pass
"""
        def inner():
            return 1
        return inner()
    # trailing

# of the next one
def free(a,
         b=("(",)): return a


def no_doc():
    x = """
def neither(): pass
"""
    return x
print("end")
'''


def pieces_of(source: str) -> dict[str, tuple[str, int, int]]:
    return {p.symbol: (p.kind, p.line, p.end_line) for p in python_pieces(source) if p.symbol}


def test_python_definitions() -> None:
    assert pieces_of(SOURCE) == {
        "Shape": ("class", 13, 26),
        "Shape.area": ("method", 18, 25),
        "Shape.area.inner": ("function", 23, 24),
        "free": ("function", 29, 30),
        "no_doc": ("function", 33, 37),
    }
    by = {p.symbol: p for p in python_pieces(SOURCE) if p.kind != "code"}
    assert by["Shape.area"].doc.startswith("How much it covers:")
    assert by["Shape.area"].signature.startswith("(self, unit") and by["Shape.area"].signature.endswith("-> float")
    assert (by[""].kind, by[""].doc) == ("module", "Reads shapes.\n\nMore of it.")
    assert "sides" in by["Shape"].body and "inner" not in by["Shape"].body
    code = [p for p in python_pieces(SOURCE) if p.kind == "code"]
    assert ["LIMIT" in code[0].body, 'print("end")' in code[-1].body, code[-1].line] == [True, True, 38]


def _with_comments(lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """The last line of a definition with the comments at its end, which Python's parser does not count to it."""
    assert node.end_lineno is not None
    last = node.end_lineno
    for number in range(last + 1, len(lines) + 1):
        text = lines[number - 1].strip()
        indent = len(lines[number - 1]) - len(lines[number - 1].lstrip())
        if text and (not text.startswith("#") or indent <= node.col_offset):
            break
        if text:
            last = number
    return last


@pytest.mark.parametrize("path", sorted(Path(opencode_jupyter.__file__).parent.rglob("*.py")), ids=lambda p: p.name)
def test_agrees_with_pythons_own_parser(path: Path) -> None:
    source = path.read_text()
    expected = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            doc = (ast.get_docstring(node, clean=False) or "").strip()[:20]
            expected.add((node.name, _with_comments(source.split("\n"), node), doc))
    got = {
        (p.symbol.rpartition(".")[2], p.end_line, p.doc[:20])
        for p in python_pieces(source)
        if p.kind in ("function", "method", "class")
    }
    assert got == expected


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ['"""', "'''", '"', "'", "\\", "\n", "def f(", "):", "class A", "  ", "#", "x = (", "->", "[", "\r", "\f"]
        )
        | st.text(max_size=5),
        max_size=40,
    )
)
def test_any_text_has_pieces_within_it(fragments: list[str]) -> None:
    text = "".join(fragments)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert len(blanked(text)) == len(text)
    for name in ("a.py", "a.js", "a.md", "a.ipynb", "a.sql"):
        for piece in pieces(name, text.encode("utf-8", "surrogatepass")):
            assert 1 <= piece.line <= piece.end_line <= lines


@pytest.mark.parametrize(
    "text",
    [
        "def f(" * 20_000,
        "(" * 100_000,
        '"""' + "\\" * 100_001,
        "def f" + " \n" * 50_000,
        "class A:\n" * 20_000,
        "def f(a=" + "(" * 50_000,
        "#\n" * 100_000 + "'",
    ],
)
@pytest.mark.timeout(60)
def test_odd_source_takes_little_time(text: str) -> None:
    python_pieces(text)


def test_other_languages() -> None:
    source = textwrap.dedent("""\
        // Adds up.
        export async function addUp(list) {
          return list.reduce((a, b) => a + b);
        }

        const twice = (x) => {
          return x * 2;
        };
        """)
    got = {p.symbol: (p.line, p.end_line, p.doc) for p in pieces("a.ts", source.encode()) if p.symbol}
    assert got == {"addUp": (2, 4, "Adds up."), "twice": (6, 8, "")}
    go = "// Sum adds.\nfunc (s *Set) Sum(a int) int {\n\treturn a\n}\n"
    assert [(p.symbol, p.end_line, p.doc) for p in pieces("a.go", go.encode())][1:] == [("Sum", 4, "Sum adds.")]


def test_sections_of_prose() -> None:
    text = "# One\ntext\n\n```\n# no\n```\n## Two\n\nThree\n=====\nmore\n"
    got = [(p.symbol, p.line, p.end_line) for p in pieces("a.md", text.encode())]
    assert got == [("One", 1, 6), ("Two", 7, 7), ("Three", 9, 11)]


def test_cells_of_a_notebook_have_the_files_lines() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "outputs": [],
            "source": ["import os\n", "def go():\n", '    "é goes"\n', "    return 1"],
        },
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1, ensure_ascii=False)
    got = {p.symbol: p for p in pieces("a.ipynb", text.encode())}
    lines = text.split("\n")
    assert "# Title" in lines[got["cell 1"].line - 1]
    assert "import os" in lines[got["cell 2"].line - 1]
    assert "def go" in lines[got["go"].line - 1] and "return 1" in lines[got["go"].end_line - 1]
    assert got["go"].doc == "é goes"
    assert pieces("a.ipynb", b"{") == [] and pieces("a.ipynb", b'{"cells": 3}') == []


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfx", "x"),
        ("é".encode("utf-16"), "é"),
        (b"# coding: latin-1\n\xe9", "# coding: latin-1\né"),
        (b"# coding: nonsense\n\xe9", "# coding: nonsense\né"),
        (b"\xff\xe9", "ÿé"),
        ("日本".encode(), "日本"),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert decode(data) == text


def test_a_binary_file_has_no_pieces() -> None:
    assert pieces("a.py", b"def f(): pass\n\0") == []


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("readLines", ["read", "lines"]),
        ("read_lines", ["read", "line"]),
        ("HTTPServer", ["http", "server"]),
        ("parseXMLFile2", ["parse", "xml", "file", "2"]),
        ("naïve", ["naïve"]),
    ],
)
def test_identifiers_are_taken_apart(identifier: str, expected: list[str]) -> None:
    assert list(parts(identifier)) == [stem(word) for word in expected]


@pytest.mark.parametrize(
    "family",
    [
        "parse parsing parsed parser parses",
        "file files",
        "map mapping maps mapped",
        "copy copies copied copying",
        "remove removing removed removes",
        "directory directories",
        "match matches matching",
        "index indexing indexed",
    ],
)
def test_forms_of_a_word_are_one(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


def test_different_words_stay_different() -> None:
    different = "string strip number name list line process thing letter order user string test text".split()
    assert len({stem(word) for word in different}) == len(set(different))


@given(st.text())
def test_words_of_any_text(text: str) -> None:
    assert all((word and word == word.lower()) or not word.isascii() for word in words(text))
    assert not STOP.intersection(terms(text).split())
    assert len(distinct(text, 3).split()) <= 3 * 40
    for word in words(text):
        assert stem(word)


def test_rows_keep_name_and_summary_apart() -> None:
    row = rows("pkg/shapes.py", SOURCE.encode())
    method = next(r for r in row if r[1] == "Shape.area")
    assert method[4] == stem("area")
    assert stem("shape") in method[5].split() and stem("covers") in method[7].split()


def test_test_files_are_known() -> None:
    assert [is_test(p) for p in ("tests/a.py", "a/test_x.py", "src/x_test.py", "conftest.py")] == [True] * 4
    assert [is_test(p) for p in ("src/contest.py", "latest/a.py", "attest.py")] == [False] * 3
