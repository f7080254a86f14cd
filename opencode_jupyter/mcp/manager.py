"""The MCP servers of a workspace, as a source of tools (docs/opencode/core.md 6.4, 19)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.ids import clean_tool_id
from ..core.result import ToolResult
from ..core.threads import LoopThread
from ..core.tool_source import Rank, Unavailable
from ..core.trust import Subject
from .configuration import CALL_LIMIT, UNTRUSTED, ServerConfiguration, ServerSpec, spec_of
from .errors import McpError, describe_error, missing_sdk
from .pool import ConnectionPool, tool_prefix
from .status import ServerStatus

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.context import ToolContext
    from ..core.host import ToolHost
    from ..core.tool import Tool
    from .connection import ServerConnection
    from .results import Prompt, Resource

END = 2.7
"""Seconds that ending all servers may take."""


class McpServers:
    """Servers by name, and a `core.tool_source.ToolSource`; made by ``workspace.service(McpServers)``.

    Nothing is started before one of its tools, or all tools, are needed. The servers live on a loop of their own, so
    every method may be called from any thread, and the async ones awaited on any loop.
    """

    rank = Rank.MCP

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._thread = LoopThread("opencode-mcp")
        self._configuration = ServerConfiguration(workspace)
        self._pool = ConnectionPool(workspace, self._configuration, self.call)
        self.specs = self._configuration.specs
        self.is_trusted = self._configuration.is_trusted
        self.switched_off = self._configuration.switched_off

    def status(self) -> dict[str, ServerStatus]:
        """The status of each server. One that was not needed yet is ``disabled``, and ``error`` says so."""
        return {name: self._pool.status(spec) for name, spec in self.specs().items()}

    def logs(self, name: str) -> list[str]:
        """The last lines of a server's stderr and log messages, oldest first, without secrets.

        Raises:
            McpError: there is no such server.
        """
        return self._pool.logs(self._configuration.spec(name).name)

    # ------------------------------------------------------------------ adding, connecting, ending

    async def add(self, name: str, spec: ServerSpec | Mapping[str, Any]) -> ServerStatus:
        """Add a server, in place of one of that name, and connect it.

        Args:
            name: its name; its tools are ``name_tool``.
            spec: an entry as under ``mcp`` in ``opencode.json``, or a `ServerSpec`.

        Raises:
            McpError: the entry is wrong.
        """
        if reason := missing_sdk():
            raise McpError(name, reason)
        added = spec if isinstance(spec, ServerSpec) else spec_of(name, spec, source="added in this session")
        if added.problem:
            raise McpError(name, added.problem)
        self._configuration.add(added._replace(name=name))
        return await self.connect(name) if added.enabled else self._pool.status(added)

    async def connect(self, name: str) -> ServerStatus:
        """Connect a server, anew if it is connected; the status says whether that went well.

        Raises:
            McpError: there is no such server, or it is not trusted.
        """
        spec = self._configuration.spec(name)
        if spec.problem:
            raise McpError(name, spec.problem)
        if not self.is_trusted(spec):
            raise McpError(name, f"the MCP server {name} is {UNTRUSTED}")
        spec = self._configuration.switch_on(spec)
        await self._thread.run(self._pool.restart(name))
        return self._pool.status(spec)

    async def disconnect(self, name: str) -> ServerStatus:
        """End a server; it stays down until `connect`.

        Raises:
            McpError: there is no such server.
        """
        spec = self._configuration.spec(name)
        self._configuration.switch_off(spec)
        await self._thread.run(self._pool.end([name]))
        return self._pool.status(spec)

    async def remove(self, name: str) -> bool:
        """End a server that was added here and forget it; False if only a file has it."""
        if not self._configuration.remove(name):
            return False
        await self._thread.run(self._pool.end([name]))
        return True

    async def close(self) -> None:
        """End every server; bounded."""
        if self._thread.is_alive:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._thread.run(self._pool.close()), END)
            await asyncio.to_thread(self._thread.close)

    # ------------------------------------------------------------------ for the registry

    def tools(self) -> Sequence[Tool]:
        """The tools of the connected servers."""
        return self._pool.tools

    def unavailable(self) -> Sequence[Unavailable]:
        """The servers that have no tools now, with the reason; those that are switched off are quiet."""
        return [
            Unavailable(f"{tool_prefix(name)}*", f"mcp: {name}", reason, quiet=bool(self.switched_off(spec)))
            for name, spec in self.specs().items()
            if (reason := self._pool.why_unavailable(spec))
        ]

    def untrusted(self) -> Sequence[Subject]:
        """The servers of the project's files that need a person's trust before they are started."""
        specs = self.specs().values()
        return [spec.subject() for spec in specs if self._configuration.can_start(spec) and not self.is_trusted(spec)]

    @property
    def quiet(self) -> bool:
        """True if no server is configured and none runs, as in most projects."""
        return not self._pool.connections and not self.specs()

    def is_fresh(self, tool_id: str | None) -> bool:
        """Return whether every server that a tool of this id may come from is connected, or can't be."""
        return self.quiet or not (self.needed(tool_id) or self._has_outdated(tool_id))

    async def prepare(self, tool_id: str | None, call: Call | None) -> None:
        """Connect those that are not, side by side. For one that the project brings, a person is asked first.

        Raises:
            ToolError: the person refused.
        """
        needed = self.needed(tool_id)
        if call is not None:
            for spec in needed:
                if not self.is_trusted(spec):
                    await self._workspace.trust.require(spec.subject(), call)
        names = [spec.name for spec in needed if self.is_trusted(spec)]
        if names or self._has_outdated(tool_id):
            await self._thread.run(self._pool.bring_up(names))

    def needed(self, tool_id: str | None) -> list[ServerSpec]:
        """The servers that have to be connected before a tool, or all tools (None), can be looked up."""
        specs = self.specs().values()
        if tool_id is None:
            return [spec for spec in specs if self._pool.needs_start(spec, called=False)]
        tool = self._workspace.registry.get(tool_id)
        if tool is not None and not tool.external:
            return []
        return [spec for spec in specs if _may_have(spec.name, tool_id) and self._pool.needs_start(spec, called=True)]

    def _has_outdated(self, tool_id: str | None) -> bool:
        """Return whether a server runs that is configured otherwise now, or no more; `tool_id` as in `needed`."""
        return any(tool_id is None or _may_have(name, tool_id) for name in self._pool.outdated())

    # ------------------------------------------------------------------ requests

    async def call(self, server: str, name: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        """Call a tool.

        Args:
            server: the server's name.
            name: the tool's name as the server has it.
            arguments: as its schema describes them.
            ctx: the call; receives the progress and the server's questions.

        Raises:
            McpError: the server is missing, ended, took too long, or the result is an error.
        """

        async def call() -> ToolResult:
            from ..sandbox.service import Sandbox
            from .connection import ServerCall  # here, as below: the SDK takes long to import
            from .results import error_of, result_of

            connection = await self._pool.ready(server)
            sandbox = self._workspace.service(Sandbox)
            policy = sandbox.program("mcp", server) if connection.spec.is_local else None
            with sandbox.startup_files_kept(policy, ctx.call_id) as files:
                result = await ServerCall(ctx, self._limit(connection.spec)).run(connection, name, arguments)
            if result.is_error:
                raise McpError(server, error_of(result))
            return files.add_note(result_of(result))

        return await self._thread.run(call())

    async def prompts(self, server: str | None = None) -> dict[str, Prompt]:
        """The prompts of one server, or of all, under ``server:name``."""
        prompts = await self._thread.run(self._list("list_prompts", server))
        return {f"{clean_tool_id(prompt.server)}:{clean_tool_id(prompt.name)}": prompt for prompt in prompts}

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> list[dict[str, str]]:
        """A prompt's messages, as dicts of ``role`` and ``text``.

        Raises:
            McpError: there is no such server or prompt, or it needs other arguments.
        """
        return await self._thread.run(self._request("get_prompt", server, name, dict(arguments or {})))

    async def resources(self, server: str | None = None) -> dict[str, Resource]:
        """The resources of one server, or of all, under ``server:name``."""
        resources = await self._thread.run(self._list("list_resources", server))
        return {f"{clean_tool_id(resource.server)}:{clean_tool_id(resource.name)}": resource for resource in resources}

    async def read_resource(self, server: str, uri: str) -> ToolResult:
        """A resource: its text as the output, anything else as attachments.

        Raises:
            McpError: there is no such server or resource.
        """
        return await self._thread.run(self._request("read_resource", server, uri))

    async def _request(self, request: str, server: str, *arguments: Any) -> Any:
        """Run a function of `results` for a server."""
        from . import results

        connection = await self._pool.ready(server)
        client = await connection.client()
        limit = self._limit(connection.spec)
        try:
            async with asyncio.timeout(limit):
                return await getattr(results, request)(client, *arguments)
        except McpError:
            raise
        except TimeoutError as error:
            raise McpError(server, f"the MCP server {server} did not answer within {limit:g} s") from error
        except Exception as error:
            raise McpError(server, f"the MCP server {server}: {describe_error(error)}") from error

    async def _list(self, request: str, server: str | None) -> list[Any]:
        """What each server, or one, lists by a function of `results`; the log of one that fails says why."""
        from . import results

        names = [
            name
            for name, spec in self.specs().items()
            if server in (None, name) and self._configuration.can_start(spec) and self.is_trusted(spec)
        ]
        await self._pool.bring_up(names)

        async def list_of(connection: ServerConnection) -> list[Any]:
            try:
                async with asyncio.timeout(connection.limit):
                    items = getattr(results, request)(connection.spec.name, await connection.client())
                    return list(await items)
            except Exception as error:
                what = request.removeprefix("list_")
                connection.log.add(f"its {what} could not be listed: {describe_error(error)}", "client")
                return []

        connections = [c for c in map(self._pool.connections.get, names) if c is not None and c.state == "connected"]
        return [item for items in await asyncio.gather(*map(list_of, connections)) for item in items]

    def _limit(self, spec: ServerSpec) -> float:
        """Seconds a call may take without progress (docs/opencode/core.md 19.5)."""
        value = self._workspace.config.get("experimental", "mcp_timeout")
        configured = value / 1000 if isinstance(value, int | float) and value > 0 else None
        return spec.timeout or configured or CALL_LIMIT


def _may_have(server: str, tool_id: str) -> bool:
    """Return whether a tool of this id may be a server's."""
    return tool_id.lower().startswith(tool_prefix(server).lower())
