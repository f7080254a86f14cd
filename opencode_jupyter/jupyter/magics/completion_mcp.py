"""Completion in ``%mcp``: sub-commands, servers and options. Asks no server anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .mcp import COMMANDS

if TYPE_CHECKING:
    from ..notebook import Notebook

Choice = tuple[str, str]

_OPTIONS = {
    "add": ("--header", "--env", "--sse", "--timeout", "--save", "--global"),
    "remove": ("--save",),
    "auth": ("--code", "--forget", "--no-wait"),
    "logs": ("-n",),
}
_ONE_SERVER = frozenset(COMMANDS) - {"list", "add"}
_VALUED = frozenset({"--header", "--env", "--timeout", "--code", "-n"})


def choices_of(notebook: Notebook, before: list[str], word: str) -> list[Choice]:
    """What may stand at a place.

    Args:
        notebook: whose servers.
        before: the words before it.
        word: what is typed of it.
    """
    if not before:
        return [(name, "keyword") for name in COMMANDS if name.startswith(word)]
    command, rest = before[0], before[1:]
    if rest and rest[-1] in _VALUED:
        return []
    if command == "add" and "--" in rest:
        return []
    if word.startswith("-"):
        return [(name, "option") for name in _OPTIONS.get(command, ()) if name.startswith(word)]
    given = [
        one
        for place, one in enumerate(rest)
        if not one.startswith("-") and (not place or rest[place - 1] not in _VALUED)
    ]
    if command not in _ONE_SERVER or given:
        return []
    from ...mcp import McpServers

    mark = "/" if command == "prompt" else ""
    names = notebook.workspace.service(McpServers).specs()
    return [(name + mark, "module") for name in names if name.startswith(word)]
