"""A workspace's tools for other libraries' agents: `Workspace.tools`.

Schemas for the APIs of OpenAI and Anthropic, methods that run their models' calls, and live tools for LangChain and
pydantic-ai. Every call takes the whole pipeline, as a model's call (``by="model"``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..core.repair import INVALID
from ..core.threads import run_blocking, run_on_loop
from ._model_calls import ModelCaller, wire_names
from .provider_apis import (
    anthropic_calls,
    anthropic_messages,
    anthropic_schemas,
    openai_calls,
    openai_messages,
    openai_schemas,
)

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from pydantic_ai import Tool as PydanticTool

    from ..core.host import ToolHost
    from ..core.sessions import Session
    from ..core.tool import Bound

LISTING = 30.0
"""Seconds the tools may take to describe themselves to code that can't await."""
_SLOW = "the tools did not describe themselves (code that can await should call the twin, afor_...)"


class Exports:
    """The tools of a workspace, in other libraries' forms.

    Each ``for_…`` blocks until every tool has described itself; in code that can await, ``afor_…`` is its twin. They
    share these arguments:

    - ``model``: ``provider:model``, for the tools that some models get in place of others.
    - ``agent``: whose rules and descriptions; a tool that all of its rules deny is left out.
    - ``session``: where calls of live tools go, and whose rules count too.
    - ``names``: only these tools, whatever the model would be offered.

    Raises (all of them):
        UnknownToolError: there is no tool of one of the names.
        ToolError: no such agent; or a tool did not describe itself in time.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace

    # ------------------------------------------------------------------ schemas

    def for_openai(self, *, responses: bool = False, **options: Any) -> list[dict[str, Any]]:
        """The ``tools`` of a Chat Completions request; with ``responses=True`` those of a Responses request."""
        return openai_schemas(self._find_blocking(**options), responses=responses)

    async def afor_openai(self, *, responses: bool = False, **options: Any) -> list[dict[str, Any]]:
        """`for_openai`, awaited."""
        return openai_schemas(await self._find_awaited(**options), responses=responses)

    def for_anthropic(self, **options: Any) -> list[dict[str, Any]]:
        """The ``tools`` of a Messages request."""
        return anthropic_schemas(self._find_blocking(**options))

    async def afor_anthropic(self, **options: Any) -> list[dict[str, Any]]:
        """`for_anthropic`, awaited."""
        return anthropic_schemas(await self._find_awaited(**options))

    # ------------------------------------------------------------------ live tools

    def for_langchain(self, **options: Any) -> list[BaseTool]:
        """LangChain tools whose content is the output (with files as blocks) and whose artifact is the `ToolResult`.

        An error of the tool becomes a ``ToolMessage`` with the status ``error``, so that an agent goes on.

        Raises:
            ImportError: langchain-core is not installed.
        """
        from .langchain import export

        return [export(name, bound, self._caller(**options)) for name, bound in self._find_blocking(**options)]

    async def afor_langchain(self, **options: Any) -> list[BaseTool]:
        """`for_langchain`, awaited."""
        from .langchain import export

        return [export(name, bound, self._caller(**options)) for name, bound in await self._find_awaited(**options)]

    def for_pydantic_ai(self, **options: Any) -> list[PydanticTool[Any]]:
        """pydantic-ai tools, for ``Agent(tools=…)``. An error of the tool is raised as ``ToolFailed``.

        Raises:
            ImportError: pydantic-ai is not installed.
        """
        from .pydantic_ai import export

        return [export(name, bound, self._caller(**options)) for name, bound in self._find_blocking(**options)]

    async def afor_pydantic_ai(self, **options: Any) -> list[PydanticTool[Any]]:
        """`for_pydantic_ai`, awaited."""
        from .pydantic_ai import export

        return [export(name, bound, self._caller(**options)) for name, bound in await self._find_awaited(**options)]

    # ------------------------------------------------------------------ running a model's calls

    async def run_openai(self, calls: Any, **options: Any) -> list[dict[str, Any]]:
        """Run the calls that a model made, all at once, and give the messages to send back.

        Args:
            calls: a completion or its message, a response, or the list of its ``tool_calls`` (``output``) items; as
                objects of OpenAI's library or as dicts.
            **options: ``agent``, ``session``, ``names``: as the tools were listed.

        Returns:
            For each call one message with the role ``tool``, and after those one with the pictures if there are any;
            for a Responses request the items to add to its ``input``. An error is in the text, which the model reads.

        Raises:
            TypeError: `calls` is none of these.
        """
        model_calls = openai_calls(calls)
        return openai_messages(await self._caller(**options).run(model_calls))

    async def run_anthropic(self, content: Any, **options: Any) -> list[dict[str, Any]]:
        """Run the calls that a model made, all at once, and give the message to send back.

        Args:
            content: a message, or the list of its content blocks; as objects of Anthropic's library or as dicts.
            **options: ``agent``, ``session``, ``names``: as the tools were listed.

        Returns:
            One message with a ``tool_result`` for each call, ``is_error`` where it failed; none if there was no call.

        Raises:
            TypeError: `content` is none of these.
        """
        model_calls = anthropic_calls(content)
        return anthropic_messages(await self._caller(**options).run(model_calls))

    # ------------------------------------------------------------------ which tools

    async def _find_awaited(self, **options: Any) -> list[tuple[str, Bound]]:
        """The tools with the names that a provider takes for them."""
        return await run_on_loop(self._workspace.loop, self._find(**options))

    def _find_blocking(self, **options: Any) -> list[tuple[str, Bound]]:
        """`_find_awaited`, for code that can't await."""
        return run_blocking(self._workspace.loop, self._find(**options), LISTING, _SLOW)

    async def _find(
        self,
        *,
        model: str | dict[str, str] | None = None,
        agent: str | None = None,
        session: str | Session | None = None,
        names: Iterable[str] | None = None,
    ) -> list[tuple[str, Bound]]:
        if isinstance(names, str):
            raise TypeError(f"names= takes a list of tools, such as [{names!r}]")
        workspace = self._workspace
        agent_info = workspace.agent(agent)
        if names is None:
            bound = await workspace.registry.tools(model, agent_info)
        else:
            bound = await workspace.registry.described(names, agent_info)
        rules = [*agent_info.permission, *workspace.rules, *workspace.sessions.get(session).permission]
        hidden = workspace.registry.disabled([tool.id for tool in bound], rules) | {INVALID}
        wire = wire_names(workspace.registry.names())
        return [(wire[tool.id], tool) for tool in bound if tool.id not in hidden]

    def _caller(
        self,
        *,
        model: Any = None,
        agent: str | None = None,
        session: str | Session | None = None,
        names: Iterable[str] | None = None,
    ) -> ModelCaller:
        return ModelCaller(self._workspace, agent, session, None if names is None else frozenset(names))
