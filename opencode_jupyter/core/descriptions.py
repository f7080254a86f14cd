"""Descriptions of commands, which are the titles of their calls."""

from __future__ import annotations

from typing import Any

LENGTH = 60
"""Characters of a command that serve as its description."""


def command_description(command: str) -> str:
    """A description made from a command: the beginning of its first line."""
    first = next((line.strip() for line in command.splitlines() if line.strip()), "")
    return first if len(first) <= LENGTH else first[: LENGTH - 3] + "..."


def renew_description(before: Any, after: Any) -> Any:
    """Changed arguments with a description of the new command, where only the command was changed."""
    if not isinstance(before, dict) or not isinstance(after, dict) or not {"command", "description"} <= after.keys():
        return after
    command = after["command"]
    if command == before.get("command", command) or after["description"] != before.get("description"):
        return after
    return {**after, "description": command_description(command)} if isinstance(command, str) else after
