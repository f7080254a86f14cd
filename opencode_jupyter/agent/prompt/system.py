"""A model's system prompt, put together; the same object again while nothing in it has changed."""

from __future__ import annotations

import datetime
import platform
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.permission.modes import mode_of
from ..model import ModelInfo, ToolSpec
from .instructions import Instructions
from .rules import describe_rules, model_rules

if TYPE_CHECKING:
    from ...core.agents import Agent
    from ...core.host import ToolHost
    from ...core.sessions import Session

T = TypeVar("T")

CACHE_SIZE = 128
"""Prompts that are remembered, one for each session and agent."""
IN_THE_KERNEL = frozenset({"python", "inspect"})
"""The tools that ``notebook.md`` is about."""


async def system_prompt(
    workspace: ToolHost,
    agent: Agent,
    info: ModelInfo,
    session: Session,
    tools: Sequence[ToolSpec],
    extra: str | None = None,
) -> tuple[str, ...]:
    """The paragraphs of a request's system prompt, the ones that change least first.

    The agent's own prompt takes the place of the default; `extra` is what the caller adds.

    Returns:
        The same tuple as last time if nothing has changed.
    """
    return await workspace.service(SystemPrompts).build(agent, info, session, tools, extra)


class SystemPrompts:
    """The system prompts of one workspace."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._last_prompts: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()
        self._rule_texts: OrderedDict[tuple[str, str], tuple[list[Any], str]] = OrderedDict()

    async def build(
        self, agent: Agent, info: ModelInfo, session: Session, tools: Sequence[ToolSpec], extra: str | None
    ) -> tuple[str, ...]:
        """See `system_prompt`."""
        workspace = self._workspace
        tool_names = [tool.name for tool in tools]
        begins = not session.messages or session.messages[-1].role == "user"
        instructions = await workspace.service(Instructions).texts(at_once=begins)
        parts = [
            agent.prompt or default_prompt(tool_names),
            environment(workspace, info),
            *instructions,
            self._rules(agent, session, tool_names),
            extra or "",
        ]
        paragraphs = tuple(part for part in parts if part.strip())
        key = (session.id, agent.name)
        last = self._last_prompts.get(key)
        if last == paragraphs:
            paragraphs = last
        _remember(self._last_prompts, key, paragraphs)
        return paragraphs

    def _rules(self, agent: Agent, session: Session, tool_names: list[str]) -> str:
        """The paragraph on the rules; rewritten only when one of them has changed."""
        workspace = self._workspace
        rules = model_rules(workspace, agent, session)
        mode = mode_of(workspace, session)
        now = [rules, list(workspace.permissions.approved), tool_names, workspace.registry.names(), mode]
        key = (session.id, agent.name)
        cached = self._rule_texts.get(key)
        if cached is None or cached[0] != now:
            cached = (now, describe_rules(workspace, agent, session, tool_names))
            _remember(self._rule_texts, key, cached)
        return cached[1]


def _remember(cache: OrderedDict[tuple[str, str], T], key: tuple[str, str], value: T) -> None:
    cache[key] = value
    cache.move_to_end(key)
    while len(cache) > CACHE_SIZE:
        cache.popitem(last=False)


def default_prompt(tools: Sequence[str]) -> str:
    """Our own prompt, for an agent that has none; with a word about the kernel where a tool works in it."""
    return _text("default.md") + ("\n\n" + _text("notebook.md") if IN_THE_KERNEL & set(tools) else "")


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8").strip()


def environment(workspace: ToolHost, info: ModelInfo, today: datetime.date | None = None) -> str:
    """The folder, the project, the platform, the date and the model's name."""
    day = today or datetime.datetime.now().astimezone().date()
    versioned = str(workspace.worktree) != workspace.worktree.anchor
    project = f"a git repository with its top in {workspace.worktree}" if versioned else "not under git"
    name = f"{info.name} ({info.full})" if info.name and info.name != info.model else info.full
    return "\n".join(
        [
            "Where you are:",
            f"- Working folder: {workspace.directory} ({project}); relative paths start there",
            f"- Platform: {_platform()}",
            f"- Date: {day:%Y-%m-%d}, {day:%A}",
            f"- Model: {name}",
        ]
    )


@cache
def _platform() -> str:
    return f"{platform.system() or 'unknown'} {platform.machine()}, Python {platform.python_version()}"
