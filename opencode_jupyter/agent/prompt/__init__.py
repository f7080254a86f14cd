"""The system prompt of a model: its role, where it works, instructions, and what it must not do."""

from __future__ import annotations

from .forbidden import forbidden
from .instructions import Instructions
from .reminders import LAST_STEP, reminders
from .system import Prompts, system_prompt

__all__ = ["LAST_STEP", "Instructions", "Prompts", "forbidden", "reminders", "system_prompt"]
