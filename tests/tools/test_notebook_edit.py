"""notebook_edit on files: one cell changes and nothing else; asks show it; what is wrong changes nothing."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbformat import v4

from opencode_jupyter.core.errors import InvalidArgumentsError, PermissionRejectedError, ToolError
from opencode_jupyter.core.file_tracker import FileChangedError, NotReadError
from opencode_jupyter.tools.notebook.cell_edits import CellEdit, changed_text, plan
from opencode_jupyter.tools.notebook.cells import Cell, parse
from opencode_jupyter.tools.notebook.notebook_json import NotebookSource
from opencode_jupyter.tools.notebook.open_documents import Notebooks
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

SOURCES = ("# Title\n\ntext", "import os\nprint(os.name)", "x = 1")


def make(path: Path, **more: Any) -> Path:
    cells = [
        v4.new_markdown_cell(SOURCES[0], id="intro"),
        v4.new_code_cell(
            SOURCES[1], id="run", execution_count=7, outputs=[v4.new_output("stream", name="stdout", text="posix\n")]
        ),
        v4.new_code_cell(SOURCES[2], id="last"),
    ]
    nbformat.write(v4.new_notebook(cells=cells, **more), path)
    return path


async def edit(workspace: Workspace, path: Path, *, read: bool = True, **arguments: Any) -> Any:
    if read:
        await workspace.call("notebook_read", {"filePath": str(path)})
    return await workspace.call("notebook_edit", {"filePath": str(path), **arguments})


def sources(path: Path) -> list[str]:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return [cell.source for cell in notebook.cells]


async def test_replace_changes_only_that_source(workspace: Workspace, project: Path, approver: Any) -> None:
    path = make(project / "a.ipynb")
    before = path.read_text()
    result = await edit(workspace, path, cell="run", newSource="import sys\nprint(os.name)")
    assert path.read_text() == before.replace('"import os\\n"', '"import sys\\n"')
    assert result.title == "a.ipynb cell 1 replaced"
    assert "keeps the outputs of its last run" in result.output
    assert "> [1] code id=run: import sys\n  [2] code id=last: x = 1" in result.output
    ask = approver.named("edit")[0]
    assert (ask.patterns, ask.always) == (["a.ipynb"], ["*"])
    assert ask.metadata["filepath"] == str(path)
    assert ask.metadata["diff"].startswith("Cell 1 (code, id run): replace\n")
    assert "@@ -1,2 +1,2 @@\n-import os\n+import sys\n print(os.name)\n" in ask.metadata["diff"]
    filediff = result.metadata["filediff"]
    assert (filediff["additions"], filediff["deletions"]) == (1, 1)
    assert result.metadata["cell"] == {"index": 1, "id": "run", "type": "code"}
    # A second change needs no second reading; taking back gives the bytes of before.
    await edit(workspace, path, read=False, cell="last", newSource="x = 2")
    workspace.changes.undo(2)
    assert path.read_text() == before


async def test_insert_delete_move_and_types(workspace: Workspace, project: Path, approver: Any) -> None:
    path = make(project / "a.ipynb")
    before = json.loads(path.read_text())["cells"]
    result = await edit(workspace, path, operation="insert", cell="intro", newSource="new\ncell", cellType="markdown")
    assert result.title == "a.ipynb cell 1 inserted"
    await edit(workspace, path, operation="insert", newSource="")
    await edit(workspace, path, operation="insert", index=0, newSource="first")
    assert sources(path) == ["first", SOURCES[0], "new\ncell", SOURCES[1], SOURCES[2], ""]
    result = await edit(workspace, path, operation="move", cell="run", index=0)
    assert result.title == "a.ipynb cell 3 moved to 0"
    assert "-[code] run import os" in approver.asks[-1].metadata["diff"]
    await edit(workspace, path, operation="move", cell=0, index=-1)
    assert sources(path)[-1] == SOURCES[1]
    for index in (5 - 1, 0, 1):  # the empty one, "first", the markdown cell
        await edit(workspace, path, operation="delete", cell=index)
    cells = json.loads(path.read_text())["cells"]
    assert cells == [before[0], before[2], before[1]]
    await edit(workspace, path, cell="run", cellType="markdown")
    assert "code → markdown, id run): replace; its 1 output will be removed" in approver.asks[-1].metadata["diff"]
    changed = json.loads(path.read_text())["cells"][2]
    assert changed == {"cell_type": "markdown", "id": "run", "metadata": {}, "source": before[1]["source"]}
    await edit(workspace, path, cell="intro", cellType="code", newSource="1")
    assert sources(path) == ["1", SOURCES[2], SOURCES[1]]
    for id in ("run", "intro", "last"):
        await edit(workspace, path, operation="delete", cell=id)
    assert sources(path) == []
    await edit(workspace, path, operation="insert", newSource="a\nb")
    assert sources(path) == ["a\nb"]


async def test_a_part_of_a_cell(workspace: Workspace, project: Path) -> None:
    path = make(project / "a.ipynb")
    await edit(workspace, path, cell="run", oldString="os.name", newString="os.sep")
    assert sources(path)[1] == "import os\nprint(os.sep)"
    await edit(workspace, path, cell=1, oldString="os", newString="sys", replaceAll=True)
    assert sources(path)[1] == "import sys\nprint(sys.sep)"
    for wrong, words in (
        ({"oldString": "sys", "newString": "os"}, "In cell 1"),
        ({"oldString": "nowhere", "newString": "os"}, "In cell 1"),
        ({"oldString": "", "newString": "os"}, "not empty"),
        ({"oldString": "sys"}, "both oldString"),
        ({"oldString": "sys", "newString": "sys"}, "identical"),
        ({"oldString": "sys", "newString": "os", "newSource": "x"}, "not both"),
    ):
        with pytest.raises(ToolError, match=words):
            await edit(workspace, path, cell="run", **wrong)


async def test_names_of_other_notebook_tools(workspace: Workspace, project: Path) -> None:
    path = make(project / "a.ipynb")
    await workspace.call("notebook_read", {"filePath": str(path)})
    arguments = {"notebook_path": str(path), "cell_id": "last", "new_source": "x = 3", "edit_mode": "replace"}
    await workspace.call("notebook_edit", arguments)
    await workspace.call("notebook_edit", {"notebookPath": str(path), "cellId": 0, "editMode": "move", "position": 2})
    assert sources(path) == [SOURCES[1], "x = 3", SOURCES[0]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"newSource": "x"}, "cell is required"),
        ({"cell": "run"}, "newSource is required"),
        ({"cell": "run", "newSource": SOURCES[1]}, "No changes"),
        ({"cell": "run", "cellType": "code"}, "No changes"),
        ({"cell": "nope", "newSource": "x"}, "no cell 'nope'. It has 3"),
        ({"cell": 3, "newSource": "x"}, "no cell 3"),
        ({"cell": -4, "operation": "delete"}, "no cell -4"),
        ({"operation": "insert"}, "newSource is required"),
        ({"operation": "insert", "newSource": "x", "index": 4}, "out of range"),
        ({"operation": "insert", "newSource": "x", "index": 1, "cell": 1}, "not both"),
        ({"operation": "move", "cell": 0}, "index is required"),
        ({"operation": "move", "cell": 0, "index": 3}, "out of range"),
        ({"operation": "move", "cell": 0, "index": 0}, "is already there"),
        ({"cell": "run", "newSource": "half \ud83d"}, "surrogate"),
    ],
)
async def test_what_can_not_be_done(
    workspace: Workspace, project: Path, approver: Any, arguments: dict[str, Any], words: str
) -> None:
    path = make(project / "a.ipynb")
    before = path.read_bytes()
    with pytest.raises(ToolError, match=words):
        await edit(workspace, path, **arguments)
    assert path.read_bytes() == before
    for wrong in ({"operation": "swap"}, {"cell": [1]}, {"cell": 1, "cellType": "heading"}, {"filePath": None}):
        with pytest.raises(InvalidArgumentsError):
            await edit(workspace, path, read=False, **{"cell": 1, "newSource": "x", **wrong})


async def test_read_first_and_not_changed_since(workspace: Workspace, project: Path, approver: Any) -> None:
    path = make(project / "a.ipynb")
    with pytest.raises(NotReadError):
        await edit(workspace, path, read=False, cell=0, newSource="x")
    await workspace.call("notebook_read", {"filePath": str(path)})
    other = path.read_bytes().replace(b"x = 1", b"x = 9")
    path.write_bytes(other)
    with pytest.raises(FileChangedError):
        await edit(workspace, path, read=False, cell=0, newSource="x")
    # Also while a person is asked.
    approver.reply = lambda request: (path.write_bytes(b"{}"), "once")[1] if request.permission == "edit" else "once"
    with pytest.raises(FileChangedError):
        await edit(workspace, path, cell=0, newSource="x")
    assert path.read_bytes() == b"{}"
    approver.reply = lambda request: "reject" if request.permission == "edit" else "once"
    path = make(project / "b.ipynb")
    before = path.read_bytes()
    with pytest.raises(PermissionRejectedError):
        await edit(workspace, path, cell=0, newSource="x")
    assert path.read_bytes() == before


async def test_what_was_read_in_jupyterlab_and_closed_there_is_read_again(workspace: Workspace, project: Path) -> None:
    path = make(project / "a.ipynb")
    before = path.read_bytes()
    session = workspace.sessions.get(None).id
    workspace.service(Notebooks).note_cells(session, path, [Cell(0, "intro", "markdown", "# never saved")])
    with pytest.raises(ToolError, match=r"was open in JupyterLab when it was read and is not any more"):
        await edit(workspace, path, read=False, cell=0, newSource="x")
    assert path.read_bytes() == before
    await edit(workspace, path, cell=0, newSource="x")
    assert sources(path)[0] == "x"


async def test_cells_that_their_author_protects(workspace: Workspace, project: Path) -> None:
    path = make(project / "a.ipynb")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].metadata = {"editable": False}
    notebook.cells[1].metadata = {"deletable": False}
    nbformat.write(notebook, path)
    with pytest.raises(ToolError, match="editable=false"):
        await edit(workspace, path, cell=0, newSource="x")
    with pytest.raises(ToolError, match="deletable=false"):
        await edit(workspace, path, cell=1, operation="delete")
    await edit(workspace, path, cell=1, newSource="x")


async def test_a_new_notebook(workspace: Workspace, project: Path) -> None:
    path = project / "sub" / "new.ipynb"
    await edit(workspace, path, read=False, operation="insert", newSource="1 + 1")
    assert sources(path) == ["1 + 1"]
    with pytest.raises(ToolError, match="File not found"):
        await edit(workspace, project / "none.ipynb", read=False, cell=0, newSource="x")
    with pytest.raises(ToolError, match="only with the extension"):
        await edit(workspace, project / "none.txt", read=False, operation="insert", newSource="x")


async def test_calls_at_once_all_count(workspace: Workspace, project: Path) -> None:
    path = make(project / "a.ipynb")
    await workspace.call("notebook_read", {"filePath": str(path)})
    await asyncio.gather(
        *(edit(workspace, path, read=False, operation="insert", newSource=f"n{n}") for n in range(8)),
        edit(workspace, path, read=False, cell="last", newSource="y"),
    )
    assert sorted(sources(path)[3:]) == [f"n{n}" for n in range(8)]
    assert sources(path)[2] == "y"


async def test_a_link_and_a_bom(workspace: Workspace, project: Path) -> None:
    path = make(project / "a.ipynb")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    path.chmod(0o640)
    link = project / "link.ipynb"
    link.symlink_to(path)
    await edit(workspace, link, cell="last", newSource="x = 5")
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_bytes().startswith(b"\xef\xbb\xbf{")
    assert json.loads(path.read_bytes().decode("utf-8-sig"))["cells"][2]["source"] == ["x = 5"]


# ---------------------------------------------------------------------- how files are written

CELL = {
    "cell_type": "code",
    "execution_count": None,
    "id": "a",
    "metadata": {"k": 1.50},
    "outputs": [],
    "source": ["x"],
}
NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"é": "ü"}, "cells": [CELL, {**CELL, "id": "b"}]}
STYLES = {
    "nbformat": {"indent": 1, "ensure_ascii": False},
    "escaped": {"indent": 1},
    "four": {"indent": 4, "ensure_ascii": False},
    "tabs": {"indent": "\t", "ensure_ascii": False},
    "compact": {"separators": (",", ":"), "ensure_ascii": False},
    "one line": {"ensure_ascii": False},
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_style_of_a_file_stays(style: str, end: str, newline: str) -> None:
    """What a whole rewrite in the same style would give is what splicing gives."""
    dump = STYLES[style]

    def text(*cells: Any) -> str:
        written = json.dumps({**NOTEBOOK, "cells": list(cells)}, **dump) + end  # type: ignore[arg-type]
        return written.replace("\n", newline)

    first, second = NOTEBOOK["cells"]  # type: ignore[misc]
    source = NotebookSource(text(first, second))
    assert source.with_source(1, "ä\ny") == text(first, {**second, "source": ["ä\n", "y"]})
    assert source.with_source(0, "") == text({**first, "source": []}, second)
    made = {"cell_type": "markdown", "id": "n", "metadata": {}, "source": "t"}
    listed = {**made, "source": ["t"]}
    for at in range(3):
        cells = [first, second]
        cells.insert(at, listed)
        assert source.insert_cell(at, made) == text(*cells)
    assert source.delete_cell(0) == text(second)
    assert source.delete_cell(1) == text(first)
    assert source.move_cell(0, 1) == text(second, first)
    assert NotebookSource(source.delete_cell(0)).delete_cell(0) == text()
    assert NotebookSource(text()).insert_cell(0, made) == text(listed)
    assert source.with_cell(0, listed) == text(listed, second)


def test_bytes_of_other_cells_stay_whatever_they_are() -> None:
    text = (
        '{"nbformat":4, "metadata": {"cells": [1]}, "nbformat_minor": 5, "cells" : [\n'
        ' { "id":"a","cell_type":"raw","metadata":{"n": 1.0e5, "m": 1E400, "u": "\\u00e9é"}, "source" : "one" } ,\n'
        '\t{"id": "b", "source": "two", "cell_type": "raw", "metadata": {}}  ] }\n\n'
    )
    source = NotebookSource(text)
    assert source.with_source(1, "2") == text.replace('"two"', '"2"')
    assert source.with_source(0, "ü") == text.replace('"one"', '"ü"')
    for changed in (source.delete_cell(0), source.delete_cell(1), source.move_cell(0, 1), source.move_cell(1, 0)):
        json.loads(changed)
    assert '{ "id":"a","cell_type":"raw","metadata":{"n": 1.0e5, "m": 1E400, "u": "\\u00e9é"}, "source" : "one" }' in (
        source.move_cell(1, 0)
    )


texts = st.text(st.characters(codec="utf-8"), max_size=30)
operations = st.one_of(
    st.tuples(st.just("replace"), st.integers(0, 9), texts, st.sampled_from([None, "code", "markdown", "raw"])),
    st.tuples(st.just("insert"), st.integers(0, 9), texts, st.sampled_from([None, "code", "markdown", "raw"])),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("move"), st.integers(0, 9), st.integers(0, 9)),
)


@given(
    start=st.lists(texts, max_size=4),
    steps=st.lists(operations, max_size=8),
    style=st.sampled_from(list(STYLES)),
    minor=st.sampled_from([4, 5]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_changes_leave_a_valid_notebook_and_other_cells_alone(
    start: list[str], steps: list[Any], style: str, minor: int
) -> None:
    cells: list[dict[str, Any]] = []
    for number, source in enumerate(start):
        cell = {"cell_type": "code", "execution_count": number, "metadata": {}, "source": source}
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": [source, "\n"]}]
        cells.append({**cell, "id": f"s{number}"} if minor == 5 else cell)
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    text = json.dumps(notebook, **STYLES[style])  # type: ignore[arg-type]
    expected = [(cell["source"], cell["outputs"], cell.get("id")) for cell in cells]
    for step in steps:
        count = len(expected)
        if step[0] != "insert" and not count:
            continue
        change = _wanted(step, count)
        file = parse(text.encode(), "x")
        assert file.problem == ""
        if not _changes(expected, file.cells, change):
            with pytest.raises(ToolError, match="No changes"):
                plan(file.cells, change, with_ids=file.has_ids)
            continue
        made = plan(file.cells, change, with_ids=file.has_ids)
        text = changed_text(made, file)
        expected = _expected(expected, change, made.after)
        now = json.loads(text)["cells"]
        assert [(_joined(c["source"]), c.get("outputs"), c.get("id")) for c in now] == expected
        assert [cell.source for cell in made.cells] == [source for source, _, _ in expected]
    final = json.loads(text)
    nbformat.validate(final)
    assert {key: final[key] for key in ("metadata", "nbformat", "nbformat_minor")} == {
        key: notebook[key] for key in ("metadata", "nbformat", "nbformat_minor")
    }


def _wanted(step: Any, count: int) -> CellEdit:
    name, index, *rest = step
    if name == "insert":
        return CellEdit("insert", index=index % (count + 1), new_source=rest[0], cell_type=rest[1])
    if name == "replace":
        return CellEdit("replace", index % count, new_source=rest[0], cell_type=rest[1])
    if name == "move":
        return CellEdit("move", index % count, index=rest[0] % count)
    return CellEdit("delete", index % count)


def _changes(expected: list[Any], cells: list[Cell], change: CellEdit) -> bool:
    if change.operation == "move":
        return change.cell != change.index
    if change.operation != "replace":
        return True
    old = cells[int(str(change.cell))]
    return (old.source, old.type) != (str(change.new_source).replace("\r\n", "\n"), change.cell_type or old.type)


def _expected(cells: list[Any], change: CellEdit, after: Cell | None) -> list[Any]:
    cells = list(cells)
    if change.operation == "insert":
        assert after is not None
        outputs = [] if after.type == "code" else None
        cells.insert(after.index, (after.source, outputs, after.id or None))
        return cells
    at = int(str(change.cell))
    old = cells.pop(at)
    if change.operation == "move":
        cells.insert(int(change.index or 0), old)
    elif change.operation == "replace":
        assert after is not None
        was_code = old[1] is not None
        outputs = old[1] if was_code and after.type == "code" else [] if after.type == "code" else None
        cells.insert(at, (after.source, outputs, old[2]))
    return cells


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


async def test_jupyters_own_tools_take_what_is_written(workspace: Workspace, project: Path) -> None:
    path = make(project / "a.ipynb")
    await edit(workspace, path, operation="insert", newSource="print('ü\u2028')\r\n1", index=1)
    before = path.read_bytes()
    copy = project / "copy.ipynb"
    shutil.copy(path, copy)
    nbformat.write(nbformat.read(copy, as_version=4), copy)
    assert copy.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write", {"content": "{"}),
        ("write", {"content": "[]"}),
        ("edit", {"oldString": "{", "newString": ""}),
        ("multiedit", {"edits": [{"oldString": "}", "newString": ""}]}),
        ("apply_patch", None),
    ],
)
async def test_text_tools_leave_a_notebook_valid(
    open_workspace: OpenWorkspace, tmp_path: Path, name: str, arguments: dict[str, Any] | None
) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text('{\n"cells": []}\n')
    patch = "*** Begin Patch\n*** Update File: a.ipynb\n@@\n-{\n+[\n*** End Patch"
    ws = await open_workspace(directory=tmp_path)
    tool_input = {"patchText": patch} if arguments is None else {"filePath": "a.ipynb", **arguments}
    with pytest.raises(ToolError, match=r"not be a valid notebook.*Use notebook_edit"):
        await ws.start(name, tool_input, by="user").run()
    assert path.read_text() == '{\n"cells": []}\n'
    path.write_text("{")  # damaged already: it may be repaired step by step
    await ws.start("write", {"filePath": "a.ipynb", "content": "{ "}, by="user").run()
    await ws.start("write", {"filePath": "b.txt", "content": "{"}, by="user").run()
