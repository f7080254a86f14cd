"""The built-in tools: one module each, beside its description for the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.tool import Tool


def builtin_tools(package: str = __name__, folder: Path = Path(__file__).parent) -> dict[str, Callable[[], Tool]]:
    """Return what makes each built-in tool of a package, by the tool's id.

    A tool is a module beside a description of the same name (``read.py`` and ``read.md``). The module is imported when
    its tool is first needed.
    """
    return {path.stem: partial(_load, package, path.stem) for path in sorted(folder.glob("*.md"))}


def _load(package: str, name: str) -> Tool:
    tool: Tool = getattr(import_module(f"{package}.{name}"), name)
    return tool
