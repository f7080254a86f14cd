"""The system prompt of a model: its role, where it works, instructions, and what it must not do."""

from __future__ import annotations

from .instructions import Instructions
from .system import LAST_STEP, reminders, system_prompt

__all__ = ["LAST_STEP", "Instructions", "reminders", "system_prompt"]
