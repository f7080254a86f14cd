"""Descriptions of commands, which are the titles of their calls."""

from __future__ import annotations

import re
from typing import Any

CHARS = 120
"""Most characters of a title that is made from an argument."""
LENGTH = 60
"""Characters of a command that serve as its description."""

PREPARES = re.compile(
    r"#|//|import\b|from \S+ import\b|set [-+]|cd\b[^;&|]*$|export\b[^;&|]*$|[\w./-]+(?: -\S*)* <<-?\s*['\"]?\w+['\"]?$"
)
"""Lines of a script that do not describe it: comments, imports, the shell's options, an interpreter's here-document."""


def summary_line(text: str) -> str:
    """The line that describes a text: the first that is no comment, import or preparation of a shell."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return "".join(lines)[:CHARS]
    line = next((line for line in lines if not PREPARES.match(line)), lines[0])
    return f"{line[:CHARS]} …"


def command_description(command: str) -> str:
    """A description made from a command: the beginning of its most telling line."""
    line = summary_line(command).removesuffix(" …")
    return line if len(line) <= LENGTH else line[: LENGTH - 3] + "..."


def renew_description(before: Any, after: Any) -> Any:
    """Changed arguments with a description of the new command, where only the command was changed."""
    if not isinstance(before, dict) or not isinstance(after, dict) or not {"command", "description"} <= after.keys():
        return after
    command = after["command"]
    if command == before.get("command", command) or after["description"] != before.get("description"):
        return after
    return {**after, "description": command_description(command)} if isinstance(command, str) else after
