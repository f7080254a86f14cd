"""Running commands so that nothing of them is left: supervised on Linux, in process groups elsewhere."""

from __future__ import annotations

from .child import Child, Exit, spawn
from .environment import clean_environment
from .stdio import Stdio, converse

__all__ = ["Child", "Exit", "Stdio", "clean_environment", "converse", "spawn"]
