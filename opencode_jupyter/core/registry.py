"""Which tools there are, in OpenCode's order, and which of them a model is offered (docs/opencode/core.md 4)."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import anyio

from .agents import Agent
from .context import InitContext
from .errors import InvalidArgumentsError, UnknownToolError
from .hooks import DEFINITION
from .option_checks import check_kind
from .permission import Rule, disabled
from .tool import Bound, Tool, tool
from .tool_source import Rank, ToolSource, Unavailable

if TYPE_CHECKING:
    from .call import Call
    from .config import Config
    from .host import ToolHost

log = logging.getLogger(__name__)

CHANGED = "tools.changed"
"""Event: a tool came, went or was replaced."""
FRESH_FOR = 0.002
"""Seconds for which a check of sources without tools holds, for calls by code or a model."""

ORDER = tuple(
    """
    invalid question bash read glob grep edit write task webfetch todowrite todoread websearch
    codesearch skill apply_patch lsp batch plan_exit plan_enter
    """.split()
)
"""OpenCode's tools in its order, which ``all()`` and ``names()`` keep without importing any of them.

Other built-in tools follow by name, custom ones come last.
"""


class Registry:
    """The tools of one workspace. On equal ids the later one wins: a custom tool hides a built-in one.

    Custom tools come in the order of `Rank`: of files, of plugins, registered ones, of MCP servers. One that is
    registered under the id of a file's or a plugin's tool takes that one's place.

    A built-in tool is made, and its module imported, when it is first looked up.

    Args:
        workspace: whose tools these are.
        builtins: what makes each built-in tool, by its id.
        adapt: makes tools of what other libraries call one; None for anything else.
    """

    def __init__(
        self,
        workspace: ToolHost,
        builtins: Mapping[str, Callable[[], Tool]],
        adapt: Callable[..., list[Tool] | None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._adapt = adapt
        self._makers = dict(sorted(builtins.items(), key=_position))
        self._made: dict[str, Tool] = {}
        self._registered: list[Tool] = []
        self._sources: list[ToolSource] = []
        self._custom: list[Tool] = []
        self._custom_by_id: dict[str, Tool] = {}
        self._fresh_until = 0.0
        self._fresh_config: Config | None = None
        self.invalidated_at = 0.0
        """Monotonic time of the last `invalidate`."""

    @overload
    def register(self, tool_like: Tool | Callable[..., Any]) -> Tool: ...

    @overload
    def register(self, tool_like: Any, **options: Any) -> Any: ...

    def register(self, tool_like: Any, **options: Any) -> Any:
        """Add a custom tool, in place of the custom one with the same id if there is one.

        Args:
            tool_like: a `Tool`; a function or other object that `opencode_jupyter.tool` accepts; a tool of LangChain,
                pydantic-ai, MCP, OpenAI or Anthropic, or several (`opencode_jupyter.adapters`).
            **options: what a tool of another library needs besides: ``deps``, ``session`` or ``call``.

        Returns:
            The `Tool`; a list of them for several (a list, a toolset, a toolkit).

        Raises:
            TypeError: it is none of these, or something is missing; the message names it.
        """
        tools = [tool_like] if isinstance(tool_like, Tool) else self._adapt_tools(tool_like, options)
        for new in tools:
            self._add(new)
        self.changed()
        several = isinstance(tool_like, (list, tuple)) or hasattr(tool_like, "get_tools")
        return tools if several else tools[0]

    def _adapt_tools(self, tool_like: Any, options: dict[str, Any]) -> list[Tool]:
        tools = self._adapt(tool_like, **options) if self._adapt is not None else None
        if tools is not None:
            return tools
        if options:
            raise TypeError(f"register() takes no {', '.join(options)}= for {type(tool_like).__name__}")
        if not callable(tool_like) and not hasattr(tool_like, "execute"):
            kind = type(tool_like).__name__
            raise TypeError(f"register() takes a Tool or a function, not {kind}; see opencode_jupyter.tool")
        try:
            return [tool(tool_like)]
        except TypeError as error:
            raise TypeError(f"register(): {error}") from error

    def _add(self, new: Tool) -> None:
        for i, old in enumerate(self._registered):
            if old.id == new.id:
                self._registered[i] = new
                return
        self._registered.append(new)

    def add_builtins(self, makers: Mapping[str, Callable[[], Tool]]) -> None:
        """Add tools of this package that not every workspace has (a notebook's own), among the built-in ones."""
        for id in makers:
            self._made.pop(id, None)
        self._makers = dict(sorted({**self._makers, **makers}.items(), key=_position))
        self._workspace.publish(CHANGED, dict)

    def unregister(self, id: str) -> bool:
        """Remove a registered tool; one that it hid is available again. False if there was none."""
        remaining = [t for t in self._registered if t.id != id]
        removed = len(remaining) != len(self._registered)
        self._registered = remaining
        self.changed()
        return removed

    @property
    def registered(self) -> tuple[Tool, ...]:
        """The tools that `register` added, in order."""
        return tuple(self._registered)

    # ------------------------------------------------------------------ sources

    def add_source(self, source: ToolSource) -> None:
        """Add a source of tools."""
        self._sources = sorted([*self._sources, source], key=lambda added: added.rank)
        self.changed()

    @property
    def sources(self) -> tuple[ToolSource, ...]:
        """The sources of tools, in order."""
        return tuple(self._sources)

    def changed(self) -> None:
        """Use the tools that the sources have now. Any thread may call it."""
        self._fresh_until = 0.0
        custom: list[Tool] = []
        for source in self._sources:
            if source.rank < Rank.REGISTERED:
                custom += source.tools()
        registered = {t.id: t for t in self._registered}
        custom = [registered.pop(t.id, t) for t in {t.id: t for t in custom}.values()]
        custom += registered.values()
        for source in self._sources:
            if source.rank > Rank.REGISTERED:
                custom += source.tools()
        self._custom = custom
        before, self._custom_by_id = self._custom_by_id, {t.id: t for t in custom}
        if self._custom_by_id != before:
            self._workspace.publish(CHANGED, dict)

    def is_fresh(self, tool_id: str | None = None) -> bool:
        """Return whether all sources are up to date for the tool of this id (None: all).

        Where there are no tools but this package's and registered ones, one answer holds for all of them for
        `FRESH_FOR`, but not for a person's call nor under another configuration.
        """
        now, config = time.monotonic(), self._workspace.config
        if (
            now < self._fresh_until
            and config is self._fresh_config
            and (tool_id in self._custom_by_id or tool_id in self._makers)
        ):
            return True
        fresh = all([source.is_fresh(tool_id) for source in self._sources])  # noqa: C419 - quicker
        if fresh and all([source.quiet for source in self._sources]):  # noqa: C419
            self._fresh_until, self._fresh_config = now + FRESH_FOR, config
        return fresh

    def invalidate(self) -> None:
        """Have sources check again: a person makes a call.

        For other calls a source may rely on its last check (`sources.plugins`): code calls thousands of times a second.
        """
        self.invalidated_at = time.monotonic()
        self._fresh_until = 0.0

    async def prepare(self, tool_id: str | None = None, call: Call | None = None) -> None:
        """Bring the sources up to date, side by side; see `ToolSource.prepare`.

        Raises:
            ToolError: a person denied what `call` needed.
        """
        stale = [source for source in self._sources if not source.is_fresh(tool_id)]
        if len(stale) == 1:
            await stale[0].prepare(tool_id, call)
        elif stale:
            try:
                async with anyio.create_task_group() as group:
                    for source in stale:
                        group.start_soon(source.prepare, tool_id, call)
            except BaseExceptionGroup as errors:
                raise _first_error(errors) from None
        self.changed()

    def unavailable(self) -> list[Unavailable]:
        """Known tools that can't be called, with the reason; without the quiet ones."""
        return [entry for source in self._sources for entry in source.unavailable() if not entry.quiet]

    def why_not(self, id: str) -> str:
        """Why a tool of this id can't be called, and where it would come from; "" if nothing is known of it."""
        for entry in (entry for source in self._sources for entry in source.unavailable()):
            if entry.id == id or (entry.id.endswith("*") and id.startswith(entry.id[:-1])):
                return entry.reason if entry.source in entry.reason else f"{entry.reason} [{entry.source}]"
        return ""

    # ------------------------------------------------------------------ looking up

    def get(self, id: str) -> Tool | None:
        """The tool a call of `id` reaches, as far as the sources are loaded."""
        custom = self._custom_by_id.get(id)
        return custom if custom is not None else self._builtin(id)

    def _builtin(self, id: str) -> Tool | None:
        made = self._made.get(id)
        if made is None and id in self._makers:
            made = self._made.setdefault(id, self._makers[id]())
        return made

    def _builtins(self) -> list[Tool]:
        return [made for id in self._makers if (made := self._builtin(id)) is not None]

    def names(self) -> list[str]:
        """Ids of all tools that are loaded, each once, in order."""
        return list({**self._makers, **self._custom_by_id})

    def custom_names(self) -> list[str]:
        """Ids of the tools that are loaded and not built in, each once, in order."""
        return list(self._custom_by_id)

    async def all(self) -> list[Tool]:
        """Every tool that is switched on, built-in ones first in OpenCode's order, then custom ones as they came.

        lsp, batch, question and the plan tools each have a switch (docs/opencode/core.md 4.4). It decides what
        programs and models see: a person's own call reaches every tool, switched on or not.
        """
        await self.prepare()
        return [*filter(self._switched_on, self._builtins()), *self._custom]

    async def ids(self) -> list[str]:
        """Ids of `all`, whatever a model would be offered of them."""
        return [t.id for t in await self.all()]

    def offered(self, model: str | dict[str, str] | None = None) -> list[Tool]:
        """The tools to offer a model, not yet initialised; each id once."""
        return list({selected.id: selected for selected in self._select(*split_model(model))}.values())

    def _select(self, provider: str, model: str) -> list[Tool]:
        return [t for t in (*self._builtins(), *self._custom) if self._is_available(t, provider, model)]

    async def tools(self, model: str | dict[str, str] | None = None, agent: str | Agent | None = None) -> list[Bound]:
        """The tools to offer a model, initialised for an agent, all at once.

        Args:
            model: ``provider:model``, ``provider/model``, or ``{"providerID": ..., "modelID": ...}``.
            agent: an agent or its name; tools may describe themselves differently to each.

        Raises:
            ToolError: there is no agent of that name.
        """
        await self.prepare()
        return await self._initialise(self._select(*split_model(model)), agent)

    async def described(self, names: Iterable[str], agent: str | Agent | None = None) -> list[Bound]:
        """The tools of these names, whatever a model would be offered, initialised for an agent.

        Raises:
            UnknownToolError: there is none of a name.
        """
        if isinstance(names, str):
            raise InvalidArgumentsError(f"names must be a list of names, such as [{names!r}].")
        await self.prepare()
        selected = []
        for name in names:
            check_kind(name, str, "each of the names", "a tool's name")
            named_tool = self.get(name)
            if named_tool is None:
                raise UnknownToolError(name, self.names(), self.why_not(name))
            selected.append(named_tool)
        return await self._initialise(selected, agent)

    async def _initialise(self, tools: list[Tool], agent: str | Agent | None) -> list[Bound]:
        for_agent = agent if isinstance(agent, Agent | None) else self._workspace.agent(agent)
        has_hooks = self._workspace.hooks.has_hooks(DEFINITION)
        # Most tools are the same for everyone: for hundreds of them no task is started, and no schema made again.
        bound: list[Bound | None] = [None if has_hooks else item.static for item in tools]
        context = InitContext(for_agent, self._workspace)

        async def init(i: int, item: Tool) -> None:
            start = time.perf_counter()
            initialised = await item.init(context)
            if has_hooks:
                definition = initialised.definition
                output: dict[str, Any] = {"description": definition.description, "parameters": definition.parameters}
                await self._workspace.hooks.trigger(DEFINITION, {"toolID": item.id}, output)
                definition = replace(definition, description=output["description"], parameters=output["parameters"])
                initialised = Bound(item.id, definition.description, definition)
            bound[i] = initialised
            log.debug("tool %s initialised in %.2f ms", item.id, (time.perf_counter() - start) * 1000)

        async with anyio.create_task_group() as group:
            for i, item in enumerate(tools):
                if bound[i] is None:
                    group.start_soon(init, i, item)
        latest = {b.id: b for b in bound if b is not None}
        return list(latest.values())

    def disabled(self, names: Iterable[str], rules: Sequence[Rule]) -> set[str]:
        """Those of these tools that a model need not be offered: rules deny every use of their id or their permission.

        See `permission.disabled`. It imports the built-in tools among them.
        """
        permissions = {name: found.permission for name in names if (found := self.get(name)) is not None}
        hidden = disabled({*permissions, *filter(None, permissions.values())}, rules)  # "": it requests nothing
        return {name for name, permission in permissions.items() if name in hidden or permission in hidden}

    def context(self, agent: str | None = None) -> InitContext:
        """The context of a tool's `init` for an agent; the default one if left out.

        Raises:
            ToolError: there is none of that name.
        """
        return InitContext(self._workspace.agent(agent), self._workspace)

    def _switched_on(self, candidate: Tool) -> bool:
        """Return whether flags and configuration have a built-in tool on.

        These conditions and those of `_is_available` are OpenCode's, for these few tools (docs/opencode/core.md 4.4).
        They are no property of a tool, so they are not in its manifest; a new tool is offered without an entry here.
        """
        flags = self._workspace.flags
        if candidate.id == "question":
            return flags.question
        if candidate.id == "lsp":
            return flags.lsp
        if candidate.id in ("plan_exit", "plan_enter"):
            return flags.plan_mode
        if candidate.id == "batch":
            return self._workspace.config.get("experimental", "batch_tool") is True
        return True

    def _is_available(self, candidate: Tool, provider: str, model: str) -> bool:
        """Return whether a tool is offered to a model."""
        if not candidate.builtin:
            return True
        if not self._switched_on(candidate):
            return False
        if candidate.id in ("websearch", "codesearch"):
            return provider == "opencode" or self._workspace.flags.enable_exa
        if candidate.id == "list":  # glob, and read of a folder, do the same
            return False
        patches = "gpt-" in model and "oss" not in model and "gpt-4" not in model
        if candidate.id == "apply_patch":
            return patches
        if candidate.id in ("edit", "write", "multiedit"):
            return not patches
        return True


def _first_error(error: BaseException) -> BaseException:
    """The first error of a group of them, as a single source would raise it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _position(entry: tuple[str, Any]) -> int:
    """The position of a built-in tool, given as a pair of its id and what makes it."""
    return ORDER.index(entry[0]) if entry[0] in ORDER else len(ORDER)


def split_model(model: str | dict[str, str] | None) -> tuple[str, str]:
    """Provider and model id of a model's name; empty strings for None."""
    if model is None:
        return "", ""
    check_kind(model, (str, dict), "model", "a name, such as 'openai:gpt-5', or {'providerID': ..., 'modelID': ...}")
    if isinstance(model, dict):
        return model.get("providerID", ""), model.get("modelID", "")
    match = re.match(r"([^:/]*)[:/](.*)", model, re.DOTALL)
    return (match.group(1), match.group(2)) if match else ("", model)
