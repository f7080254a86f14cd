"""Listeners for tools that `@tool` makes: a loaded notebook registers those of its cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

on_tool_defined: list[Callable[[Any], None]] = []
"""Called with each new `Tool`, in the thread that defines it."""
