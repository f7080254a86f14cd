"""The built-in tools that start or redirect a model's run: task, plan_enter, plan_exit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...tools import builtin_tools

if TYPE_CHECKING:
    from ...core.tool import Tool


def agent_tools() -> dict[str, Callable[[], Tool]]:
    """Return what makes each of these tools, by the tool's id."""
    return builtin_tools(__name__, Path(__file__).parent)
