"""Repairs calls that name a tool or its arguments wrongly (docs/opencode/core.md 7.2).

A wrongly-cased name (``Read``, ``BASH``) is corrected for everyone. A model's call that can't be repaired becomes a
call of the `invalid` tool, whose output tells the model what was wrong: its turn continues.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

INVALID = "invalid"
"""The tool that a malformed call becomes."""


class Names(Protocol):
    """The part of `Registry` that is used here."""

    def get(self, id: str) -> Any:
        """The tool of this id, or None."""

    def names(self) -> list[str]:
        """Ids of all tools."""


def correct_name(registry: Names, name: str) -> str:
    """`name` with its case corrected, if that makes it a tool's id; else as it is."""
    if not isinstance(name, str) or registry.get(name) is not None:
        return name
    lowered = name.lower()
    if registry.get(lowered) is not None:
        return lowered
    matches = [id for id in registry.names() if id.lower() == lowered]
    return matches[0] if len(matches) == 1 else name


def repair(
    registry: Names, name: str, arguments: Any, *, available: Sequence[str] | None = None
) -> tuple[str, dict[str, Any]]:
    """A model's call in a form that can be made.

    Arguments are not judged by the tool's schema here; what fails there becomes `invalid_call` in `core.call`.

    Args:
        registry: the tools there are.
        name: as the model wrote it.
        arguments: a dict, or the JSON text a provider sent (empty text: no arguments).
        available: names to tell the model when there is no such tool; all of the registry's if left out.

    Returns:
        The tool's id and its arguments: the call itself, or one of ``invalid``.
    """
    id = correct_name(registry, name)
    if not isinstance(id, str) or registry.get(id) is None:
        known = ", ".join(sorted(registry.names() if available is None else available))
        return invalid_call(str(name), f"Model tried to call unavailable tool '{name}'. Available tools: {known}.")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, parse_constant=_no_json) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            reason = f"JSON parsing failed: Text: {arguments}.\nError message: JSON Parse error: {_reason(error)}"
            return invalid_call(id, f"Invalid input for tool {id}: {reason}")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        shown = json.dumps(arguments, ensure_ascii=False, default=str)
        reason = f"Type validation failed: Value: {shown}.\nError message: the arguments must be one JSON object"
        return invalid_call(id, f"Invalid input for tool {id}: {reason}")
    return id, arguments


def invalid_call(name: str, error: str) -> tuple[str, dict[str, Any]]:
    """The call of ``invalid`` with the reason why a call of `name` can't be made."""
    return INVALID, {"tool": name, "error": error}


def requested_tool(tool: str, arguments: Any) -> str:
    """The requested tool of a call; of a call of `invalid`, the one that its arguments name."""
    name = arguments.get("tool") if tool == INVALID and isinstance(arguments, dict) else None
    return name if isinstance(name, str) and name.strip() else tool


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _reason(error: Exception) -> str:
    """What is wrong with a JSON text, in the words of OpenCode's parser; of one that was cut off, what is missing."""
    if isinstance(error, RecursionError):
        return "the text is nested too deeply"
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    text = error.doc.rstrip()
    brackets, string_start = _unclosed(error.doc)
    if error.pos == string_start and error.msg.startswith("Unterminated string"):
        return "Unterminated string"
    if error.pos < len(text):
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    if not brackets or text[-1] == ":" or (brackets[-1] == "[" and text[-1] in "[,"):
        return "Unexpected EOF"
    return f"Expected '{'}' if brackets[-1] == '{' else ']'}'"


def _unclosed(text: str) -> tuple[list[str], int | None]:
    """The brackets that are open at the end of a JSON text, outermost first, and where a string begins that is open."""
    brackets: list[str] = []
    string_start: int | None = None
    escaped = False
    for index, char in enumerate(text):
        if string_start is not None:
            string_start = string_start if escaped or char != '"' else None
            escaped = char == "\\" and not escaped
        elif char == '"':
            string_start = index
        elif char in "{[":
            brackets.append(char)
        elif char in "}]" and brackets:
            brackets.pop()
    return brackets, string_start
