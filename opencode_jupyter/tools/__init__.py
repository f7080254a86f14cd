"""The built-in tools: one module each, beside its description for the model."""

from __future__ import annotations

from importlib import import_module

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


def builtin_tools() -> list[Tool]:
    """Every built-in tool, each imported at the first call."""
    return [getattr(import_module(f"{__name__}.{name}"), name) for name in MODULES]
