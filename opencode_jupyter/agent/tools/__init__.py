"""The built-in tools that start or redirect a model's run: task, plan_enter, plan_exit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.tool import Tool

_MODULES = {"plan_enter": "plan", "plan_exit": "plan", "task": "task"}
"""The module of each tool; it is imported when the tool is first needed."""


def agent_tools() -> dict[str, Callable[[], Tool]]:
    """Return what makes each of these tools, by the tool's id."""
    return {id: partial(_load, id) for id in _MODULES}


def _load(id: str) -> Tool:
    tool: Tool = getattr(import_module(f"{__name__}.{_MODULES[id]}"), id)
    return tool
