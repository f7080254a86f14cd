"""plan_enter and plan_exit: ask a person whether the plan or the build agent continues (docs/opencode/core.md 15.7)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...core.context import ToolContext
from ...core.errors import QuestionRejectedError
from ...core.host import ToolHost
from ...core.messages import new_part, user_message
from ...core.question_request import Choice, Question
from ...core.result import ToolResult
from ...core.schema import Arguments
from ...core.sessions import Session
from ...tools.builtin import builtin

YES, NO = "Yes", "No"
_FIRST = (
    *("amber", "brisk", "calm", "clear", "deep", "early", "fair", "gentle", "grand", "keen", "light", "lively"),
    *("mellow", "neat", "noble", "plain", "quick", "quiet", "royal", "sharp", "silver", "steady", "sunny", "vivid"),
)
_SECOND = (
    *("anchor", "beacon", "bridge", "canyon", "comet", "delta", "engine", "falcon", "forest", "garden", "harbor"),
    *("island", "lantern", "meadow", "mirror", "orchard", "pebble", "planet", "river", "rocket", "summit", "valley"),
)


def slug(session: Session) -> str:
    """A session's name in file names: two words, always the same; kept in its info as OpenCode does."""
    name = session.extra.get("slug")
    if not (isinstance(name, str) and name and Path(name).name == name and name not in (".", "..")):
        number = int.from_bytes(hashlib.sha256(session.id.encode()).digest()[:8], "big")
        name = f"{_FIRST[number % len(_FIRST)]}-{_SECOND[number // len(_FIRST) % len(_SECOND)]}"
        session.extra = {**session.extra, "slug": name}
    return name


def plan_file(workspace: ToolHost, session: Session) -> Path:
    """The path of a session's plan: in ``.opencode/plans`` of the worktree, or without git in the data folder."""
    versioned = str(workspace.worktree) != workspace.worktree.anchor
    folder = workspace.worktree / ".opencode" if versioned else workspace.data_dir
    return folder / "plans" / f"{session.created}-{slug(session)}.md"


def plan_path(workspace: ToolHost, session: Session) -> str:
    """The plan's file as people and models read it."""
    return workspace.relative(plan_file(workspace, session))


class Parameters(Arguments):
    """Nothing."""


@builtin("plan_enter", Parameters, group="agent", effect="notes")
async def plan_enter(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Ask to switch to the plan agent."""
    ctx.proceed()
    path = plan_path(ctx.workspace, ctx.workspace.sessions.get(ctx.session_id))
    question = Question(
        f"Switch to the plan agent first, and save a plan at {path}?",
        "Plan Mode",
        (
            Choice(YES, "The plan agent looks and thinks, and writes nothing but the plan"),
            Choice(NO, "Continue with the build agent"),
        ),
        custom=False,
    )
    message = f"The user wants a plan first. Work out a plan and write it to {path}; change nothing else."
    await _switch(ctx, "plan", question, message)
    return ToolResult(
        "Switching to plan agent",
        f"The user approved switching to the plan agent. The plan belongs in {path}. Wait for further instructions.",
    )


@builtin("plan_exit", Parameters, group="agent", effect="notes")
async def plan_exit(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Ask to carry out the plan."""
    ctx.proceed()
    session = ctx.workspace.sessions.get(ctx.session_id)
    path = plan_path(ctx.workspace, session)
    text = f"Planning is over (nothing was written to {path}). Switch to the build agent and start with the work?"
    message = "The plan is approved. You may edit files now. Carry out the plan."
    if plan_file(ctx.workspace, session).is_file():
        text = f"The plan at {path} is complete. Switch to the build agent and start carrying it out?"
        message = f"The plan in {path} is approved. You may edit files now. Carry out the plan."
    question = Question(
        text,
        "Build Agent",
        (
            Choice(YES, "The build agent continues and changes files"),
            Choice(NO, "Stay with the plan agent and work on the plan"),
        ),
        custom=False,
    )
    await _switch(ctx, "build", question, message)
    return ToolResult(
        "Switching to build agent",
        "The user approved switching to the build agent. Wait for further instructions.",
    )


async def _switch(ctx: ToolContext, agent: str, question: Question, text: str) -> None:
    """Ask a person whether another agent continues; if so, leave it a message for its model.

    Raises:
        QuestionRejectedError: the person declined; the loop ends there.
        ToolError: there is no such agent.
    """
    ctx.workspace.agent(agent)
    answers = await ctx.question([question])
    if answers != [[YES]]:
        raise QuestionRejectedError
    sessions = ctx.workspace.sessions
    session = sessions.get(ctx.session_id)
    if session.run is None:  # called by hand: the next prompt is that agent's
        session.agent = agent
        sessions.save(session)
        return
    message = user_message(session.id, agent, session.model or {"providerID": "", "modelID": ""})
    message.parts.append(new_part(message, "text", text=text, synthetic=True))
    session.run.add(message)
