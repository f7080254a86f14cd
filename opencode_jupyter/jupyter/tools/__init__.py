"""The tools python and inspect, which work in the user's namespace. The notebook adds them to its workspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.card_spec import CARDS, PREPARES, CardSpec, summary_line

if TYPE_CHECKING:
    from ...core.call_state import ToolPart
    from ...core.tool import Tool
    from ..notebook import Notebook


def _code_label(arguments: dict[str, Any], part: ToolPart) -> str:
    """The call's title, unless that is an import or another line that says little."""
    title, code = str(getattr(part.state, "title", None) or ""), arguments.get("code")
    if title and not PREPARES.match(title):
        return title
    return summary_line(code) if isinstance(code, str) else title


PYTHON_CARD = CARDS["python"] = CardSpec(label=_code_label)
"""Stored calls are shown before a notebook makes the tool."""


def kernel_tools(notebook: Notebook) -> dict[str, Callable[[], Tool]]:
    """Functions that make the built-in tools of one notebook, by their ids."""

    def python() -> Tool:
        from .python import python_tool  # here: at the first use

        return python_tool(notebook)

    def inspect() -> Tool:
        from .inspect import inspect_tool

        return inspect_tool(notebook)

    return {"python": python, "inspect": inspect}
