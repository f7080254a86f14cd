"""A conversation kept within its model's window: old outputs dropped, what went before summarised."""

from __future__ import annotations

from .limits import overflows, prune, usable_tokens
from .summary import compact

__all__ = ["compact", "overflows", "prune", "usable_tokens"]
