"""Who is told of every tool that `@tool` makes: a loaded notebook registers those of its cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tool import Tool

on_tool_defined: list[Callable[[Tool], None]] = []
"""Called with each new tool, in the thread that defines it."""
