"""Going over between planning and building: where a session's plan is, the question, what the next agent is told."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...core.context import ToolContext
from ...core.errors import QuestionRejectedError
from ...core.host import ToolHost
from ...core.messages import new_part, user_message
from ...core.question_request import Option, Question
from ...core.sessions import Session

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
    known = session.extra.get("slug")
    if not (isinstance(known, str) and known and Path(known).name == known and known not in (".", "..")):
        number = int.from_bytes(hashlib.sha256(session.id.encode()).digest()[:8], "big")
        known = f"{_FIRST[number % len(_FIRST)]}-{_SECOND[number // len(_FIRST) % len(_SECOND)]}"
        session.extra = {**session.extra, "slug": known}
    return known


def plan_file(workspace: ToolHost, session: Session) -> Path:
    """Where a session's plan belongs: in ``.opencode/plans`` of the worktree, or without git in the data folder."""
    versioned = str(workspace.worktree) != workspace.worktree.anchor
    folder = workspace.worktree / ".opencode" if versioned else workspace.data_dir
    return folder / "plans" / f"{session.created}-{slug(session)}.md"


def shown(workspace: ToolHost, session: Session) -> str:
    """The plan's file as people and models are told of it."""
    return workspace.relative(plan_file(workspace, session))


async def switch(ctx: ToolContext, agent: str, question: str, header: str, choices: tuple[str, str], said: str) -> None:
    """Ask a person whether another agent is to go on, and if so leave it a message.

    Args:
        ctx: the call that wants it.
        agent: who is to go on.
        question: the whole question.
        header: its short name.
        choices: what Yes and No mean.
        said: the message, for the model alone.

    Raises:
        QuestionRejectedError: the person does not want it; the loop ends there.
        ToolError: there is no such agent.
    """
    ctx.workspace.agent(agent)
    options = (Option(YES, choices[0]), Option(NO, choices[1]))
    answers = await ctx.question([Question(question, header, options, custom=False)])
    if answers != [[YES]]:
        raise QuestionRejectedError
    sessions = ctx.workspace.sessions
    session = sessions.get(ctx.session_id)
    if session.run is None:  # called by hand: the next prompt is that agent's
        session.agent = agent
        sessions.save(session)
        return
    message = user_message(session.id, agent, session.model or {"providerID": "", "modelID": ""})
    message.parts.append(new_part(message, "text", text=said, synthetic=True))
    session.run.add(message)
