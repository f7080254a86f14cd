"""A workspace's tools for other libraries' agents: `Workspace.tools`.

Lists of schemas for the APIs of OpenAI and Anthropic, and what runs the calls that a model of theirs made; live tools
for LangChain and pydantic-ai. However a call comes, it takes the whole pipeline, as a model's call (``by="model"``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..core.permission import disabled
from ..core.repair import INVALID
from ..core.threads import run_at_home
from . import _anthropic, _openai
from ._blocking import run_blocking
from ._model_calls import Caller
from ._names import wire_names

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

    def for_openai(self, *, responses: bool = False, **which: Any) -> list[dict[str, Any]]:
        """The ``tools`` of a Chat Completions request; with ``responses=True`` those of a Responses request."""
        return _openai.schemas(self._blocked(**which), responses=responses)

    async def afor_openai(self, *, responses: bool = False, **which: Any) -> list[dict[str, Any]]:
        """`for_openai`, awaited."""
        return _openai.schemas(await self._listed(**which), responses=responses)

    def for_anthropic(self, **which: Any) -> list[dict[str, Any]]:
        """The ``tools`` of a Messages request."""
        return _anthropic.schemas(self._blocked(**which))

    async def afor_anthropic(self, **which: Any) -> list[dict[str, Any]]:
        """`for_anthropic`, awaited."""
        return _anthropic.schemas(await self._listed(**which))

    # ------------------------------------------------------------------ live tools

    def for_langchain(self, **which: Any) -> list[BaseTool]:
        """LangChain tools whose content is the output (with files as blocks) and whose artifact is the `ToolResult`.

        An error of the tool becomes a ``ToolMessage`` with the status ``error``, so that an agent goes on.

        Raises:
            ImportError: langchain-core is not installed.
        """
        from ._langchain_tools import live

        return [live(name, bound, self._caller(**which)) for name, bound in self._blocked(**which)]

    async def afor_langchain(self, **which: Any) -> list[BaseTool]:
        """`for_langchain`, awaited."""
        from ._langchain_tools import live

        return [live(name, bound, self._caller(**which)) for name, bound in await self._listed(**which)]

    def for_pydantic_ai(self, **which: Any) -> list[PydanticTool[Any]]:
        """pydantic-ai tools, for ``Agent(tools=…)``. An error of the tool is raised as ``ToolFailed``.

        Raises:
            ImportError: pydantic-ai is not installed.
        """
        from ._pydantic_ai_tools import live

        return [live(name, bound, self._caller(**which)) for name, bound in self._blocked(**which)]

    async def afor_pydantic_ai(self, **which: Any) -> list[PydanticTool[Any]]:
        """`for_pydantic_ai`, awaited."""
        from ._pydantic_ai_tools import live

        return [live(name, bound, self._caller(**which)) for name, bound in await self._listed(**which)]

    # ------------------------------------------------------------------ running a model's calls

    async def run_openai(self, calls: Any, **which: Any) -> list[dict[str, Any]]:
        """Run the calls that a model made, all at once, and give the messages to send back.

        Args:
            calls: a completion or its message, a response, or the list of its ``tool_calls`` (``output``) items; as
                objects of OpenAI's library or as dicts.
            **which: ``agent``, ``session``, ``names``: as the tools were listed.

        Returns:
            For each call one message with the role ``tool``, and after those one with the pictures if there are any;
            for a Responses request the items to add to its ``input``. An error is in the text, which the model reads.

        Raises:
            TypeError: `calls` is none of these.
        """
        asked = _openai.asked(calls)
        return _openai.messages(await self._caller(**which).run(asked))

    async def run_anthropic(self, content: Any, **which: Any) -> list[dict[str, Any]]:
        """Run the calls that a model made, all at once, and give the message to send back.

        Args:
            content: a message, or the list of its content blocks; as objects of Anthropic's library or as dicts.
            **which: ``agent``, ``session``, ``names``: as the tools were listed.

        Returns:
            One message with a ``tool_result`` for each call, ``is_error`` where it failed; none if there was no call.

        Raises:
            TypeError: `content` is none of these.
        """
        asked = _anthropic.asked(content)
        return _anthropic.messages(await self._caller(**which).run(asked))

    # ------------------------------------------------------------------ which tools

    async def _listed(self, **which: Any) -> list[tuple[str, Bound]]:
        """The tools with the names that a provider takes for them."""
        return await run_at_home(self._workspace, self._find(**which))

    def _blocked(self, **which: Any) -> list[tuple[str, Bound]]:
        """`_listed`, for code that can't await."""
        return run_blocking(self._find(**which), LISTING, _SLOW, self._workspace)

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
        who = workspace.agent(agent)
        if names is None:
            bound = await workspace.registry.tools(model, who)
        else:
            bound = await workspace.registry.described(names, who)
        rules = [*who.permission, *workspace.rules, *workspace.sessions.get(session).permission]
        hidden = disabled([one.id for one in bound], rules) | {INVALID}
        wire = wire_names(workspace.registry.names())
        return [(wire[one.id], one) for one in bound if one.id not in hidden]

    def _caller(
        self,
        *,
        model: Any = None,
        agent: str | None = None,
        session: str | Session | None = None,
        names: Iterable[str] | None = None,
    ) -> Caller:
        return Caller(self._workspace, agent, session, None if names is None else frozenset(names))
