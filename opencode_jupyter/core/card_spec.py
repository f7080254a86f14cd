"""How calls are shown in cards, lists and prompts: the part of a tool's manifest about it, and titles from commands.

Apart from `core.tool`, because cards of stored calls are drawn without importing a tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .call_state import Completed, ToolPart

TITLE_CHARS = 120
"""Most characters of a title that is made from an argument."""
_DESCRIPTION_CHARS = 60
"""Characters of a command that serve as its description."""

PREPARES = re.compile(
    r"#|//|import\b|from \S+ import\b|set [-+]|cd\b[^;&|]*$|export\b[^;&|]*$|[\w./-]+(?: -\S*)* <<-?\s*['\"]?\w+['\"]?$"
)
"""Lines of a script that do not describe it: comments, imports, the shell's options, an interpreter's here-document."""


@dataclass(frozen=True, slots=True)
class CardSpec:
    """What a card needs to know about a tool; the defaults suit most.

    Attributes:
        path: what the path arguments and the title name; a ``file`` can be opened from the card.
        body: what is drawn of a result besides its text: a ``table`` of its records in place of the text, a list of
            ``tasks``, a notebook's ``cells``, a ``skill``'s files.
        label: makes the line beside the tool's name from the arguments and the part; empty leaves it to the title and
            the arguments.
        text: makes the text that a person reads in place of the one for a model; None keeps that.
        lines: the lines of the output for a person: the index of the first and the one after the last; None for all.
        question: what a permission request of the tool's id asks a person.
    """

    path: Literal["", "file", "folder"] = ""
    body: Literal["", "table", "tasks", "cells", "skill"] = ""
    label: Callable[[dict[str, Any], ToolPart], str] | None = None
    text: Callable[[Completed], str | None] | None = None
    lines: Callable[[str], list[int] | None] | None = None
    question: str = ""


PLAIN = CardSpec()
"""For a tool without a card of its own."""
CARDS: dict[str, CardSpec] = {}
"""By the id of each built-in tool that was made so far."""


def summary_line(text: str) -> str:
    """The line that describes a text: the first that is no comment, import or preparation of a shell."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        return "".join(lines)[:TITLE_CHARS]
    line = next((line for line in lines if not PREPARES.match(line)), lines[0])
    return f"{line[:TITLE_CHARS]} …"


def command_description(command: str) -> str:
    """A description made from a command: the beginning of its most telling line."""
    line = summary_line(command).removesuffix(" …")
    return line if len(line) <= _DESCRIPTION_CHARS else line[: _DESCRIPTION_CHARS - 3] + "..."


def renew_description(before: Any, after: Any) -> Any:
    """Changed arguments with a description of the new command, where only the command was changed."""
    if not isinstance(before, dict) or not isinstance(after, dict) or not {"command", "description"} <= after.keys():
        return after
    command = after["command"]
    if command == before.get("command", command) or after["description"] != before.get("description"):
        return after
    return {**after, "description": command_description(command)} if isinstance(command, str) else after
