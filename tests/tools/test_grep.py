"""grep: matching lines, the newest files first."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import anyio
import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opencode_jupyter.core.errors import ToolAbortedError, ToolError
from opencode_jupyter.tools import grep as grep_module
from opencode_jupyter.tools import ripgrep
from opencode_jupyter.tools.grep import Matches
from opencode_jupyter.workspace import Workspace

pytestmark = pytest.mark.anyio

NAMES = ["plain.txt", "two words.txt", "quo'te\".txt", "new\n\nline.txt", "1:2.txt", "pi|pe.txt", "é日😀.txt", "-e.txt"]


@pytest.fixture(params=["ripgrep", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(ripgrep, "find_rg", lambda: None)
    return request.param


def make(folder: Path, name: str, content: str | bytes, age: int = 0) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


async def test_the_format(workspace: Workspace, project: Path, engine: str) -> None:
    old = make(project, "old.py", "a\nfoo(1)\n", 5)
    new = make(project, "new.py", "foo\nbar\r\nx foo | y: z\r\n", 1)
    make(project, "none.py", "bar\n")
    result = await workspace.call("grep", {"pattern": "fo+"})
    assert result.output == (
        f"Found 3 matches\n{new}:\n  Line 1: foo\n  Line 3: x foo | y: z\n\n{old}:\n  Line 2: foo(1)"
    )
    assert result.title == "fo+"
    assert (result.metadata["matches"], result.metadata["truncated"]) == (3, False)
    assert result.records == [
        {"path": str(new), "line": 1, "text": "foo"},
        {"path": str(new), "line": 3, "text": "x foo | y: z"},
        {"path": str(old), "line": 2, "text": "foo(1)"},
    ]


async def test_include_and_path(workspace: Workspace, project: Path, engine: str) -> None:
    make(project, "src/a.py", "foo\n")
    make(project, "src/b.ts", "foo\n")
    make(project, "c.txt", "foo\n")

    async def search(**options: str) -> set[str]:
        records = (await workspace.call("grep", {"pattern": "foo", **options})).records
        return {os.path.relpath(r["path"], project) for r in records or []}

    assert await search() == {"src/a.py", "src/b.ts", "c.txt"}
    assert await search(include="*.{py,txt}") == {"src/a.py", "c.txt"}
    assert await search(path="src") == {"src/a.py", "src/b.ts"}
    assert await search(path="src/a.py") == {"src/a.py"}
    assert await search(include="*.none") == set()


@pytest.mark.parametrize("indent", [1, 2, None])
async def test_saved_outputs_of_notebooks_are_not_searched(
    workspace: Workspace, project: Path, engine: str, indent: int | None
) -> None:
    html = nbformat.v4.new_output("display_data", {"text/html": "<b>needle</b>\n", "image/png": "needle"})
    cells = [
        nbformat.v4.new_markdown_cell("# A needle"),
        nbformat.v4.new_code_cell("x = 1\nprint('needle')", outputs=[html], metadata={"tags": ["needle"]}),
        nbformat.v4.new_code_cell("y = 2", outputs=[html]),
    ]
    content = json.loads(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))  # sources as lists of lines
    notebook = make(project, "a.ipynb", json.dumps(content, indent=indent))
    make(project, "outputs.ipynb", json.dumps({**content, "cells": content["cells"][2:]}, indent=indent or 1))
    make(project, "broken.ipynb", '{"cells": [\n"needle', 9)
    result = await workspace.call("grep", {"pattern": "needle"})
    numbers = [record["line"] for record in result.records if record["path"] == str(notebook)]
    lines = notebook.read_text().splitlines()
    if indent is None:
        assert numbers == [1]
    else:
        assert [lines[number - 1].strip() for number in numbers] == ['"# A needle"', "\"print('needle')\""]
    assert {Path(record["path"]).name for record in result.records} == {"a.ipynb", "broken.ipynb"}
    assert result.metadata["matches"] == len(result.records)


async def test_says_how_many_more(workspace: Workspace, project: Path) -> None:
    make(project, "many.txt", "".join(f"hit {i}\n" for i in range(150)))
    result = await workspace.call("grep", {"pattern": "hit"})
    lines = result.output.split("\n")
    assert lines[0] == "Found 150 matches (showing first 100)"
    assert lines[-1] == (
        "(Results truncated: showing 100 of 150 matches (50 hidden). Consider using a more specific path or pattern.)"
    )
    assert len(lines) == 104
    assert result.metadata == {"matches": 150, "truncated": True}
    assert result.records is not None
    assert len(result.records) == 150


async def test_odd_names(workspace: Workspace, project: Path, engine: str) -> None:
    made = {str(make(project, name, "foo\n")) for name in NAMES}
    result = await workspace.call("grep", {"pattern": "foo"})
    assert result.records is not None
    assert {record["path"] for record in result.records} == made
    for name in NAMES:
        alone = await workspace.call("grep", {"pattern": "foo", "path": name})
        assert [r["path"] for r in alone.records or []] == [str(project / name)]


async def test_what_is_not_searched(workspace: Workspace, project: Path) -> None:
    make(project, ".gitignore", "build/\n")
    make(project, "build/x", "foo\n")
    make(project, ".git/x", "foo\n")
    make(project, "binary", b"foo\0bar\n")
    make(project, "late", b"foo\n" * 30_000 + b"\0\nfoo\n")
    make(project, ".hidden", "foo\n")
    result = await workspace.call("grep", {"pattern": "foo"})
    assert {os.path.basename(r["path"]) for r in result.records or []} <= {".hidden", "late"}
    assert all(r["text"] == "foo" for r in result.records or [])
    assert (await workspace.call("grep", {"pattern": "foo", "path": "binary"})).output == "No files found"


async def test_long_lines_are_cut_at_2000_units(workspace: Workspace, project: Path) -> None:
    make(project, "long", "foo" + "x" * 1_000_000 + "\n" + "foo" + "😀" * 3000 + "\n" + "foo" + "y" * 1997 + "\n")
    records = (await workspace.call("grep", {"pattern": "foo"})).records
    assert [r["text"] for r in records or []] == [
        "foo" + "x" * 1997 + "...",
        "foo" + "😀" * 998 + "...",
        "foo" + "y" * 1997,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": ""}, "pattern is required"),
        ({"pattern": "fo("}, r"ripgrep failed: rg: regex parse error:(?s:.*)unclosed group"),
        ({"pattern": "foo", "include": "{a"}, "unclosed alternate group"),
        ({"pattern": "foo", "path": "undefined"}, 'the word "undefined"; leave path out'),
        ({"pattern": "a\0b"}, "NUL"),
        ({"pattern": "a", "include": "b\0c"}, "NUL"),
    ],
)
async def test_bad_arguments(workspace: Workspace, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        await workspace.call("grep", arguments)


async def test_a_pattern_that_a_person_typed_without_quotes(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"File not found: .*weights\. A pattern with spaces needs quotes\."):
        await workspace.call("grep", {"pattern": "def", "path": "weights"}, by="user")


async def test_a_bad_pattern_without_ripgrep(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "find_rg", lambda: None)
    make(project, "a", "foo\n")
    with pytest.raises(ToolError, match="regex parse error"):
        await workspace.call("grep", {"pattern": "fo("})


async def test_a_pattern_that_looks_like_an_option(workspace: Workspace, project: Path, engine: str) -> None:
    make(project, "a", "--files -e\n")
    assert (await workspace.call("grep", {"pattern": "-e"})).metadata["matches"] == 1
    assert (await workspace.call("grep", {"pattern": "--files"})).metadata["matches"] == 1


async def test_a_search_that_never_ends_can_be_stopped(
    workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "find_rg", lambda: None)  # Python's expressions can take for ever
    make(project, "a", "a" * 41 + "!\n")
    call = workspace.start("grep", {"pattern": "(a+)+$"})
    task = asyncio.ensure_future(call.run())
    await anyio.sleep(0.5)
    assert not task.done()
    call.abort()
    with pytest.raises(ToolAbortedError):
        await task


async def test_a_folder_that_can_not_be_read(workspace: Workspace, project: Path) -> None:
    make(project, "a", "foo\n")
    result = await workspace.call("grep", {"pattern": "foo", "path": "none"})
    assert (result.output, result.metadata) == ("No files found", {"matches": 0, "truncated": False})
    os.mkfifo(project / "pipe")
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        await workspace.call("grep", {"pattern": "foo", "path": "pipe"})


NAME = st.binary(min_size=1, max_size=8).map(lambda b: b.replace(b"\0", b"\n"))
LINE = st.binary(max_size=12).map(lambda b: b.replace(b"\n", b" "))
OUTPUT = st.lists(st.tuples(NAME, st.lists(LINE, min_size=1, max_size=5)), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=OUTPUT, size=st.integers(1, 30))
def test_the_output_is_taken_apart_however_it_arrives(files: list[tuple[bytes, list[bytes]]], size: int) -> None:
    blocks = []
    for name, lines in files:
        blocks.append(b"./" + name + b"\0" + b"".join(b"%d:%s\n" % (n, text) for n, text in enumerate(lines, 1)))
    data = b"\n".join(blocks)
    matches = Matches(Path("/p"), stat=lambda path: os.stat("/"))
    for at in range(0, len(data), size):
        matches.feed(data[at : at + size])
    matches.finish()
    assert matches.total == sum(len(lines) for _, lines in files)
    parsed = sorted((f.path, f.lines) for f in matches.files())
    assert parsed == sorted(
        (b"/p/" + name, [b"%d:%s" % (n, t) for n, t in enumerate(lines, 1)]) for name, lines in files
    )


def test_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_module, "KEEP", 10)
    when = {b"/p/%d" % i: (i * 7) % 20 for i in range(20)}

    class Stat:
        def __init__(self, changed: int) -> None:
            self.st_mtime_ns = changed

    matches = Matches(Path("/p"), stat=lambda path: Stat(when[path]))  # type: ignore[arg-type, return-value]
    matches.feed(b"\n".join(b"./%d\x001:a\n2:b\n3:c\n" % i for i in range(20)))
    matches.finish()
    assert matches.total == 60
    assert [f.changed for f in matches.files()] == [19, 18, 17, 16]
