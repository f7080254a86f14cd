"""What a shell command would do, read from its syntax tree: folders, commands (docs/opencode/agents.md 6.3)."""

from __future__ import annotations

from ...core.permission.rules import NOT_ANALYSED
from .analysis import analyse
from .findings import Judged, ShellAsks, exactly

__all__ = ["NOT_ANALYSED", "Judged", "ShellAsks", "analyse", "exactly"]
