"""The calls that a model made through another library's API, taken through the pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.outcome import error_text
from ..core.repair import INVALID, invalid_call
from ..core.result import ToolResult
from ..core.threads import run_at_home
from ._names import wire_names

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.host import ToolHost
    from ..core.sessions import Session


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as a provider says it.

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
class Answer:
    """How a call ended.

    Attributes:
        asked: the call.
        result: what the tool gave; the error as output if it failed.
        failed: whether the model has to be told that it failed.
    """

    asked: Asked
    result: ToolResult
    failed: bool


@dataclass(frozen=True, slots=True)
class Caller:
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

    async def run(self, asked: Sequence[Asked]) -> list[Answer]:
        """Make calls, all at once; the answers in the order of the calls.

        Raises:
            ToolError: no such agent, or the workspace is closed. What goes wrong in a call is in its answer.
        """
        self.workspace.agent(self.agent)
        ids = await run_at_home(self.workspace, self._ids(asked))
        if len(asked) == 1:  # in the caller's own task, which a cell's interrupt reaches
            return [await self._answer(asked[0], ids)]
        # Not anyio's task group: it cancels again and again, and a call has a moment to end its children.
        return list(await asyncio.gather(*(self._answer(call, ids) for call in asked)))

    async def call(self, id: str, arguments: dict[str, Any], call_id: str | None = None) -> ToolResult:
        """Make one call of a tool.

        Raises:
            ToolError: see `Workspace.call`; or what the tool itself raises.
        """
        return (await self._made(id, arguments, call_id))[0]

    def call_sync(self, id: str, arguments: dict[str, Any]) -> ToolResult:
        """`call`, from code that can't await."""
        return self.workspace.call_sync(id, arguments, by="model", agent=self.agent, session=self.session)

    def _start(self, id: str, arguments: Any, call_id: str | None) -> Call:
        return self.workspace.start(id, arguments, by="model", agent=self.agent, session=self.session, call_id=call_id)

    async def _made(self, id: str, arguments: Any, call_id: str | None) -> tuple[ToolResult, Call]:
        """Make a call where a person sees it, if there is such a place; it runs on the workspace's loop anyway."""
        workspace = self.workspace
        made: list[Call] = []

        def make() -> Call:
            made.append(self._start(id, arguments, call_id))
            return made[0]

        async def run() -> ToolResult:
            return await make().run()

        if workspace.present is None:
            result = await run_at_home(workspace, run())
        else:
            result = await workspace.present.run(id, make)
        return result, made[0]

    async def _ids(self, asked: Sequence[Asked]) -> dict[str, str]:
        """Names on the wire to ids."""
        registry = self.workspace.registry
        names = wire_names(registry.names())
        if any(one.name not in names.values() for one in asked) and not registry.is_fresh():
            await registry.prepare()
            names = wire_names(registry.names())
        return {name: id for id, name in names.items()}

    async def _answer(self, asked: Asked, ids: dict[str, str]) -> Answer:
        id, arguments = ids.get(asked.name, asked.name), asked.arguments
        if self.names is not None and id not in self.names:
            known = ", ".join(sorted(self.names))
            said = f"Model tried to call unavailable tool '{asked.name}'. Available tools: {known}."
            id, arguments = invalid_call(asked.name, said)
        try:
            result, call = await self._made(id, arguments, asked.id or None)
        except Exception as error:
            return Answer(asked, ToolResult(output=error_text(error)), failed=True)
        return Answer(asked, result, failed=call.part.tool == INVALID)


def value(given: Any, name: str) -> Any:
    """A field of a library's object, or of a dict; None if it has none."""
    return given.get(name) if isinstance(given, dict) else getattr(given, name, None)
