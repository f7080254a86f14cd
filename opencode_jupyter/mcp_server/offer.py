"""Which tools a client is offered, and how each is described to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp import types

from ..core.errors import UnknownToolError
from ..core.permission import disabled
from ..core.repair import INVALID
from ..core.wildcard import match

if TYPE_CHECKING:
    from ..core.agents import Agent
    from ..core.tool import Bound, Tool
    from ..core.workspace import Workspace

SENSELESS = frozenset({INVALID, "plan_enter", "plan_exit"})
"""Tools for this package's own model loop: what a bad call becomes, and changes of its agent."""
QUESTION = "question"

READS, READS_WEB, WRITES, ACTS, NOTES = (
    types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    types.ToolAnnotations(read_only_hint=True, open_world_hint=True),
    types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False),
    types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    types.ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
)
HINTS = {
    **dict.fromkeys(("read", "glob", "grep", "list", "codesearch", "lsp", "skill", "todoread", "notebook_read"), READS),
    **dict.fromkeys(("webfetch", "websearch"), READS_WEB),
    **dict.fromkeys(("edit", "write", "multiedit", "apply_patch", "notebook_edit"), WRITES),
    **dict.fromkeys(("bash", "batch", "task"), ACTS),
    **dict.fromkeys(("todowrite", QUESTION), NOTES),
}
"""What our built-in tools do, as the protocol hints at it. Of others nothing is known, so nothing is said."""


class Offer:
    """Chooses the tools of a workspace for one client.

    Args:
        workspace: whose tools.
        agent: for whom; a tool that all of its rules deny is not offered.
        model: ``provider/model``, for the tools that some models get in place of others.
        wanted: names or patterns (``*``, ``?``). Plain ones are offered in place of the usual ones, those after a ``+``
            beside them, and those after a ``-`` are not.
    """

    def __init__(self, workspace: Workspace, agent: Agent, model: str | None, wanted: tuple[str, ...]) -> None:
        self._workspace = workspace
        self._agent = agent
        self._model = model
        self._only = [name for name in wanted if name[0] not in "+-"]
        self._more = [name[1:] for name in wanted if name[0] == "+"]
        self._less = [name[1:] for name in wanted if name[0] == "-"]

    def allows(self, id: str) -> bool:
        """Return whether the choice of names lets a tool of this id run at all, by itself or inside another call."""
        if _any(id, self._less):
            return False
        return not self._only or _any(id, self._only) or _any(id, self._more)

    def includes(self, id: str, *, questions: bool) -> bool:
        """Return whether a client may call a tool of this id, as far as the registry knows it."""
        return any(one.id == id for one in self._chosen(questions))

    async def tools(self, *, questions: bool) -> list[Bound]:
        """The tools to list, for this agent; the sources are brought up to date, without asking anybody.

        Args:
            questions: whether the client can put questions to its person.
        """
        registry = self._workspace.registry
        await registry.prepare()
        while True:
            try:
                return await registry.described([one.id for one in self._chosen(questions)], self._current)
            except UnknownToolError:  # one went away in between
                continue

    def fingerprint(self) -> tuple[tuple[str, int], ...]:
        """Changes when the list a client has may be out of date."""
        return tuple((one.id, id(one)) for one in self._chosen(questions=True))

    @property
    def _current(self) -> Agent:
        """The agent as the configuration has it now."""
        return next((one for one in self._workspace.agents.values() if one.name == self._agent.name), self._agent)

    def _chosen(self, questions: bool) -> list[Tool]:
        registry = self._workspace.registry
        usual = {one.id for one in registry.offered(self._model)}
        names = registry.names()
        denied = disabled(names, self._current.model_permission)
        chosen = []
        for name in names:
            if name in SENSELESS or name in denied or (name == QUESTION and not questions) or not self.allows(name):
                continue
            one = registry.get(name)
            if one is not None and (name in usual or _any(name, self._only) or _any(name, self._more)):
                chosen.append(one)
        return chosen


def described(bound: Bound, builtin: bool) -> types.Tool:
    """A tool as the protocol lists it: our own name, description and schema."""
    title = bound.id.replace("_", " ").strip().capitalize() or bound.id
    return types.Tool(
        name=bound.id,
        title=title,
        description=bound.description,
        input_schema=bound.parameters,
        annotations=HINTS.get(bound.id) if builtin else None,
    )


def _any(id: str, patterns: list[str]) -> bool:
    return any(match(id, pattern) for pattern in patterns)
