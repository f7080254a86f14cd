"""Which tools a client sees, and how each is described to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp import types

from ..core.errors import UnknownToolError
from ..core.permission import disabled
from ..core.repair import INVALID
from ..core.wildcard import match

if TYPE_CHECKING:
    from ..core.agents import Agent
    from ..core.tool import Effect, Tool
    from ..workspace import Workspace

OWN_LOOP = frozenset({INVALID, "plan_enter", "plan_exit"})
"""Tools for this package's own model loop: what a bad call becomes, and changes of its agent."""
QUESTION = "question"

HINTS: dict[Effect, types.ToolAnnotations] = {
    "reads": types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    "fetches": types.ToolAnnotations(read_only_hint=True, open_world_hint=True),
    "writes": types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False),
    "acts": types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    "notes": types.ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
}
"""A built-in tool's effect as the protocol describes it. Of other tools nothing is known, so nothing is said."""


class ClientToolFilter:
    """Selects the tools of a workspace for one client.

    Args:
        workspace: whose tools.
        agent: for whom; a tool that all of its rules deny is not listed.
        model: ``provider/model``, for the tools that some models get in place of others.
        requested: names or patterns (``*``, ``?``). Plain ones are listed in place of the usual ones, those after a
            ``+`` beside them, and those after a ``-`` are not.
    """

    def __init__(self, workspace: Workspace, agent: Agent, model: str | None, requested: tuple[str, ...]) -> None:
        self._workspace = workspace
        self._agent = agent
        self._model = model
        self._only = [name for name in requested if name[0] not in "+-"]
        self._more = [name[1:] for name in requested if name[0] == "+"]
        self._less = [name[1:] for name in requested if name[0] == "-"]

    def allows(self, id: str) -> bool:
        """Return whether the requested names let a tool of this id run at all, by itself or inside another call."""
        if _matches(id, self._less):
            return False
        return not self._only or _matches(id, self._only) or _matches(id, self._more)

    def includes(self, id: str, *, questions: bool) -> bool:
        """Return whether a client may call a tool of this id, as far as the registry knows it."""
        return any(tool.id == id for tool in self._selected(questions))

    async def tools(self, *, questions: bool) -> list[types.Tool]:
        """The tools to list; the sources are brought up to date, without asking anybody.

        Args:
            questions: whether the client can put questions to its person.
        """
        registry = self._workspace.registry
        await registry.prepare()
        while True:
            selected = {tool.id: tool for tool in self._selected(questions)}
            try:
                bound = await registry.described(list(selected), self._current_agent)
            except UnknownToolError:  # one was removed in between
                continue
            return [
                types.Tool(
                    name=tool.id,
                    title=tool.id.replace("_", " ").strip().capitalize() or tool.id,
                    description=tool.description,
                    input_schema=tool.parameters,
                    annotations=HINTS.get(selected[tool.id].effect) if selected[tool.id].builtin else None,
                )
                for tool in bound
            ]

    def fingerprint(self) -> tuple[tuple[str, int], ...]:
        """Changes when the list a client has may be out of date."""
        return tuple((tool.id, id(tool)) for tool in self._selected(questions=True))

    @property
    def _current_agent(self) -> Agent:
        """The agent as the configuration has it now."""
        return next((agent for agent in self._workspace.agents.values() if agent.name == self._agent.name), self._agent)

    def _selected(self, questions: bool) -> list[Tool]:
        registry = self._workspace.registry
        usual = {tool.id for tool in registry.offered(self._model)}
        names = registry.names()
        denied = disabled(names, self._current_agent.model_permission)
        selected = []
        for name in names:
            if name in OWN_LOOP or name in denied or (name == QUESTION and not questions) or not self.allows(name):
                continue
            tool = registry.get(name)
            if tool is not None and (name in usual or _matches(name, self._only) or _matches(name, self._more)):
                selected.append(tool)
        return selected


def _matches(id: str, patterns: list[str]) -> bool:
    return any(match(id, pattern) for pattern in patterns)
