"""How the calls of a built-in tool are shown: a part of the tool's manifest, for cards, lists and prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .call_state import Completed, ToolPart


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
