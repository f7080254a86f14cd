"""The system prompt of a model: its role, where it works, instructions, and what it must not do."""

from __future__ import annotations

from .instructions import Instructions
from .reminders import LAST_STEP, reminders
from .rules import describe_rules
from .system import SystemPrompts, system_prompt

__all__ = ["LAST_STEP", "Instructions", "SystemPrompts", "describe_rules", "reminders", "system_prompt"]
