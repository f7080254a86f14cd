"""The calls that a model made through another library's API, taken through the pipeline."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.call_state import error_text
from ..core.ids import clean_tool_id
from ..core.repair import INVALID, invalid_call
from ..core.result import ToolResult
from ..core.threads import run_on_loop

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.host import ToolHost
    from ..core.sessions import Session


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model's call in a provider's form.

    Attributes:
        id: the provider's id of it.
        name: the tool's name on the wire.
        arguments: a dict, or JSON text.
        form: the item's form, where an API has several.
    """

    id: str
    name: str
    arguments: Any
    form: str = ""


@dataclass(frozen=True, slots=True)
class ModelCallResult:
    """The result of a call.

    Attributes:
        call: the call.
        result: what the tool gave; the error as output if it failed.
        failed: the model has to learn that it failed.
    """

    call: ModelCall
    result: ToolResult
    failed: bool


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """Makes calls for a model.

    Attributes:
        workspace: where.
        agent: whose rules apply.
        session: where the calls are kept.
        names: the only tools it may call; None: all.
    """

    workspace: ToolHost
    agent: str | None
    session: str | Session | None
    names: frozenset[str] | None

    async def run(self, calls: Sequence[ModelCall]) -> list[ModelCallResult]:
        """Make calls, all at once; the results in the order of the calls.

        Raises:
            ToolError: no such agent, or the workspace is closed. What goes wrong in a call is in its result.
        """
        self.workspace.agent(self.agent)
        ids = await run_on_loop(self.workspace.loop, self._ids(calls))
        if len(calls) == 1:  # in the caller's own task, which a cell's interrupt reaches
            return [await self._run_call(calls[0], ids)]
        # Not anyio's task group: it cancels again and again, and a call has a moment to end its children.
        return list(await asyncio.gather(*(self._run_call(call, ids) for call in calls)))

    async def call(self, id: str, arguments: dict[str, Any], call_id: str | None = None) -> ToolResult:
        """Make one call of a tool.

        Raises:
            ToolError: see `Workspace.call`; or what the tool itself raises.
        """
        return (await self._run_tool(id, arguments, call_id))[0]

    def call_sync(self, id: str, arguments: dict[str, Any]) -> ToolResult:
        """`call`, from code that can't await."""
        return self.workspace.call_sync(id, arguments, by="model", agent=self.agent, session=self.session)

    def _start(self, id: str, arguments: Any, call_id: str | None) -> Call:
        return self.workspace.start(id, arguments, by="model", agent=self.agent, session=self.session, call_id=call_id)

    async def _run_tool(self, id: str, arguments: Any, call_id: str | None) -> tuple[ToolResult, Call]:
        """Make a call where a person sees it, if there is such a place; it runs on the workspace's loop anyway."""
        workspace = self.workspace
        calls: list[Call] = []

        def make() -> Call:
            calls.append(self._start(id, arguments, call_id))
            return calls[0]

        async def run() -> ToolResult:
            return await make().run()

        if workspace.present is None:
            result = await run_on_loop(workspace.loop, run())
        else:
            result = await workspace.present.run(id, make)
        return result, calls[0]

    async def _ids(self, calls: Sequence[ModelCall]) -> dict[str, str]:
        """Names on the wire to ids."""
        registry = self.workspace.registry
        names = wire_names(registry.names())
        if any(call.name not in names.values() for call in calls) and not registry.is_fresh():
            await registry.prepare()
            names = wire_names(registry.names())
        return {name: id for id, name in names.items()}

    async def _run_call(self, call: ModelCall, ids: dict[str, str]) -> ModelCallResult:
        id, arguments = ids.get(call.name, call.name), call.arguments
        if self.names is not None and id not in self.names:
            available = ", ".join(sorted(self.names))
            message = f"Model tried to call unavailable tool '{call.name}'. Available tools: {available}."
            id, arguments = invalid_call(call.name, message)
        try:
            result, started = await self._run_tool(id, arguments, call.id or None)
        except Exception as error:
            return ModelCallResult(call, ToolResult(output=error_text(error)), failed=True)
        return ModelCallResult(call, result, failed=started.part.tool == INVALID)


def field_of(item: Any, name: str) -> Any:
    """A field of a library's object, or of a dict; None if it has none."""
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


# ---------------------------------------------------------------------- names on the wire

LONGEST = 64
"""Characters of a name that providers take."""


def wire_names(ids: Iterable[str]) -> dict[str, str]:
    """For each id its name; two never share one. The same ids get the same names, so nothing has to be remembered."""
    cleaned = {id: clean_tool_id(id)[:LONGEST] or "_" for id in dict.fromkeys(ids)}
    counts: dict[str, int] = {}
    for name in cleaned.values():
        counts[name] = counts.get(name, 0) + 1
    return {
        id: name if name == id or (counts[name] == 1 and len(id) <= LONGEST) else _with_digest(name, id)
        for id, name in cleaned.items()
    }


def _with_digest(name: str, id: str) -> str:
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: LONGEST - 9]}_{digest}"
