"""MCP servers as a place that tools come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.sources import Rank, Unavailable
from .tools import prefix

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.tool import Tool
    from ..core.trust import Subject
    from ..core.workspace import Workspace
    from .manager import McpServers


class McpTools:
    """The tools of the MCP servers; the servers are started when one of their tools, or all tools, are wanted."""

    rank = Rank.MCP

    def __init__(self, workspace: Workspace) -> None:
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
        found = []
        for name, spec in self.servers.specs().items():
            off = self.servers.switched_off(spec)
            reason = off or self.servers.why_not(spec)
            if reason:
                found.append(Unavailable(f"{prefix(name)}*", f"mcp: {name}", reason, quiet=bool(off)))
        return found

    def untrusted(self) -> Sequence[Subject]:
        """The servers that wait for a person's trust."""
        return self.servers.untrusted()

    @property
    def quiet(self) -> bool:
        """See `ToolSource.quiet`."""
        return self.servers.none

    def settled(self, wanted: str | None) -> bool:
        """Return whether every server that a tool of this id may come from is connected, or can't be."""
        servers = self.servers
        return servers.none or not (servers.behind(wanted) or servers.stale(wanted))

    async def prepare(self, wanted: str | None, call: Call | None) -> None:
        """Connect those that are not, side by side. For one that the project brings, a person is asked first.

        Raises:
            ToolError: the person refused.
        """
        servers, trust = self.servers, self._workspace.trust
        behind = servers.behind(wanted)
        if call is not None:
            for spec in behind:
                if not servers.trusted(spec):
                    await trust.require(spec.subject(), call)
        names = [spec.name for spec in behind if servers.trusted(spec)]
        if names or servers.stale(wanted):
            await servers.bring_up(names)
