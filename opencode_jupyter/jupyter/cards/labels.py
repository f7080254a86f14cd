"""What stands beside a tool's name on its card: its title once there is one, else the argument that tells most."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.descriptions import CHARS, PREPARES, telling_line
from ...core.repair import INVALID
from ...core.state import Completed, Pending, Running, ToolPart

if TYPE_CHECKING:
    from ...core.context import ToolContext
    from ...workspace import Workspace

TELLING = (
    "description", "filePath", "file_path", "command", "pattern", "path", "url", "query", "name", "expression", "tool",
)  # fmt: skip
"""Arguments that say what a call is about, the most telling first."""

PATH_ARGUMENTS = ("filePath", "file_path", "path")
FILE_TOOLS = ("read", "edit", "multiedit", "write", "list", "lsp", "notebook_read", "notebook_edit")
"""Tools whose path arguments, and titles, are files' paths."""

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)


def label_of(part: ToolPart, directory: Path | None = None, base: Path | None = None) -> str:
    """One line that says what the call is about.

    Args:
        part: the call.
        directory: the session's folder, which relative paths in arguments count from.
        base: the project's folder. A file in it has the same name from there in every label, however the arguments or
            the title name it; one outside it its absolute path.
    """
    state = part.state
    given = state.input if isinstance(state.input, dict) else {}
    if base is not None:
        given = _with_project_paths(part.tool, given, directory or base, base)
    own = _OWN.get(part.tool)
    if own is not None:
        label = own(given, part)
        if label:
            return label
    if isinstance(state, (Completed, Running)) and state.title:
        title = str(state.title)
        if base is not None and part.tool in FILE_TOOLS and title.startswith("../"):  # OpenCode's for a file outside
            title = os.path.normpath(base / title)
        return telling_line(title)
    for value in (*(given.get(name) for name in TELLING), *given.values()):
        if isinstance(value, (str, int, float)) and str(value).strip():
            return telling_line(str(value))
    return _held(given)


def _with_project_paths(tool: str, given: dict[str, Any], directory: Path, base: Path) -> dict[str, Any]:
    """Arguments with the files in the project named from its folder."""
    found = dict(given)
    for name in PATH_ARGUMENTS:
        path = given.get(name)
        if not isinstance(path, str) or not path or "\0" in path:
            continue
        absolute = os.path.normpath(directory / os.path.expanduser(path))
        if absolute == str(base) or absolute.startswith(str(base).rstrip(os.sep) + os.sep):
            if tool in FILE_TOOLS or os.path.isabs(path):
                found[name] = os.path.relpath(absolute, base)
        elif tool in FILE_TOOLS:
            found[name] = absolute
    if tool == "apply_patch" and isinstance(given.get("patchText"), str):
        found["patchText"] = paths_below(base, given["patchText"])
    return found


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
        given = state.get("input") if isinstance(state, dict) else None
        return label_for(str(wire.get("tool")), given if isinstance(given, dict) else {}, directory, base)


def label_for(tool: str, given: dict[str, Any], directory: Path | None = None, base: Path | None = None) -> str:
    """The label of a call of which no more is known than its arguments. See `label_of`."""
    return label_of(ToolPart("", "", "", "", tool, Pending(given)), directory, base)


def _held(given: dict[str, Any]) -> str:
    """Arguments that are no text, by name and how many things each holds: ``rows (3), options (2)``."""
    counts = ((name, f" ({len(value)})" if isinstance(value, (list, dict)) else "") for name, value in given.items())
    return ", ".join(name + count for name, count in counts)[:CHARS]


def first_line(value: Any) -> str:
    """The first line of a text, cut to `CHARS`."""
    return str(value).strip().splitlines()[0][:CHARS]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _list(given: dict[str, Any], name: str) -> list[Any]:
    value = given.get(name)
    return value if isinstance(value, list) else []


def _apply_patch(given: dict[str, Any], part: ToolPart) -> str:
    """The files of a patch; OpenCode's title is the whole output."""
    metadata = part.state.metadata if isinstance(part.state, Completed) else None
    files = [f for f in (metadata or {}).get("files") or [] if isinstance(f, dict)]
    names = [str(f.get("relativePath") or f.get("filePath") or "") for f in files]
    if not names:
        patch = given.get("patchText", given.get("patch_text"))
        names = _PATCHED.findall(patch) if isinstance(patch, str) else []
    return names[0][:CHARS] if len(names) == 1 else _count(len(names), "file") if names else ""


def _batch(given: dict[str, Any], part: ToolPart) -> str:
    calls = _list(given, "tool_calls") or _list(given, "toolCalls")
    if not calls:
        return ""
    return _count(len(calls), "call")


def _question(given: dict[str, Any], part: ToolPart) -> str:
    asked = [q for q in _list(given, "questions") if isinstance(q, dict)]
    headers = [str(q.get("header") or q.get("question") or "").strip() for q in asked]
    return ", ".join(filter(None, headers))[:CHARS]


def _todos(given: dict[str, Any], part: ToolPart) -> str:
    """How many are done; OpenCode's title counts those that are left."""
    todos = (part.state.metadata or {}).get("todos") if isinstance(part.state, Completed) else given.get("todos")
    if not isinstance(todos, list):
        return ""
    done = sum(isinstance(t, dict) and t.get("status") == "completed" for t in todos)
    return f"{done} of {_count(len(todos), 'task')} done" if todos else "no tasks"


def _lsp(given: dict[str, Any], part: ToolPart) -> str:
    """OpenCode's title without the editor's arguments repeated: ``goToDefinition src/a.py:3:7``."""
    title = getattr(part.state, "title", None)
    if title:
        return str(title)
    operation, path = given.get("operation"), given.get("filePath", given.get("file_path"))
    if not isinstance(operation, str) or not isinstance(path, str):
        return ""
    return f"{operation} {path}:{given.get('line', 1)}:{given.get('character', 1)}"[:CHARS]


def _folder(given: dict[str, Any], part: ToolPart) -> str:
    """OpenCode's title says nothing of the project's own folder."""
    path = given.get("path")
    return str(getattr(part.state, "title", None) or (path if isinstance(path, str) else "") or ".")[:CHARS]


def _webfetch(given: dict[str, Any], part: ToolPart) -> str:
    url = given.get("url")
    title = getattr(part.state, "title", None)
    return str(title or (first_line(url) if isinstance(url, str) and url.strip() else ""))


def _notebook(given: dict[str, Any], part: ToolPart) -> str:
    """The notebook, and which of its cells."""
    title = getattr(part.state, "title", None)
    path = next((given[k] for k in ("filePath", "file_path", "path", "notebook") if isinstance(given.get(k), str)), "")
    return str(title or (os.path.basename(path.rstrip("/")) if os.path.isabs(path) else path))


def _code(given: dict[str, Any], part: ToolPart) -> str:
    """Its title, unless that is an import or another line that tells little."""
    title, code = str(getattr(part.state, "title", None) or ""), given.get("code")
    if title and not PREPARES.match(title):
        return title
    return telling_line(code) if isinstance(code, str) else title


_OWN: dict[str, Callable[[dict[str, Any], ToolPart], str]] = {
    "apply_patch": _apply_patch,
    "batch": _batch,
    "question": _question,
    "todowrite": _todos,
    "todoread": _todos,
    "list": _folder,
    "lsp": _lsp,
    "webfetch": _webfetch,
    "notebook_read": _notebook,
    "notebook_edit": _notebook,
    "python": _code,
    INVALID: lambda given, part: "invalid call",
}
"""By the tool's id: its own label; empty leaves it to the rule for all."""
