"""Any line that a person may type becomes words, a call or a clear error."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter import InvalidArgumentsError, ToolError, Workspace
from opencode_jupyter.jupyter.magics.line_syntax import next_word, quote, words
from opencode_jupyter.jupyter.magics.tool_line import parse


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1), max_size=5))
def test_quoted_texts_are_read_back(texts: list[str]) -> None:
    assert [w.text for w in words(" ".join(map(quote, texts)))] == texts


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_line_gives_words_or_a_clear_error(line: str) -> None:
    try:
        parsed = words(line)
    except InvalidArgumentsError as error:
        assert "^" in str(error)  # noqa: PT017 - most lines raise nothing
    else:
        assert all(a.end <= b.start for a, b in itertools.pairwise(parsed))
        if not line.strip(" \t\r\n"):
            assert next_word(line) is None


@settings(deadline=None)
@given(line=st.text(max_size=60), cell=st.none() | st.text(max_size=40))
def test_any_line_gives_a_call_or_a_tool_error(tmp_path_factory: Any, line: str, cell: str | None) -> None:
    registry = _registry(tmp_path_factory)
    for name in ("read ", "bash ", "write ", ""):
        try:
            request = parse(name + line, cell, registry, {})
        except ToolError:
            continue
        assert request.help or request.tool in registry.names()


_made: list[Workspace] = []


def _registry(factory: Any) -> Any:
    if not _made:
        folder: Path = factory.mktemp("any")
        _made.append(Workspace(folder, data_dir=folder / "data", store=False))
    return _made[0].registry


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("read a{i}.txt", "a7.txt"),
        ("read {name}", "b.txt"),
        ("read filePath={d[i]}/{row.x}", "v/9"),
        ("read {names[1]}", "y"),
        ("read 'a{i}.txt'", "a{i}.txt"),
        ('read "a{i}.txt"', "a{i}.txt"),
        ("read 'a{nothing}.txt'", "a{nothing}.txt"),
        ("read there{nothing}.txt", "there{nothing}.txt"),
        ("read *.{i,name}", "*.{i,name}"),
        ("read a{i+1}", "a{i+1}"),
    ],
)
def test_variables_in_unquoted_words(line: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Row:
        x = 9

    monkeypatch.chdir(tmp_path)
    Path("there{nothing}.txt").touch()
    variables = {"i": 7, "name": "b.txt", "d": {7: "v"}, "row": Row(), "names": ["x", "y"]}
    with Workspace(".", store=False) as ws:
        assert parse(line, None, ws.registry, variables).arguments == {"filePath": path}
