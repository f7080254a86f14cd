"""The `%tool` lines and Python calls that a card offers to copy make the call that the card shows.

JupyterLab's renderer writes them (``labextension/src/card/toolLine.ts``); its tests hold it to the same table.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from opencode_jupyter import Tool, Workspace
from opencode_jupyter.jupyter.magics.tool_line import parse

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "data" / "tool_lines.json").read_text())
SEARCH = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "top": {"type": "integer"}, "exact": {"type": "boolean"}},
    "required": ["query"],
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("project")
    with Workspace(folder, data_dir=folder / "data", store=False) as ws:
        for name, schema in (("search", SEARCH), ("anything", {"type": "object", "additionalProperties": True})):
            definition = {"description": "remote", "parameters": schema, "execute": lambda a, c: "x"}
            ws.registry.register(Tool.define(name, definition))
        yield ws


def magic_of(cell: str) -> tuple[str, str | None]:
    """The line and the body of a cell's one magic, as IPython reads them."""
    call = ast.parse(TransformerManager().transform_cell(cell)).body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    name, line, *body = (ast.literal_eval(argument) for argument in call.value.args)
    assert name == "tool"
    return line, body[0] if body else None


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.get("line"))[:60])
def test_the_line_reads_back(case: dict[str, Any], workspace: Workspace) -> None:
    line, body = magic_of(case["line"])
    request = parse(line, body, workspace.registry, {"name": "wrong", "x": "wrong"})
    assert (request.tool, request.arguments) == (case["tool"], case["input"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["python"][:60])
def test_the_python_call_reads_back(case: dict[str, Any]) -> None:
    awaited = ast.parse(case["python"], mode="eval").body
    assert isinstance(awaited, ast.Await) and isinstance(awaited.value, ast.Call)
    assert ast.unparse(awaited.value.func) == "ws.call"
    values = [ast.literal_eval(argument) for argument in awaited.value.args]
    assert values == ([case["tool"], case["input"]] if case["input"] else [case["tool"]])
