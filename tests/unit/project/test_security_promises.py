"""SECURITY.md names a test for each promise, and each test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "SECURITY.md").read_text()


def test_every_test_that_is_named_exists() -> None:
    references = re.findall(r"`(tests/[^`:]*)(?:::([^`]*))?`", TEXT)
    assert len(references) == TEXT.count("`tests/")
    for file, function in references:
        nodes = ast.parse((ROOT / file).read_text()).body  # an error names a missing file
        functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert not function or function in functions, f"{file}::{function}"


def test_every_promise_names_its_test() -> None:
    promises = TEXT.split("## What is promised")[1].split("\n## ")[0]
    rows = [row for row in promises.splitlines() if row.startswith("|") and not row.endswith(("| test |", "|---|"))]
    assert len(rows) > 40
    assert [row for row in rows if "`tests/" not in row] == []
