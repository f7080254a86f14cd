"""list: the tree's text, what is left out, limits, asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.tools import ripgrep
from opencode_jupyter.tools.list import tree

pytestmark = pytest.mark.anyio


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")


async def test_a_tree_with_folders_first(workspace: Workspace, project: Path, approver: Any) -> None:
    fill(project, "b.txt", "A.txt", "src/z.py", "src/a/deep/x.py", "src/a.py", ".hidden/h", "docs/i.md")
    result = await workspace.call("list")
    assert result.output == (
        f"{project}/\n"
        "  .hidden/\n"
        "    h\n"
        "  docs/\n"
        "    i.md\n"
        "  src/\n"
        "    a/\n"
        "      deep/\n"
        "        x.py\n"
        "    a.py\n"
        "    z.py\n"
        "  A.txt\n"
        "  b.txt\n"
    )
    assert (result.title, result.metadata) == ("", {"count": 7, "truncated": False})
    assert result.records is not None
    assert result.records[0] == {"path": str(project / ".hidden/h"), "name": "h"}
    [request] = approver.asks
    assert (request.permission, request.patterns, request.always) == ("list", [str(project)], ["*"])
    assert request.metadata == {"path": str(project)}


async def test_what_is_left_out(workspace: Workspace, project: Path) -> None:
    left_out = ["node_modules/x.js", ".venv/p.py", "build/o", ".coverage", "tmp/t", "ignored.txt", "skip/me.log"]
    fill(project, *left_out, "keep.py", "sub/node_modules/kept.js")
    (project / ".gitignore").write_text("ignored.txt\n")
    result = await workspace.call("list", {"path": str(project), "ignore": ["*.log"]})
    # the built-in names count at the top only, as in OpenCode: each glob has a slash, which ties it to the folder
    assert result.output == f"{project}/\n  sub/\n    node_modules/\n      kept.js\n  .gitignore\n  keep.py\n"


async def test_the_first_hundred_in_order(workspace: Workspace, project: Path) -> None:
    fill(project, *(f"d/{n:03}" for n in range(150)))
    result = await workspace.call("list", {"path": "d"})
    assert result.output == f"{project}/d/\n" + "".join(f"  {n:03}\n" for n in range(100))
    assert (result.title, result.metadata) == ("d", {"count": 100, "truncated": True})


async def test_empty_missing_and_odd(workspace: Workspace, project: Path, approver: Any, tmp_path: Path) -> None:
    (project / "empty").mkdir()
    assert (await workspace.call("list", {"path": "empty"})).output == f"{project}/empty/\n"
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*/gone'"):
        await workspace.call("list", {"path": "gone"})
    fill(project, "f.txt", "sp ace/é\n🙂.txt")
    with pytest.raises(ToolError, match="is a file, not a folder"):
        await workspace.call("list", {"path": "f.txt"})
    assert "\n  sp ace/\n    é\n🙂.txt\n" in (await workspace.call("list")).output
    approver.asks.clear()
    (tmp_path / "other").mkdir()
    await workspace.call("list", {"path": str(tmp_path / "other")})
    assert [(a.permission, a.patterns) for a in approver.asks] == [
        ("external_directory", [f"{tmp_path}/other/*"]),
        ("list", [f"{tmp_path}/other"]),
    ]


@pytest.mark.parametrize("pattern", ["[", "{a"])
async def test_a_pattern_that_is_none_is_told(workspace: Workspace, project: Path, pattern: str) -> None:
    fill(project, "a.txt")
    with pytest.raises(ToolError, match=r"can't be listed: .*unclosed"):
        await workspace.call("list", {"ignore": ["b", pattern]})


async def test_an_empty_pattern_leaves_nothing_out(workspace: Workspace, project: Path) -> None:
    fill(project, "a.txt", "b.txt")
    assert (await workspace.call("list", {"ignore": ["", "b*"]})).output == f"{project}/\n  a.txt\n"


async def test_without_ripgrep(workspace: Workspace, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "find_rg", lambda: None)
    fill(project, "a/b.py", "node_modules/x.js", "c.log", ".venv/bin/python")
    result = await workspace.call("list", {"ignore": ["*.log"]})
    assert result.output == f"{project}/\n  a/\n    b.py\n"
    assert "no ripgrep" in result.metadata["engine"]


names = st.text("ab.~é🙂\uffff", min_size=1, max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.sets(st.lists(names, min_size=1, max_size=3).map("/".join), max_size=12))
def test_every_file_stands_in_the_tree_once(files: set[str]) -> None:
    files = {f for f in files if not any(other.startswith(f + "/") for other in files)}
    lines = tree("/top", sorted(files)).splitlines()
    stack: list[str] = []
    listed = []
    for line in lines[1:]:
        depth = (len(line) - len(line.lstrip(" "))) // 2
        name = line.strip(" ")
        stack[depth - 1 :] = [name.rstrip("/")]
        if not name.endswith("/"):
            listed.append("/".join(stack))
    assert sorted(listed) == sorted(files)
