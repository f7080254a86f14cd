"""The calls that a model made through another library's API, taken through the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from ..core.endings import error_text
from ..core.repair import INVALID, invalid_call
from ..core.result import ToolResult
from ._blocking import go_home
from ._names import wire_names

if TYPE_CHECKING:
    from ..core.sessions import Session
    from ..core.workspace import Workspace


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

    workspace: Workspace
    agent: str | None
    session: str | Session | None
    names: frozenset[str] | None

    async def run(self, asked: Sequence[Asked]) -> list[Answer]:
        """Make calls, all at once; the answers in the order of the calls.

        Raises:
            ToolError: no such agent, or the workspace is closed. What goes wrong in a call is in its answer.
        """
        self.workspace.agent(self.agent)
        return await go_home(self.workspace, self._run(asked))

    async def call(self, id: str, arguments: dict[str, Any], call_id: str | None = None) -> ToolResult:
        """Make one call of a tool.

        Raises:
            ToolError: see `Workspace.call`; or what the tool itself raises.
        """
        work = self.workspace.call(id, arguments, by="model", agent=self.agent, session=self.session, call_id=call_id)
        return await go_home(self.workspace, work)

    def call_sync(self, id: str, arguments: dict[str, Any]) -> ToolResult:
        """`call`, from code that can't await."""
        return self.workspace.call_sync(id, arguments, by="model", agent=self.agent, session=self.session)

    async def _run(self, asked: Sequence[Asked]) -> list[Answer]:
        registry = self.workspace.registry
        ids = self._ids()
        if any(one.name not in ids for one in asked) and not registry.settled():
            await registry.prepare()
            ids = self._ids()
        answers: list[Answer | None] = [None] * len(asked)

        async def one(i: int, call: Asked) -> None:
            answers[i] = await self._answer(call, ids.get(call.name, call.name))

        async with anyio.create_task_group() as group:
            for i, call in enumerate(asked):
                group.start_soon(one, i, call)
        return [answer for answer in answers if answer is not None]

    def _ids(self) -> dict[str, str]:
        return {name: id for id, name in wire_names(self.workspace.registry.names()).items()}

    async def _answer(self, asked: Asked, id: str) -> Answer:
        arguments = asked.arguments
        if self.names is not None and id not in self.names:
            known = ", ".join(sorted(self.names))
            said = f"Model tried to call unavailable tool '{asked.name}'. Available tools: {known}."
            id, arguments = invalid_call(asked.name, said)
        call = self.workspace.start(
            id, arguments, agent=self.agent, session=self.session, by="model", call_id=asked.id or None
        )
        try:
            result = await call.run()
        except Exception as error:
            return Answer(asked, ToolResult(output=error_text(error)), failed=True)
        return Answer(asked, result, failed=call.part.tool == INVALID)


def value(given: Any, name: str) -> Any:
    """A field of a library's object, or of a dict; None if it has none."""
    return given.get(name) if isinstance(given, dict) else getattr(given, name, None)
