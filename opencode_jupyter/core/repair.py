"""Mends calls that name a tool or its arguments wrongly (docs/opencode/core.md 7.2).

A wrongly-cased name (``Read``, ``BASH``) is put right for everyone. What a model calls and what can't be mended becomes
a call of the `invalid` tool, whose output tells the model what was wrong: its turn goes on.
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
    """The id of the tool that is meant if only the case of `name` is wrong; else `name` as it is."""
    if not isinstance(name, str) or registry.get(name) is not None:
        return name
    lowered = name.lower()
    if registry.get(lowered) is not None:
        return lowered
    alike = [known for known in registry.names() if known.lower() == lowered]
    return alike[0] if len(alike) == 1 else name


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
    """The call of ``invalid`` that says why a call of `name` can't be made."""
    return INVALID, {"tool": name, "error": error}


def requested_tool(tool: str, arguments: Any) -> str:
    """The tool that a call asked for; of a call of `invalid`, the one that its arguments name."""
    name = arguments.get("tool") if tool == INVALID and isinstance(arguments, dict) else None
    return name if isinstance(name, str) and name.strip() else tool


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _reason(error: Exception) -> str:
    """What is wrong with a JSON text; of one that was cut off, what would have to come, in the words of OpenCode's."""
    if isinstance(error, RecursionError):
        return "the text is nested too deeply"
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    if error.msg.startswith("Unterminated string"):
        return "Unterminated string"
    if error.pos < len(error.doc.rstrip()):
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    inside = _open_brackets(error.doc)
    if error.msg == "Expecting value" or not inside:
        return "Unexpected EOF"
    return f"Expected '{'}' if inside[-1] == '{' else ']'}'"


def _open_brackets(text: str) -> list[str]:
    """The brackets that are open at the end of a JSON text, outermost first."""
    inside: list[str] = []
    quoted = escaped = False
    for char in text:
        if quoted:
            quoted = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "{[":
            inside.append(char)
        elif char in "}]" and inside:
            inside.pop()
    return inside
