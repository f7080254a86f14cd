"""notebook_read: cells with ids and trimmed outputs, of every format version; clear words for what is no notebook."""

from __future__ import annotations

import base64
import json
import tracemalloc
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4

from opencode_jupyter.core.errors import InvalidArgumentsError, PermissionDeniedError, ToolError
from opencode_jupyter.workspace import Workspace
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(3000)).decode()


def code(source: str, *outputs: Any, id: str = "c", count: int | None = 1) -> Any:
    return v4.new_code_cell(source, id=id, execution_count=count, outputs=list(outputs))


def save(path: Path, *cells: Any, **metadata: Any) -> Path:
    nbformat.write(v4.new_notebook(cells=list(cells), metadata=metadata), path)
    return path


def stream(text: str, name: str = "stdout") -> Any:
    return v4.new_output("stream", name=name, text=text)


def shown(**data: Any) -> Any:
    return v4.new_output(
        "display_data", data={key.replace("_", "/", 1).replace("_", "+"): v for key, v in data.items()}
    )


async def read(workspace: Workspace, path: Path | str, **more: Any) -> Any:
    return await workspace.call("notebook_read", {"filePath": str(path), **more})


async def test_cells_with_what_identifies_them(workspace: Workspace, project: Path, approver: Any) -> None:
    path = save(
        project / "a.ipynb",
        v4.new_markdown_cell("# Title\n\ntext", id="intro"),
        code("print(1)\n1", stream("1\n"), id="run", count=7),
        code("", id="empty", count=None),
        v4.new_raw_cell("raw text", id="raw"),
        kernelspec={"name": "ir", "display_name": "R"},
        language_info={"name": "R"},
    )
    result = await read(workspace, path)
    assert [(a.permission, a.patterns, a.always) for a in approver.asks] == [("read", ["a.ipynb"], ["*"])]
    assert result.title == "a.ipynb"
    assert result.output == (
        f"<path>{path}</path>\n<type>notebook</type>\nnbformat 4.5, 4 cells, language R, kernel ir\n<cells>\n"
        '<cell index="0" id="intro" type="markdown">\n# Title\n\ntext\n</cell>\n'
        '<cell index="1" id="run" type="code" executed="7">\nprint(1)\n1\n<outputs>\n1\n</outputs>\n</cell>\n'
        '<cell index="2" id="empty" type="code">\n</cell>\n'
        '<cell index="3" id="raw" type="raw">\nraw text\n</cell>\n\n'
        "(End of notebook - total 4 cells.)\n</cells>"
    )
    lines = result.output.split("\n")
    places = result.metadata["layout"]
    assert ["\n".join(lines[p["line"] : p["line"] + p["source"]]) for p in places] == [
        "# Title\n\ntext",
        "print(1)\n1",
        "",
        "raw text",
    ]
    assert [(p["index"], p["id"], p["type"], p.get("executed"), p["output"]) for p in places] == [
        (0, "intro", "markdown", None, 0),
        (1, "run", "code", 7, 1),
        (2, "empty", "code", None, 0),
        (3, "raw", "raw", None, 0),
    ]
    assert (result.metadata["language"], result.metadata["notes"]) == ("R", [])
    rows = result.records
    assert [(r["index"], r["id"], r["type"], r["execution_count"], r["outputs"]) for r in rows] == [
        (0, "intro", "markdown", None, 0),
        (1, "run", "code", 7, 1),
        (2, "empty", "code", None, 0),
        (3, "raw", "raw", None, 0),
    ]
    assert rows[1]["output"] == "1"


async def test_one_cell_and_pages_of_cells(workspace: Workspace, project: Path) -> None:
    cells = [code(f"x{n}", id=f"id-{n}") for n in range(250)]
    cells[7] = code("named", id="12")
    path = save(project / "a.ipynb", *cells)
    result = await read(workspace, path)
    assert len(result.records) == 100
    assert "(Showing cells 0-99 of 250. Use offset=100 to continue.)" in result.output
    result = await read(workspace, path, offset=240, limit=50)
    assert [r["index"] for r in result.records] == list(range(240, 250))
    for cell, index in (("id-30", 30), (30, 30), ("30", 30), (-1, 249), ("12", 7), (12, 12)):
        result = await read(workspace, path, cell=cell)
        assert (result.records[0]["index"], len(result.records)) == (index, 1), cell
    assert result.title == "a.ipynb cell 12"
    for wrong, words in (
        ({"cell": "nope"}, "no cell 'nope'. It has 250"),
        ({"cell": 250}, "no cell 250"),
        ({"offset": 250}, "out of range"),
        ({"offset": -1}, "0 or more"),
        ({"limit": 0}, "greater than"),
        ({"cell": 1, "offset": 1}, "not both"),
    ):
        with pytest.raises(ToolError, match=words):
            await read(workspace, path, **wrong)
    with pytest.raises(InvalidArgumentsError):
        await read(workspace, path, outputs="some")


async def test_outputs_are_trimmed_as_asked(workspace: Workspace, project: Path) -> None:
    lines = "\n".join(f"line {n}" for n in range(1000))
    trace = ["\x1b[31m---------\x1b[0m", *(f"frame {n}" for n in range(40)), "\x1b[31mValueError\x1b[0m: no"]
    path = save(
        project / "a.ipynb",
        code("a", stream(lines), stream("\nlast"), stream("warned", "stderr"), id="long"),
        code("b", v4.new_output("error", ename="ValueError", evalue="no", traceback=trace), id="bad"),
        code("c", stream("10%\r50%\r\x1b[1m100%\x1b[0m\n"), shown(text_html="<b>x</b><script>evil()</script>"), id="c"),
        code("d", shown(text_plain="<Figure>", image_png=PNG), shown(application_json={"a": 1}), id="d"),
        code(
            "e",
            v4.new_output(
                "display_data",
                data={
                    "application/vnd.opencode.toolpart.v1+json": {"v": 1},
                    "text/html": "<p>no",
                    "text/plain": "card",
                },
            ),
            v4.new_output("display_data", data={"application/vnd.x+json": {"a": 1}}),
            id="e",
        ),
    )
    short = await read(workspace, path)
    assert "line 19\n… (961 more lines)\nline 981\n" in short.output
    assert "\nlast\nwarned\n" in short.output
    assert "earlier lines of the traceback" in short.output
    assert short.output.count("ValueError: no") == 1
    assert "frame 39" in short.output
    assert "frame 5\n" not in short.output
    assert "\n100%\n" in short.output
    assert "\nx\n" in short.output
    assert "evil" not in short.output
    assert "<Figure>\n[image/png, 3 kB]" in short.output
    assert '{"a": 1}' in short.output
    assert "\ncard\n[application/vnd.x+json]" in short.output
    assert "outputs=full" in short.output
    assert "\x1b" not in short.output
    assert short.attachments == []
    none = await read(workspace, path, outputs="none")
    assert "<outputs>" not in none.output
    full = await read(workspace, path, outputs="full", cell="long")
    assert "line 500" in full.output
    picture = await read(workspace, path, cell="d")
    assert [(a.mime, a.filename) for a in picture.attachments] == [("image/png", "cell-3-1.png")]
    assert picture.attachments[0].data.startswith(b"\x89PNG")
    assert len((await read(workspace, path, outputs="full")).attachments) == 1


@pytest.mark.parametrize("minor", [0, 1, 2, 3, 4, 5])
async def test_every_minor_version(workspace: Workspace, project: Path, minor: int) -> None:
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": "x=1",
    }
    if minor >= 5:
        cell["id"] = "a"
    path = project / "a.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": minor}))
    result = await read(workspace, path)
    assert f"nbformat 4.{minor}, 1 cell\n<cells>" in result.output
    assert "x=1" in result.output


async def test_an_old_notebook_is_brought_up_in_memory(workspace: Workspace, project: Path) -> None:
    path = project / "old.ipynb"
    old = nbformat.v3.new_notebook(
        worksheets=[
            nbformat.v3.new_worksheet(
                cells=[
                    nbformat.v3.new_code_cell(
                        "print 1", prompt_number=3, outputs=[nbformat.v3.new_output("stream", "1\n")]
                    ),
                    nbformat.v3.new_heading_cell("Head", level=2),
                ]
            )
        ]
    )
    path.write_text(json.dumps(old))
    before = path.read_bytes()
    result = await read(workspace, path)
    assert "nbformat 3.0, shown as format 4" in result.output
    assert "print 1\n<outputs>\n1" in result.output
    assert "## Head" in result.output
    assert path.read_bytes() == before
    with pytest.raises(ToolError, match="only format 4 is changed"):
        await workspace.call("notebook_edit", {"filePath": str(path), "cell": 0, "newSource": "x"})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b"print(1)", "not JSON"),
        (b'{"cells": [}', "not JSON"),
        (b'{"cells": [], "nbformat": 4', "not JSON"),
        (b'{"cells": [1,], "nbformat": 4}', "not JSON"),
        (b'{"cells": [], "nbformat": 4} x', "not JSON"),
        (b"[1, 2]", "not an object"),
        (b"{}", "no nbformat number"),
        (b'{"nbformat": "4", "cells": []}', "no nbformat number"),
        (b'{"nbformat": 4}', "no list of cells"),
        (b'{"nbformat": 4, "cells": {}}', "no list of cells"),
        (b'{"nbformat": 4, "cells": [1]}', "not every cell"),
        (b'{"nbformat": 5, "cells": []}', "newer than"),
        (b'{"nbformat": 3, "cells": []}', "can't be read"),
        (b"\x80\x81\x82", "not UTF-8"),
        (b'{"nbformat": 4, "cells": [' + b"[" * 100_000, "nested too deeply"),
    ],
)
async def test_what_is_no_notebook(workspace: Workspace, project: Path, content: bytes, words: str) -> None:
    path = project / "a.ipynb"
    path.write_bytes(content)
    with pytest.raises(ToolError, match=words) as caught:
        await read(workspace, path)
    assert str(path) in str(caught.value)


async def test_files_that_are_not_there_or_not_files(workspace: Workspace, project: Path) -> None:
    (project / "link.ipynb").symlink_to("gone.ipynb")
    with pytest.raises(ToolError, match=r"link\.ipynb is a symbolic link to gone\.ipynb, which does not exist\."):
        await workspace.call("notebook_read", {"filePath": "link.ipynb"})
    (project / "link.ipynb").unlink()
    (project / "data.ipynb").write_text("{}")
    with pytest.raises(ToolError, match=r"File not found[\s\S]*Did you mean[\s\S]*data.ipynb"):
        await read(workspace, project / "data")
    with pytest.raises(ToolError, match="Path is a directory, not a file"):
        await read(workspace, project)
    with pytest.raises(ToolError, match="NUL"):
        await read(workspace, "a\0b.ipynb")


async def test_a_notebook_that_is_not_valid_is_read_and_said(workspace: Workspace, project: Path) -> None:
    path = project / "a.ipynb"
    cell = {"cell_type": "code", "source": ["x\n", "y"], "odd": 1}
    path.write_text(json.dumps({"cells": [cell, cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    result = await read(workspace, path)
    assert "(not valid by nbformat: " in result.output
    assert "x\ny" in result.output
    path = save(project / "b.ipynb", code("a", id="same"), code("b", id="0ther"))
    path.write_text(path.read_text().replace("0ther", "same"))
    result = await read(workspace, path)
    assert "several cells have the id same" in result.output
    with pytest.raises(ToolError, match=r"several cells \(0, 1\)"):
        await read(workspace, path, cell="same")


async def test_rules_of_read_decide(open_workspace: OpenWorkspace, project: Path, tmp_path: Path) -> None:
    (project / "sub").mkdir()
    save(project / "secret.ipynb", code("x"))
    (project / "link.ipynb").symlink_to(project / "secret.ipynb")
    outside = save(tmp_path / "out.ipynb", code("x"))
    config = {"permission": {"*": "allow", "read": {"*": "allow", "secret*": "deny"}, "external_directory": "deny"}}
    ws = await open_workspace(config)
    for path in (project / "secret.ipynb", project / "link.ipynb", outside):
        with pytest.raises(PermissionDeniedError):
            await read(ws, path)


async def test_a_huge_notebook(workspace: Workspace, project: Path) -> None:
    path = project / "huge.ipynb"
    picture = PNG * 1000  # 4 MB
    cells = [code("x", shown(text_plain="f", image_png=picture), id=f"c{n}") for n in range(15)]
    save(path, *cells)  # 60 MB
    await read(workspace, path, cell=0)  # imports
    size = path.stat().st_size
    tracemalloc.start()
    result = await read(workspace, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(result.output) < 5000
    # the file's bytes, its text, and one cell at a time
    assert peak < 2.5 * size, f"{peak >> 20} MiB for {size >> 20}"
