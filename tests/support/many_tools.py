"""Hundreds of tools, as a user with many functions or servers has them."""

from __future__ import annotations

from typing import Any

from opencode_jupyter import Tool, tool

COUNT = 500


def source_of(number: int, prefix: str = "many_") -> str:
    """The text of one tool, as a cell or a file has it; no two have the same parameters."""
    parameters = f"path: str, count_{number}: int = 1, names: list[str] | None = None"
    texts = f"Tool {number}.\n\n    Args:\n        path: Which file.\n        count_{number}: How often."
    return f'@tool\nasync def {prefix}{number}({parameters}) -> str:\n    """{texts}\n    """\n    return path\n'


def make_tools(count: int = COUNT) -> list[Tool]:
    """The tools."""
    made: dict[str, Any] = {"tool": tool}
    for number in range(count):
        exec(source_of(number), made)
    return [made[f"many_{number}"] for number in range(count)]
