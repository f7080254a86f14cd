"""inspect: describe a variable of the user's kernel, or list them all, without running their code."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...core.context import ToolContext
from ...core.result import PRINTED, TABLES, ToolResult
from ...core.schema import Arguments
from ...core.tool import Tool
from ...tools.builtin import builtin
from .describe import describe, size_of
from .pandas_numpy import grid
from .short_values import ROOM, short_or_hidden
from .type_inspection import type_name
from .variable_paths import resolve

if TYPE_CHECKING:
    from ...core.host import ToolHost
    from ..notebook import Notebook

LISTED = 300
"""Variables that a list holds."""


class Parameters(Arguments):
    """Which variable."""

    name: str | None = Field(
        default=None,
        description="The variable, or a path into one such as df.columns or d['a'][0]; leave it out to list them all",
    )
    rows: int = Field(default=5, ge=1, le=100, description="How many rows or items of the value to show")


def inspect_tool(notebook: Notebook) -> Tool:
    """The tool, for one notebook."""
    shell = notebook.shell

    @builtin(
        "inspect",
        Parameters,
        group="notebook",
        effect="reads",
        example="%tool inspect",
    )
    async def inspect(args: Parameters, ctx: ToolContext) -> ToolResult:
        """Describe a variable, or list them."""
        name = (args.name or "").strip()
        await ctx.ask("inspect", [name or "*"], ["*"], {"name": name})
        ctx.proceed()
        # On the main thread: what no cell changes meanwhile is described as it is.
        work = (lambda: _describe_variable(shell, name, args.rows)) if name else (lambda: _list_variables(shell))
        future = notebook.engine.on_main(ctx.call_id, work)
        try:
            result: ToolResult = await asyncio.wrap_future(future)
        finally:
            future.cancel()
        return result

    def completions(workspace: ToolHost, parameter: str) -> list[str]:
        return variables(shell) if parameter == "name" else []

    inspect.completions = completions
    return inspect


def variables(shell: Any) -> list[str]:
    """The names of the user's variables, sorted: those that they made, not IPython's."""
    hidden = shell.user_ns_hidden
    names = []
    for name, value in list(shell.user_ns.items()):
        if type(name) is not str or name.startswith("_") or (name in hidden and hidden[name] is value):
            continue
        if name not in ("In", "Out", "exit", "quit", "get_ipython"):
            names.append(name)
    return sorted(names)


def _describe_variable(shell: Any, path: str, rows: int) -> ToolResult:
    value = resolve(path, shell.user_ns)
    last = path.rpartition(".")[2].rpartition("[")[2].strip("]'\" ")
    description = describe(value, name=last, rows=rows)
    size = f" ({description.size})" if description.size else ""
    metadata: dict[str, Any] = {"type": description.type, "size": description.size}
    lines = [f"{path}: {description.type}{size}", *description.lines]
    if description.table is not None:
        metadata |= {TABLES: [description.table], PRINTED: "\n".join(lines[: description.printed + 1])}
    return ToolResult(
        f"{path}: {description.type}",
        "\n".join(lines),
        metadata,
        records=description.records or None,
    )


def _row(name: str, value: Any) -> dict[str, Any]:
    kind = type_name(type(value))
    try:
        return {"type": kind, "size": size_of(value), "value": short_or_hidden(name, value, ROOM)}
    except Exception as error:  # one odd object must not hide the others
        return {"type": kind, "size": "", "value": f"(can't be described: {type(error).__name__})"}


def _list_variables(shell: Any) -> ToolResult:
    names = variables(shell)
    records = [{"name": name, **_row(name, shell.user_ns.get(name))} for name in names[:LISTED]]
    rows = [["name", "type", "size", "value"], *([*map(str, record.values())] for record in records)]
    lines = [line[2:] for line in grid(rows)] if records else ["The user has made no variables yet."]
    if len(names) > LISTED:
        lines.append(f"… {len(names) - LISTED} more")
    title = f"{len(names)} variable{'' if len(names) == 1 else 's'}"
    metadata: dict[str, Any] = {"count": len(names)}
    if records:
        table = {"name": "", "columns": rows[0], "rows": rows[1:], "total": len(names), "index": 1}
        metadata |= {TABLES: [table], PRINTED: ""}
    return ToolResult(title, "\n".join(lines), metadata, records=records)
