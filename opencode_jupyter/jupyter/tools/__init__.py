"""Tools that need a kernel: the agent's hand in the user's own namespace. The notebook adds them to its workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.tool import Tool

if TYPE_CHECKING:
    from ..notebook import Notebook


def kernel_tools(notebook: Notebook) -> list[Tool]:
    """The built-in tools of one notebook."""
    from .inspect import inspect_tool
    from .python import python_tool

    return [python_tool(notebook), inspect_tool(notebook)]
