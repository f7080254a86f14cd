"""A model's system prompt, put together; the same object again while nothing in it has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..model import ModelInfo, ToolSpec
from .environment import environment
from .forbidden import forbidden
from .instructions import Instructions

if TYPE_CHECKING:
    from ...core.agents import Agent
    from ...core.sessions import Session
    from ...core.workspace import Workspace

KEPT = 128
"""Prompts that are remembered, one for each session and agent."""
IN_THE_KERNEL = frozenset({"python", "inspect"})
"""Tools that work on the user's live variables."""


async def system_prompt(
    workspace: Workspace,
    agent: Agent,
    info: ModelInfo,
    session: Session,
    tools: Sequence[ToolSpec],
    extra: str | None = None,
) -> tuple[str, ...]:
    """The paragraphs of a request's system prompt, the ones that change least first.

    Args:
        workspace: where the model works.
        agent: as whom; its own prompt takes the place of ours.
        info: the model.
        session: whose rules are told.
        tools: what it is offered.
        extra: what the caller adds.

    Returns:
        The same tuple as last time if nothing has changed.
    """
    return await workspace.service(Prompts).of(agent, info, session, tools, extra)


class Prompts:
    """The system prompts of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._last: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()

    async def of(
        self, agent: Agent, info: ModelInfo, session: Session, tools: Sequence[ToolSpec], extra: str | None
    ) -> tuple[str, ...]:
        """See `system_prompt`."""
        workspace = self._workspace
        offered = [tool.name for tool in tools]
        instructions = await workspace.service(Instructions).texts()
        parts = [
            agent.prompt or default_prompt(offered),
            environment(workspace, info),
            *instructions,
            forbidden(workspace, agent, session, offered),
            extra or "",
        ]
        made = tuple(part for part in parts if part.strip())
        key = (session.id, agent.name)
        last = self._last.get(key)
        if last == made:
            made = last
        self._last[key] = made
        self._last.move_to_end(key)
        while len(self._last) > KEPT:
            self._last.popitem(last=False)
        return made


def default_prompt(tools: Sequence[str]) -> str:
    """Our own prompt, for an agent that has none; with a word about the kernel where a tool works in it."""
    return _text("default.md") + ("\n\n" + _text("notebook.md") if IN_THE_KERNEL & set(tools) else "")


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8").strip()
