"""The lsp tool on Python out of the box: every operation on the real server that is installed with the package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.core.errors import InvalidArgumentsError
from opencode_jupyter.core.result import ToolResult
from opencode_jupyter.tools.language_servers import servers
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio

SHAPES = """class Shape:
    def area(self) -> float:
        raise NotImplementedError

class Square(Shape):
    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return multiply(self.side, self.side)

def multiply(a: float, b: float) -> float:
    \"\"\"The product.\"\"\"
    return a * b
"""
MAIN = """from shapes import Square, multiply

def total() -> float:
    return Square(2).area() + multiply(1, 3)
"""


@pytest.fixture
async def ws(open_workspace: OpenWorkspace, project: Path) -> Workspace:
    (project / "shapes.py").write_text(SHAPES)
    (project / "main.py").write_text(MAIN)
    return await open_workspace(store=False)


async def ask(ws: Workspace, operation: str, name: str, line: int, character: int) -> ToolResult:
    where = {"filePath": name, "line": line, "character": character}
    return await ws.call("lsp", {"operation": operation, **where})


def places(result: ToolResult) -> set[tuple[str, int]]:
    return {(Path(row["path"]).name, row["line"]) for row in result.records or ()}


def test_the_servers_program_is_installed_with_the_package() -> None:
    [first, *_] = servers.table(None).serving(Path("x.py"))
    assert first.name == "ty"
    assert servers.program(first)


async def test_every_operation(ws: Workspace) -> None:
    assert places(await ask(ws, "goToDefinition", "main.py", 4, 12)) == {("shapes.py", 5)}
    references = places(await ask(ws, "findReferences", "shapes.py", 12, 5))
    assert references == {("shapes.py", 10), ("shapes.py", 12), ("main.py", 1), ("main.py", 4)}
    hover = await ask(ws, "hover", "main.py", 4, 32)
    assert "def multiply(" in hover.records[0]["text"]
    assert "The product." in hover.records[0]["text"]
    assert "```" in hover.output
    assert "```" not in hover.records[0]["text"], "a table shows no Markdown"
    symbols = await ask(ws, "documentSymbol", "shapes.py", 1, 1)
    rows = [(row["name"], row["kind"], row["container"]) for row in symbols.records]
    assert ("area", "method", "Square") in rows
    assert ("multiply", "function", None) in rows
    assert [s["name"] for s in symbols.metadata["result"]] == ["Shape", "Square", "multiply"]
    workspace = await ask(ws, "workspaceSymbol", "main.py", 4, 32)
    assert workspace.records[0]["name"] == "multiply"
    assert (await ask(ws, "workspaceSymbol", "main.py", 2, 1)).records
    implementations = places(await ask(ws, "goToImplementation", "shapes.py", 2, 9))
    assert ("shapes.py", 9) in implementations
    assert [row["name"] for row in (await ask(ws, "prepareCallHierarchy", "main.py", 4, 32)).records] == ["multiply"]
    incoming = await ask(ws, "incomingCalls", "shapes.py", 12, 5)
    assert {row["name"] for row in incoming.records} >= {"area", "total"}
    outgoing = await ask(ws, "outgoingCalls", "main.py", 3, 5)
    assert {row["name"] for row in outgoing.records} == {"Square", "area", "multiply"}
    assert outgoing.output == json.dumps(outgoing.metadata["result"], indent=2, ensure_ascii=False)
    assert outgoing.title == "outgoingCalls main.py:3:5"
    nothing = await ask(ws, "outgoingCalls", "shapes.py", 12, 5)
    assert nothing.output == "No results found for outgoingCalls"


async def test_it_sees_the_packages_of_the_python_that_runs_here(ws: Workspace, project: Path) -> None:
    (project / "uses.py").write_text("import pydantic\n\nx = pydantic.BaseModel\n")
    [row] = (await ask(ws, "goToDefinition", "uses.py", 3, 16)).records
    assert Path(row["path"]).parent.name == "pydantic"


async def test_it_sees_what_others_write_between_calls(ws: Workspace, project: Path) -> None:
    assert len(places(await ask(ws, "findReferences", "shapes.py", 12, 5))) == 4
    (project / "third.py").write_text("import shapes\n\nshapes.multiply(1, 2)\n")
    assert ("third.py", 3) in places(await ask(ws, "findReferences", "shapes.py", 12, 5))
    (project / "main.py").unlink()
    assert not [p for p in places(await ask(ws, "findReferences", "shapes.py", 12, 5)) if p[0] == "main.py"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "rename"},
        {"line": 0},
        {"character": 0},
        {"line": 1.5},
        {"line": "x"},
        {"line": None},
        {"filePath": None},
    ],
)
async def test_wrong_arguments(ws: Workspace, wrong: dict[str, Any]) -> None:
    good = {"operation": "hover", "filePath": "main.py", "line": 1, "character": 1}
    with pytest.raises(InvalidArgumentsError):
        await ws.call("lsp", {**good, **wrong})


async def test_a_package_of_hundreds_of_files(open_workspace: OpenWorkspace, project: Path) -> None:
    import IPython
    import jupyter_server

    for package in (IPython, jupyter_server):
        top = Path(package.__file__).parent
        shutil.copytree(top, project / top.name, ignore=shutil.ignore_patterns("__pycache__"))
    assert sum(1 for _ in project.rglob("*.py")) > 200
    name = "IPython/core/interactiveshell.py"
    text = (project / name).read_text()
    line = text[: text.index("def run_line_magic")].count("\n") + 1
    ws = await open_workspace(store=False)
    await ask(ws, "findReferences", name, line, 10)  # the server has read everything now
    for operation in (
        "goToDefinition",
        "findReferences",
        "hover",
        "documentSymbol",
        "workspaceSymbol",
        "incomingCalls",
    ):
        assert (await ask(ws, operation, name, line, 10)).metadata["result"], operation
    await ws.call("read", {"filePath": name})
    edit = {
        "filePath": name,
        "oldString": "def run_line_magic(",
        "newString": "x: int = ''\n    def run_line_magic(",
    }
    result = await ws.call("edit", edit)
    assert f"ERROR [{line}:" in result.output
