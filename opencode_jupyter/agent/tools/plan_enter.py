"""plan_enter: plan before doing; let the plan agent go on. See docs/opencode/core.md 15.7."""

from __future__ import annotations

from ...core.context import ToolContext
from ...core.result import ToolResult
from ...core.schema import Arguments
from ...tools.builtin import builtin
from . import plan

AGENT = "plan"


class Parameters(Arguments):
    """Nothing."""


@builtin(
    "plan_enter",
    Parameters,
    group="agent",
    effect="notes",
)
async def plan_enter(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Ask to switch to the plan agent."""
    ctx.proceed()
    session = ctx.workspace.sessions.get(ctx.session_id)
    path = plan.shown(ctx.workspace, session)
    await plan.switch(
        ctx,
        AGENT,
        f"Switch to the plan agent first, and save a plan at {path}?",
        "Plan Mode",
        ("The plan agent looks and thinks, and writes nothing but the plan", "Continue with the build agent"),
        f"The user wants a plan first. Work out a plan and write it to {path}; change nothing else.",
    )
    return ToolResult(
        "Switching to plan agent",
        f"The user approved switching to the plan agent. The plan belongs in {path}. Wait for further instructions.",
    )
