"""plan_exit: the plan is made; let the build agent carry it out. See docs/opencode/core.md 15.7."""

from __future__ import annotations

from ...core.context import ToolContext
from ...core.result import ToolResult
from ...core.schema import Arguments
from ...tools.builtin import builtin
from . import plan

AGENT = "build"


class Parameters(Arguments):
    """Nothing."""


@builtin(
    "plan_exit",
    Parameters,
    group="agent",
    effect="notes",
)
async def plan_exit(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Ask to carry out the plan."""
    ctx.proceed()
    session = ctx.workspace.sessions.get(ctx.session_id)
    path = plan.shown(ctx.workspace, session)
    there = plan.plan_file(ctx.workspace, session).is_file()
    await plan.switch(
        ctx,
        AGENT,
        f"The plan at {path} is complete. Switch to the build agent and start carrying it out?"
        if there
        else f"Planning is over (nothing was written to {path}). Switch to the build agent and start with the work?",
        "Build Agent",
        ("The build agent continues and changes files", "Stay with the plan agent and work on the plan"),
        (f"The plan in {path} is approved. " if there else "The plan is approved. ")
        + "You may edit files now. Carry out the plan.",
    )
    return ToolResult(
        "Switching to build agent",
        "The user approved switching to the build agent. Wait for further instructions.",
    )
