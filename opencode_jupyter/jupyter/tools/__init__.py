"""Tools that need a kernel: the agent's hand in the user's own namespace. The notebook adds them to its workspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.tool import Tool
    from ..notebook import Notebook


def kernel_tools(notebook: Notebook) -> dict[str, Callable[[], Tool]]:
    """What makes the built-in tools of one notebook, by their ids."""
    return {"python": lambda: _python(notebook), "inspect": lambda: _inspect(notebook)}


def _python(notebook: Notebook) -> Tool:
    from .python import python_tool

    return python_tool(notebook)


def _inspect(notebook: Notebook) -> Tool:
    from .inspect import inspect_tool

    return inspect_tool(notebook)
