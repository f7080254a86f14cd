"""The label beside a tool's name on its card: its title once there is one, else its most telling argument."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.call_state import Completed, Pending, Running, ToolPart
from ...core.card_spec import CARDS, PLAIN, TITLE_CHARS, CardSpec, summary_line

if TYPE_CHECKING:
    from ...core.context import ToolContext
    from ...core.tool import Tool
    from ...workspace import Workspace

TELLING = (
    "description", "filePath", "file_path", "command", "pattern", "path", "url", "query", "name", "expression", "tool",
)  # fmt: skip
"""Arguments that a call is recognised by, the most telling first."""

PATH_ARGUMENTS = ("filePath", "file_path", "path")


def card_of(tool: str) -> CardSpec:
    """How the calls of a tool are shown, by its id. A stored call's tool may not have been imported yet."""
    card = CARDS.get(tool)
    if card is None and (make := _importable().get(tool)) is not None:
        card = make().manifest.card
    return card or PLAIN


@cache
def _importable() -> dict[str, Callable[[], Tool]]:
    from ...agent.tools import agent_tools  # here: loading the extension imports no tools
    from ...tools import builtin_tools

    return {**builtin_tools(), **agent_tools()}


def label_of(part: ToolPart, directory: Path | None = None, base: Path | None = None) -> str:
    """A call's label, one line.

    Args:
        part: the call.
        directory: the session's folder, which relative paths in arguments count from.
        base: the project's folder. A file in it has the same name from there in every label, however the arguments or
            the title name it; one outside it its absolute path.
    """
    state = part.state
    arguments = state.input if isinstance(state.input, dict) else {}
    if base is not None:
        arguments = _with_project_paths(part.tool, arguments, directory or base, base)
    card = card_of(part.tool)
    if card.label is not None and (label := card.label(arguments, part)):
        return first_line(label)
    if isinstance(state, (Completed, Running)) and state.title:
        title = str(state.title)
        if base is not None and card.path and title.startswith("../"):  # OpenCode's for a file outside
            title = os.path.normpath(base / title)
        return summary_line(title)
    for value in (*(arguments.get(name) for name in TELLING), *arguments.values()):
        if isinstance(value, (str, int, float)) and str(value).strip():
            return summary_line(str(value))
    return ", ".join(
        name + (f" ({len(value)})" if isinstance(value, (list, dict)) else "") for name, value in arguments.items()
    )[:TITLE_CHARS]


def _with_project_paths(tool: str, arguments: dict[str, Any], directory: Path, base: Path) -> dict[str, Any]:
    """Arguments with the files in the project named from its folder."""
    named = dict(arguments)
    names_files = bool(card_of(tool).path)
    for name in PATH_ARGUMENTS:
        path = arguments.get(name)
        if not isinstance(path, str) or not path or "\0" in path:
            continue
        absolute = os.path.normpath(directory / os.path.expanduser(path))
        if absolute == str(base) or absolute.startswith(str(base).rstrip(os.sep) + os.sep):
            if names_files or os.path.isabs(path):
                named[name] = os.path.relpath(absolute, base)
        elif names_files:
            named[name] = absolute
    if isinstance(arguments.get("patchText"), str):
        named["patchText"] = paths_below(base, arguments["patchText"])
    return named


def paths_below(base: Path | None, text: str) -> str:
    """A text with the files in `base` named from there."""
    if base is None or str(base) == base.anchor or str(base) not in text:
        return text
    return re.sub(rf"(?<![\w./~\\-]){re.escape(str(base))}/(?=[^\s/])", "", text)


def project_folder(context: Workspace | ToolContext) -> Path:
    """The folder that labels name files from: the worktree, or the session's folder where there is none."""
    return context.worktree if str(context.worktree) != context.worktree.anchor else context.directory


def label_of_wire(wire: dict[str, Any], directory: Path | None = None, base: Path | None = None) -> str:
    """The label of a stored call, from its part in wire form; any release may have written it. See `label_of`."""
    try:
        from ...core.messages import part_from_wire  # here: it is for stored calls

        part = part_from_wire(wire)
        return label_of(part, directory, base)  # type: ignore[arg-type]  # only tool parts are asked for
    except (KeyError, TypeError, ValueError, AttributeError):
        state = wire.get("state")
        arguments = state.get("input") if isinstance(state, dict) else None
        return label_for(str(wire.get("tool")), arguments if isinstance(arguments, dict) else {}, directory, base)


def label_for(tool: str, arguments: dict[str, Any], directory: Path | None = None, base: Path | None = None) -> str:
    """The label of a call from its arguments alone. See `label_of`."""
    return label_of(ToolPart("", "", "", "", tool, Pending(arguments)), directory, base)


def first_line(value: Any) -> str:
    """The first line of a text, cut to `TITLE_CHARS`."""
    return str(value).strip().splitlines()[0][:TITLE_CHARS]
