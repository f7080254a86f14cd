"""todoread: the session's task list. See docs/opencode/core.md 15.5."""

from __future__ import annotations

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.result import ToolResult
from ..core.schema import Arguments
from .builtin import builtin
from .todowrite import Todos, progress, todo_result


class Parameters(Arguments):
    """Nothing."""


@builtin(
    "todoread",
    Parameters,
    group="agent",
    effect="reads",
    card=CardSpec(body="tasks", label=progress),
)
async def todoread(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Show the session's task list."""
    await ctx.ask("todoread", ["*"], ["*"], {})
    ctx.proceed()
    return todo_result(await ctx.workspace.service(Todos).get(ctx.session_id))
