"""The tools available to a model at a step, and how its calls are resolved (docs/opencode/core.md 6, 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.permission import Rule
from ..core.repair import INVALID, repair
from ..core.tool import Bound, Tool
from .model import ModelInfo, ToolSpec
from .models.tool_schema import adapt_schema

if TYPE_CHECKING:
    from ..core.agents import Agent
    from ..core.host import ToolHost


class AvailableTools:
    """The tools of one step.

    Attributes:
        specs: as the model receives them, in order. The same list object while nothing changes.
    """

    def __init__(self, tools: dict[str, Tool], specs: list[ToolSpec]) -> None:
        self._tools = tools
        self.specs = specs

    def get(self, id: str) -> Tool | None:
        """The tool of this id, if it is offered (or is ``invalid``)."""
        return self._tools.get(id)

    def names(self) -> list[str]:
        """Every id that a call may have."""
        return list(self._tools)

    def without_tools(self) -> AvailableTools:
        """The same for a model that must make no more calls: calls that it makes nevertheless are invalid."""
        return AvailableTools({id: tool for id, tool in self._tools.items() if id == INVALID}, self.specs)

    def resolve_call(self, name: str, arguments: str) -> tuple[str, dict[str, Any], Tool]:
        """The tool that a call of the model addresses, with its arguments; ``invalid`` for a malformed call."""
        id, parsed = repair(self, name, arguments)
        return id, parsed, self._tools[id]


class ToolSelector:
    """Finds what is offered from step to step; what did not change is not made again."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._specs: dict[str, tuple[Bound, ToolSpec]] = {}
        self._last = AvailableTools({}, [])

    async def select(
        self,
        info: ModelInfo,
        agent: Agent,
        rules: Sequence[Rule],
        switches: Mapping[str, bool] | None = None,
        extra: Iterable[tuple[Tool, Bound]] = (),
    ) -> AvailableTools:
        """The tools for the next request: none that the rules deny altogether or that the prompt turned off."""
        registry = self._workspace.registry
        bound = await registry.tools({"providerID": info.provider, "modelID": info.api_id or info.model}, agent)
        hidden = registry.disabled([offer.id for offer in bound], rules)
        hidden |= {name for name, is_on in (switches or {}).items() if not is_on}
        tools: dict[str, Tool] = {}
        specs: list[ToolSpec] = []
        for offer in bound:
            tool = registry.get(offer.id)
            if tool is None or (offer.id in hidden and offer.id != INVALID):
                continue
            tools[offer.id] = tool
            if offer.id != INVALID:
                specs.append(self._spec(offer, info))
        for tool, offer in extra:
            tools[tool.id] = tool
            specs.append(self._spec(offer, info))
        last = self._last
        if len(specs) == len(last.specs) and all(a is b for a, b in zip(specs, last.specs, strict=True)):
            specs = last.specs
        self._last = AvailableTools(tools, specs)
        return self._last

    def _spec(self, offer: Bound, info: ModelInfo) -> ToolSpec:
        cached = self._specs.get(offer.id)
        if cached is not None:
            before, spec = cached
            if before is offer or (
                before.definition.parameters is offer.definition.parameters and before.description == offer.description
            ):
                return spec
        spec = ToolSpec(offer.id, offer.description, adapt_schema(info, offer.parameters))
        self._specs[offer.id] = (offer, spec)
        return spec
