"""The connections to the servers that are in use: which run, which have to be started, their status and tools."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.ids import clean_tool_id
from ..core.tool import Definition, Tool, checked_elsewhere
from .configuration import UNTRUSTED, ServerConfiguration, ServerSpec
from .errors import McpError
from .status import ServerStatus

if TYPE_CHECKING:
    from mcp_types import Tool as ListedTool

    from ..core.context import ToolContext
    from ..core.host import ToolHost
    from ..core.result import ToolResult
    from .connection import ServerConnection

CHANGED = "mcp.tools.changed"
"""Event: a server's tools are not what they were (docs/opencode/core.md 22)."""
STATUS = "mcp.status.changed"
"""Event: a server is not as it was."""
CallTool = Callable[[str, str, dict[str, Any], "ToolContext"], Awaitable["ToolResult"]]
"""Calls a tool: server, the tool's own name, arguments, context."""


class ConnectionPool:
    """Connections by name. Its coroutines run on the loop of the servers, the rest on any thread.

    Attributes:
        connections: those that were started, ended ones too.
        tools: of the connected servers.
    """

    def __init__(self, workspace: ToolHost, configuration: ServerConfiguration, call: CallTool) -> None:
        self._workspace = workspace
        self._configuration = configuration
        self._call = call
        self._fingerprints: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()
        self._closing = False
        self.connections: dict[str, ServerConnection] = {}
        self.tools: list[Tool] = []

    def needs_start(self, spec: ServerSpec, *, called: bool) -> bool:
        """Return whether a server has to be connected; `called`: somebody calls a tool of it."""
        if not self._configuration.can_start(spec):
            return False
        connection = self.connections.get(spec.name)
        if connection is not None and self._is_current(connection, spec):
            return connection.state != "connected" and not connection.has_just_failed if called else connection.is_due
        return called or self._configuration.is_trusted(spec)

    def outdated(self) -> list[str]:
        """The servers that run and are configured otherwise now, or no more."""
        specs = self._configuration.specs()
        connections = list(self.connections.items())
        return [name for name, connection in connections if not self._is_current(connection, specs.get(name))]

    async def bring_up(self, names: list[str]) -> None:
        """Connect servers side by side; their status says what went wrong."""
        if old := self.outdated():
            await self.end(old)
        specs = self._configuration.specs()
        connections = [self._connection(specs[name]) for name in names if name in specs]
        await asyncio.gather(*(connection.connect() for connection in connections))

    async def restart(self, name: str) -> None:
        """Connect a server anew."""
        await self.end([name])
        await self.bring_up([name])

    async def end(self, names: list[str]) -> None:
        """End servers."""
        ended = [c for name in names if (c := self.connections.pop(name, None)) is not None]
        await asyncio.gather(*(connection.stop() for connection in ended), return_exceptions=True)
        self._rebuild()

    async def close(self) -> None:
        """End every server, and start none any more."""
        self._closing = True
        await self.end(list(self.connections))

    async def ready(self, name: str) -> ServerConnection:
        """A server's connection, started if it was not.

        Raises:
            McpError: the server must not be used.
        """
        spec = self._configuration.spec(name)
        if spec.problem:
            raise McpError(name, spec.problem)
        if reason := self._configuration.obstacle(spec):
            raise McpError(name, f"the MCP server {name} is {reason}")
        await self.bring_up([name])
        return self._connection(spec)

    def _connection(self, spec: ServerSpec) -> ServerConnection:
        connection = self.connections.get(spec.name)
        if connection is None:
            if self._closing:
                raise McpError(spec.name, "the workspace is closing")
            from .connection import ServerConnection  # here: the SDK takes most of a second to import
            from .transports import open_client

            workspace = self._workspace
            connection = ServerConnection(spec, workspace.directory, partial(open_client, workspace), self._changed)
            self.connections[spec.name] = connection
        return connection

    def _is_current(self, connection: ServerConnection, spec: ServerSpec | None) -> bool:
        """Return whether a server runs as it is configured now, in the workspace's folder."""
        moved = connection.spec.is_local and connection.folder != self._workspace.directory
        return connection.spec == spec and not moved

    # ------------------------------------------------------------------ status

    def status(self, spec: ServerSpec) -> ServerStatus:
        """A server's status. One that was not needed yet is ``disabled``, and ``error`` says so."""
        unused = ServerStatus("disabled", target=spec.target, source=spec.source)
        if spec.problem:
            return replace(unused, state="failed", error=spec.problem)
        if not self._configuration.can_start(spec):
            return replace(unused, error=self._configuration.switched_off(spec))
        connection = self.connections.get(spec.name)
        if connection is None:
            return replace(unused, error="not started yet" if self._configuration.is_trusted(spec) else UNTRUSTED)
        status = connection.status()
        return replace(status, error="starting") if connection.connecting and not status.error else status

    def why_unavailable(self, spec: ServerSpec) -> str:
        """Why a server has no tools now, and what to do about it; "" if it has, or was not needed yet."""
        if spec.problem or not self._configuration.can_start(spec):
            return spec.problem or self._configuration.switched_off(spec)
        if not self._configuration.is_trusted(spec):
            return UNTRUSTED
        connection = self.connections.get(spec.name)
        return connection.error if connection is not None and connection.state != "connected" else ""

    def logs(self, name: str) -> list[str]:
        """The last lines of a server's stderr and log messages, oldest first, without secrets."""
        connection = self.connections.get(name)
        return connection.log.lines() if connection is not None else []

    # ------------------------------------------------------------------ changed tools

    def _changed(self, connection: ServerConnection, tools: bool) -> None:
        """A connection has another status, or other tools."""
        if self._closing:
            return
        name = connection.spec.name
        self._workspace.publish(STATUS, lambda: {"server": name})
        if tools:
            self._revoke_grants(connection)
            self._rebuild()
            self._workspace.publish(CHANGED, lambda: {"server": name})

    def _rebuild(self) -> None:
        with self._lock:
            registry = self._workspace.registry
            custom = set(registry.custom_names())
            reserved = [id for id in registry.names() if id not in custom]
            listings = [
                (name, connection.tools)
                for name in self._configuration.specs()
                if (connection := self.connections.get(name)) is not None and connection.tools
            ]
            self.tools = _make_tools(listings, reserved, self._call)
        registry.changed()

    def _revoke_grants(self, connection: ServerConnection) -> None:
        """A person allowed a tool for this session as it described itself then; another description asks again."""
        from .connection import fingerprints

        name = connection.spec.name
        for tool, fingerprint in fingerprints(connection.tools).items():
            old = self._fingerprints.get((name, tool))
            self._fingerprints[name, tool] = fingerprint
            if old is None or old == fingerprint:
                continue
            tool_id, permissions = tool_prefix(name) + clean_tool_id(tool), self._workspace.permissions
            for rule in [rule for rule in permissions.approved if rule.permission.startswith(tool_id)]:
                permissions.revoke(rule)


# ---------------------------------------------------------------------- their tools (docs/opencode/core.md 6.4, 19)


def tool_prefix(server: str) -> str:
    """What the ids of a server's tools begin with."""
    return f"{clean_tool_id(server)}_"


def _make_tools(
    listings: Iterable[tuple[str, list[ListedTool]]], reserved: Iterable[str], call: CallTool
) -> list[Tool]:
    """The tools of all servers. No two have one id, and none has that of a built-in tool: the later gets a number.

    Args:
        listings: servers with what each listed, each name once.
        reserved: ids that a server's tool may not have.
        call: calls a tool.
    """
    used = set(reserved)
    tools: list[Tool] = []
    for server, listed in listings:
        for tool in listed:
            base = tool_prefix(server) + clean_tool_id(tool.name)
            id, number = base, 1
            while id in used:
                number += 1
                id = f"{base}_{number}"
            used.add(id)
            tools.append(_make_tool(id, server, tool, call))
    return tools


def schema_of(input_schema: dict[str, Any] | None) -> dict[str, Any]:
    """A tool's input schema as models are sent it."""
    schema = dict(input_schema or {})
    properties = schema.get("properties")
    schema.update(
        type="object", properties=properties if isinstance(properties, dict) else {}, additionalProperties=False
    )
    return schema


def _make_tool(id: str, server: str, listed: ListedTool, call: CallTool) -> Tool:
    name = listed.name

    async def execute(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        await ctx.ask(id, ["*"], ["*"], {"server": server})
        ctx.proceed()
        return await call(server, name, arguments, ctx)

    description, schema = listed.description or "", schema_of(listed.input_schema)
    definition = Definition(description, schema, execute, check=checked_elsewhere, asks=True)
    return Tool(id, definition, external=True, source=f"mcp: {server}")
