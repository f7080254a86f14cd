"""What a shell command would do, read from its syntax tree: which folders, which commands (reference: agents.md 6.3)."""

from __future__ import annotations

from .analysis import Judged, ShellAsks, analyse

__all__ = ["Judged", "ShellAsks", "analyse"]
