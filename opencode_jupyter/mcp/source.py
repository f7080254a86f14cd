"""MCP servers as a source of tools: what they list, and when they start (docs/opencode/core.md 6.4, 19)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.tool import Definition, Tool, checked_elsewhere
from ..core.tool_source import Rank, Unavailable

if TYPE_CHECKING:
    from mcp_types import Tool as Listed

    from ..core.call import Call
    from ..core.context import ToolContext
    from ..core.host import ToolHost
    from ..core.result import ToolResult
    from ..core.trust import Subject
    from .manager import McpServers


class McpTools:
    """The tools of the MCP servers; the servers are started when one of their tools, or all tools, are needed."""

    rank = Rank.MCP

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._servers: McpServers | None = None

    @property
    def servers(self) -> McpServers:
        """The servers behind the tools."""
        if self._servers is None:
            from .manager import McpServers

            self._servers = self._workspace.service(McpServers)
        return self._servers

    def tools(self) -> Sequence[Tool]:
        """The tools of the servers that are connected."""
        return self.servers.tools()

    def unavailable(self) -> Sequence[Unavailable]:
        """The servers that have no tools now, with the reason; those that are switched off are quiet."""
        unavailable = []
        for name, spec in self.servers.specs().items():
            off = self.servers.switched_off(spec)
            reason = off or self.servers.why_unavailable(spec)
            if reason:
                unavailable.append(Unavailable(f"{prefix(name)}*", f"mcp: {name}", reason, quiet=bool(off)))
        return unavailable

    def untrusted(self) -> Sequence[Subject]:
        """The servers that need a person's trust."""
        return self.servers.untrusted()

    @property
    def quiet(self) -> bool:
        """See `ToolSource.quiet`."""
        return self.servers.is_empty

    def is_fresh(self, tool_id: str | None) -> bool:
        """Return whether every server that a tool of this id may come from is connected, or can't be."""
        servers = self.servers
        return servers.is_empty or not (servers.needed(tool_id) or servers.outdated(tool_id))

    async def prepare(self, tool_id: str | None, call: Call | None) -> None:
        """Connect those that are not, side by side. For one that the project brings, a person is asked first.

        Raises:
            ToolError: the person refused.
        """
        servers, trust = self.servers, self._workspace.trust
        needed = servers.needed(tool_id)
        if call is not None:
            for spec in needed:
                if not servers.trusted(spec):
                    await trust.require(spec.subject(), call)
        names = [spec.name for spec in needed if servers.trusted(spec)]
        if names or servers.outdated(tool_id):
            await servers.bring_up(names)


_OTHER = re.compile(r"[^A-Za-z0-9_-]")
CallTool = Callable[[str, str, dict[str, Any], "ToolContext"], Awaitable["ToolResult"]]
"""Calls a tool: server, the tool's own name, arguments, context."""


def sanitise(name: str) -> str:
    """A name in the characters that providers take."""
    return _OTHER.sub("_", name)


def prefix(server: str) -> str:
    """What the ids of a server's tools begin with."""
    return f"{sanitise(server)}_"


def tools_of(listings: Iterable[tuple[str, list[Listed]]], taken: Iterable[str], call: CallTool) -> list[Tool]:
    """The tools of all servers. No two have one id, and none has that of a built-in tool: the later gets a number.

    Args:
        listings: servers with what each listed, each name once.
        taken: ids that a server's tool may not have.
        call: calls a tool.
    """
    used = set(taken)
    tools: list[Tool] = []
    for server, listed in listings:
        for tool in listed:
            base = prefix(server) + sanitise(tool.name)
            id, number = base, 1
            while id in used:
                number += 1
                id = f"{base}_{number}"
            used.add(id)
            tools.append(_tool(id, server, tool, call))
    return tools


def schema_of(input_schema: dict[str, Any] | None) -> dict[str, Any]:
    """A tool's input schema as models are sent it."""
    schema = dict(input_schema or {})
    properties = schema.get("properties")
    schema.update(
        type="object", properties=properties if isinstance(properties, dict) else {}, additionalProperties=False
    )
    return schema


def _tool(id: str, server: str, listed: Listed, call: CallTool) -> Tool:
    name = listed.name

    async def execute(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        await ctx.ask(id, ["*"], ["*"], {"server": server})
        ctx.proceed()
        return await call(server, name, arguments, ctx)

    description, schema = listed.description or "", schema_of(listed.input_schema)
    definition = Definition(description, schema, execute, check=checked_elsewhere, asks=True)
    return Tool(id, definition, external=True, source=f"mcp: {server}")
