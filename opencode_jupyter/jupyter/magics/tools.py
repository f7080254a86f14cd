"""``%tools``: the tools there are, what was called, what is wrong here, taking changes back, clearing up."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError, ToolError
from ...core.suggestions import near_names, suggestion
from ..cards.labels import project_folder
from ..tables import Confirmation, Table
from .help import tool_list
from .history import display_row, read_history
from .tool_preparation import ready_all
from .usage import pointer
from .words import words

if TYPE_CHECKING:
    from ...core.permission import Decision
    from ..notebook import Notebook
    from .arguments import CallRequest

HISTORY = 20
"""Calls that ``%tools history`` shows if it is not told how many."""
DAYS = 7.0
"""Days that a spill file is kept."""
_COLUMNS = ("time", "tool", "title", "state", "took", "by")


def run(notebook: Notebook, line: str, agent: str | None = None) -> Any:
    """What a ``%tools`` line asks for.

    Raises:
        ToolError: there is no such subcommand, or it can't be done.
    """
    command, *rest = [w.text if w.key is None else line[w.start : w.end] for w in words(line)] or [""]
    if command == "list":
        _none_left("%tools list", rest)
        command = ""
    if not command:
        ready_all(notebook)
        table = tool_list(notebook.workspace, agent)
        table.notes.append(pointer("%tools"))
        return table
    commands: dict[str, Callable[[Notebook, list[str]], Any]] = {
        "history": history,
        "doctor": doctor,
        "undo": undo,
        "clean": clean,
        "trust": trust,
        "reload": reload,
    }
    if command not in commands:
        raise unknown("%tools", command, ["list", *commands])
    return commands[command](notebook, rest)


def unknown(magic: str, command: str, known: Any) -> InvalidArgumentsError:
    """The error for a subcommand that is not there."""
    near = [f"{magic} {name}" for name in near_names(command, known)]
    hint = suggestion(near) or f" There are {', '.join(known)}."
    return InvalidArgumentsError(f"{magic} has no subcommand {command}.{hint}")


def history(notebook: Notebook, rest: list[str]) -> Table:
    """``%tools history [N] [--project | --all]``: the last calls, the newest last."""
    scopes = [word for word in rest if word in ("--project", "--all")]
    numbers = [word for word in rest if word not in scopes]
    if len(set(scopes)) > 1 or any(word.startswith("-") for word in numbers):
        raise InvalidArgumentsError(f"%tools history takes a number, and --project or --all, not {' '.join(rest)}.")
    limit = count_of("%tools history", numbers, HISTORY)
    workspace, scope = notebook.workspace, scopes[0] if scopes else ""
    store = workspace.store
    if store is None:
        raise ToolError("This workspace keeps no history (it was opened without a store).")
    folder = str(project_folder(workspace))
    of_folder = folder if scope == "--project" else None
    query = partial(read_history, store, limit, workspace, own=not scope, folder=of_folder, notebook=notebook.path)
    records = notebook.on_engine(query)
    here = "notebook" if notebook.path else "kernel"
    columns = (*_COLUMNS, "folder") if scope == "--all" else _COLUMNS
    title, empty = {
        "": ("", f"No call in this {here} yet. %tools history --project shows those of the whole project."),
        "--project": (f"Calls in {folder}", f"No call in {folder} yet."),
        "--all": ("Calls of all projects", "No call yet."),
    }[scope]
    problem = getattr(store, "problem", None)
    notes = [f"The history is kept in memory only: {problem}"] if problem else []
    return Table(records, columns, title=title, notes=notes, empty=empty, display=[display_row(r) for r in records])


def doctor(notebook: Notebook, rest: list[str]) -> Table:
    """``%tools doctor``."""
    _none_left("%tools doctor", rest)
    ready_all(notebook)
    return Table(notebook.doctor(), ("check", "result", "advice"), whole=True)


def reload(notebook: Notebook, rest: list[str]) -> Table:
    """``%tools reload``."""
    from .reload import reload as read_again

    _none_left("%tools reload", rest)
    return read_again(notebook)


def undo(notebook: Notebook, rest: list[str]) -> Confirmation:
    """``%tools undo [N] [--force]``."""
    force = "--force" in rest
    count = count_of("%tools undo", [r for r in rest if r != "--force"], 1)
    changes = notebook.workspace.changes
    try:
        done = notebook.on_engine(changes.undo, count, force)
    except ToolError as error:
        advice = "\n%tools undo --force does it anyway." if "force" in str(error) else ""
        raise ToolError(f"{error}{advice}") from None
    rows = [
        {
            "file": shown_path(notebook, change.path),
            "now": "removed" if change.created else "restored",
            "tool": change.tool,
            "called": datetime.fromtimestamp(change.time_ms / 1000).replace(microsecond=0),  # noqa: DTZ006
        }
        for change in done
    ]
    left = len(changes.entries())
    less = f" (there were no more than {len(done)})" if len(done) < count else ""
    files = "; ".join(f"{row['file']} {row['now']}" for row in rows)
    title = f"Undid {_counted(len(done), 'change')}{less}: {files}. {left} can still be undone."
    return Confirmation(rows, title=title).show()


def clean(notebook: Notebook, rest: list[str]) -> Table:
    """``%tools clean [--days N] [--all]``."""
    days = DAYS
    words_left = list(rest)
    while words_left:
        word = words_left.pop(0)
        if word == "--all":
            days = -1.0  # also what was written this moment
        elif word == "--days" or word.startswith("--days="):
            text = word.partition("=")[2] or (words_left.pop(0) if words_left else "")
            days = _days(text)
        else:
            raise InvalidArgumentsError(f"%tools clean takes --days N or --all, not {word}.")
    truncation = notebook.workspace.truncation
    before = _spilled(truncation.directory)
    notebook.on_engine(truncation.cleanup, days)
    after = _spilled(truncation.directory)
    gone = [size for path, size in before.items() if path not in after]
    rows = [
        {"files": "deleted", "count": len(gone), "size": _size(sum(gone))},
        {"files": "kept", "count": len(after), "size": _size(sum(after.values()))},
    ]
    kept = "" if days < 0 else f" Files changed in the last {days:g} days are kept; --all deletes them too."
    return Table(rows, ("files", "count", "size"), title=f"Full outputs in {truncation.directory}.{kept}")


def trust(notebook: Notebook, rest: list[str]) -> Table:
    """``%tools trust``."""
    from . import trust as trust_code

    return trust_code.trust(notebook, rest)


def dry_run(notebook: Notebook, request: CallRequest) -> Table:
    """What a call would be asked, and which rule decides each; runs nothing.

    Raises:
        ToolError: the call could not even begin.
    """
    workspace = notebook.workspace
    if workspace.directory != Path.cwd():
        notebook.on_engine(workspace.change_directory, Path.cwd())

    async def judge() -> list[Decision]:
        options = {"agent": request.agent, "by": "user"}
        return await workspace.dry_run(request.tool, request.arguments, **options)

    rows = []
    for decision in notebook.on_engine(judge):
        for pattern, rule in zip(decision.patterns, decision.rules, strict=False):
            rows.append(
                {
                    "permission": decision.permission,
                    "pattern": pattern,
                    "action": rule.action,
                    "rule": f"{rule.permission} {rule.pattern} {rule.action}",
                    "origin": rule.origin,
                }
            )
    actions = {row["action"] for row in rows}
    verdict = "be denied" if "deny" in actions else "need approval" if "ask" in actions else "be allowed"
    return Table(
        rows,
        ("permission", "pattern", "action", "rule", "origin"),
        title=f"{request.tool} would {verdict}; nothing was run.",
        empty="It needs no permission.",
    )


def shown_path(notebook: Notebook, path: Path) -> str:
    """A path as short as it can be said from here."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(os.path.realpath(notebook.workspace.directory)))
    return str(path)


def count_of(magic: str, rest: list[str], default: int) -> int:
    """The number behind a subcommand, `default` if there is none."""
    if not rest:
        return default
    if len(rest) > 1 or not re.fullmatch(r"[0-9]{1,9}", rest[0]) or int(rest[0]) == 0:
        raise InvalidArgumentsError(f"{magic} takes a whole number above 0, not {' '.join(rest)}.")
    return int(rest[0])


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < 1e6:
        raise InvalidArgumentsError(f"--days takes a number of days, not {text or 'nothing'}.")
    return days


def _none_left(magic: str, rest: list[str]) -> None:
    if rest:
        raise InvalidArgumentsError(f"{magic} takes no arguments, not {' '.join(rest)}.")


def _spilled(folder: Path) -> dict[str, int]:
    """The spill files and their sizes in bytes."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("tool_"):
                with contextlib.suppress(OSError):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_size
    return found


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
