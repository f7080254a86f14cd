"""The built-in tools: one module each, beside its description for the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.tool import Tool

MODULES = (
    "bash",
    "read",
    "glob",
    "grep",
    "edit",
    "write",
    "apply_patch",
    "multiedit",
    "question",
    "invalid",
    "todowrite",
    "todoread",
    "batch",
    "notebook_read",
    "notebook_edit",
    "webfetch",
    "websearch",
    "codesearch",
    "skill",
    "lsp",
    "list",
    "task",
    "plan_exit",
    "plan_enter",
)
"""Modules of this package that hold a built-in tool of the same name."""


def builtin_tools() -> dict[str, Callable[[], Tool]]:
    """What makes each built-in tool, by its id; a module is imported when its tool is first needed."""
    return {name: partial(_load, name) for name in MODULES}


def _load(name: str) -> Tool:
    made: Tool = getattr(import_module(f"{__name__}.{name}"), name)
    return made
