"""``%tools``: lists tools and calls, checks the installation, undoes changes, deletes old outputs."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import InvalidArgumentsError, ToolError
from ...core.file_changes import ChangedSinceError
from ..cards.labels import project_folder
from ..cards.wording import size
from ..tables import Confirmation, Table, WrappedTable
from .command_line import CommandLine
from .commands import TOOLS
from .help import tool_list
from .history import display_row, local_datetime, read_history
from .tool_preparation import prepare_all

if TYPE_CHECKING:
    from ..notebook import Notebook
    from .tool_line import CallRequest

HISTORY = 20
"""Entries that a history shows by default."""
DAYS = 7.0
"""Days that a spill file is kept."""
MAX_KEYS = 6
"""Keys of one config file that are named."""
_COLUMNS = ("time", "tool", "title", "state", "took", "by")


def run(notebook: Notebook, line: str, agent: str | None = None) -> Any:
    """Run a ``%tools`` line.

    Raises:
        ToolError: there is no such subcommand, or it cannot be done.
    """
    from .trust import trust

    return CommandLine(notebook, TOOLS, line).run({**_HANDLERS, "list": partial(_list, agent), "trust": trust})


def _list(agent: str | None, line: CommandLine) -> Table:
    line.end()
    prepare_all(line.notebook)
    table = tool_list(line.workspace, agent)
    table.notes.append(TOOLS.pointer)
    return table


def _history(line: CommandLine) -> Table:
    scopes = [name for name in ("--project", "--all") if line.flag(name)]
    if len(scopes) > 1:
        raise InvalidArgumentsError(f"--project or --all, not both. {line.usage}")
    limit = line.last_count(HISTORY)
    notebook, workspace, scope = line.notebook, line.workspace, scopes[0] if scopes else ""
    store = workspace.store
    if store is None:
        raise ToolError("This workspace keeps no history (it was opened without a store).")
    folder = str(project_folder(workspace))
    of_folder = folder if scope == "--project" else None
    query = partial(read_history, store, limit, workspace, own=not scope, folder=of_folder, notebook=notebook.path)
    records = notebook.on_engine(query)
    scope_name = "notebook" if notebook.path else "kernel"
    columns = (*_COLUMNS, "folder") if scope == "--all" else _COLUMNS
    title, empty = {
        "": ("", f"No call in this {scope_name} yet. %tools history --project shows those of the whole project."),
        "--project": (f"Calls in {folder}", f"No call in {folder} yet."),
        "--all": ("Calls of all projects", "No call yet."),
    }[scope]
    problem = getattr(store, "problem", None)
    notes = [f"The history is kept in memory only: {problem}"] if problem else []
    return Table(records, columns, title=title, notes=notes, empty=empty, display=[display_row(r) for r in records])


def _doctor(line: CommandLine) -> Table:
    line.end()
    from .doctor import examine

    prepare_all(line.notebook)
    return WrappedTable(examine(line.notebook), ("check", "result", "advice"))


def _reload(line: CommandLine) -> Table:
    """Read the config files again. Running calls keep the rules they began with.

    Raises:
        ConfigError: one cannot be read; what was read before stays in force.
    """
    line.end()
    workspace = line.workspace
    old = dict(workspace.config.sources)
    line.notebook.on_engine(workspace.reload_config)
    config = workspace.config
    rows = []
    for name, data in config.sources:
        keys = [key for key in data if key != "$schema"]
        shown = ", ".join(keys[:MAX_KEYS]) + (f" and {len(keys) - MAX_KEYS} more" if len(keys) > MAX_KEYS else "")
        state = "new" if name not in old else "as before" if old[name] == data else "changed"
        rows.append({"file": name, "sets": shown or "nothing", "now": state})
    removed = [name for name in old if name not in dict(config.sources)]
    rows += [{"file": name, "sets": "", "now": "gone"} for name in removed]
    rules, agents = len(config.permission_rules), len(workspace.agents)
    return Table(
        rows,
        ("file", "sets", "now"),
        title=f"{rules} rules for everyone, {agents} agents.",
        notes=[str(warning) for warning in config.warnings],
        empty="There is no config file.",
    )


def _undo(line: CommandLine) -> Confirmation:
    force, count = line.flag("--force"), line.last_count(1)
    changes = line.workspace.changes
    try:
        undone = line.notebook.on_engine(changes.undo, count, force)
    except ChangedSinceError as error:
        raise ToolError(f"{error}\n%tools undo --force does it anyway.") from None
    rows = [
        {
            "file": _relative(line.workspace.directory, change.path),
            "now": "removed" if change.created else "restored",
            "tool": change.tool,
            "called": local_datetime(change.time_ms),
        }
        for change in undone
    ]
    remaining = len(changes.entries())
    less = f" (there were no more than {len(undone)})" if len(undone) < count else ""
    files = "; ".join(f"{row['file']} {row['now']}" for row in rows)
    title = (
        f"Undid {len(undone)} change{'' if len(undone) == 1 else 's'}{less}: {files}. {remaining} can still be undone."
    )
    return Confirmation(rows, title=title).show()


def _clean(line: CommandLine) -> Table:
    days = -1.0 if line.flag("--all") else DAYS  # -1: also what was written this moment
    line.end()
    truncation = line.workspace.truncation
    before = _spill_sizes(truncation.directory)
    line.notebook.on_engine(truncation.cleanup, days)
    left_files = _spill_sizes(truncation.directory)
    deleted = [size for path, size in before.items() if path not in left_files]
    rows = [
        {"files": "deleted", "count": len(deleted), "size": size(sum(deleted))},
        {"files": "kept", "count": len(left_files), "size": size(sum(left_files.values()))},
    ]
    note = "" if days < 0 else f" Files changed in the last {days:g} days are kept; --all deletes them too."
    return Table(rows, ("files", "count", "size"), title=f"Full outputs in {truncation.directory}.{note}")


def dry_run(notebook: Notebook, request: CallRequest) -> Table:
    """The approvals that a call needs, and the rule that decides each; runs nothing.

    Raises:
        ToolError: the call could not even begin.
    """
    workspace = notebook.workspace
    notebook.follow_folder()

    dry = partial(workspace.dry_run, request.tool, request.arguments, agent=request.agent, by="user")
    rows = []
    for decision in notebook.on_engine(dry):
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


def _relative(directory: Path, path: Path) -> str:
    """A path, relative to the directory where it is below that."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(os.path.realpath(directory)))
    return str(path)


def _spill_sizes(folder: Path) -> dict[str, int]:
    """The spill files and their sizes in bytes."""
    sizes: dict[str, int] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("tool_"):
                with contextlib.suppress(OSError):
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
    return sizes


_HANDLERS = {"history": _history, "doctor": _doctor, "undo": _undo, "clean": _clean, "reload": _reload}
