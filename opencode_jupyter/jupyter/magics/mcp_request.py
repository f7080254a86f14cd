"""One ``%mcp`` line taken apart: the server it names, its options, and how its work is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import InvalidArgumentsError, ToolError
from ...core.suggestions import did_you_mean
from .subcommands import LineRequest, said
from .words import Word

if TYPE_CHECKING:
    from ...mcp import McpServers, ServerSpec
    from ...mcp.connection import Status
    from ..notebook import Notebook


class Request(LineRequest):
    """One ``%mcp`` line: its words, and the servers they are about."""

    def __init__(self, notebook: Notebook, line: str, rest: list[Word]) -> None:
        from ...mcp import McpServers

        super().__init__(notebook, line, rest)
        self.servers: McpServers = notebook.workspace.service(McpServers)

    def name(self, usage: str) -> str:
        """The server that the first word names; the word is taken out.

        Raises:
            InvalidArgumentsError: there is none, or no such server.
        """
        if not self.rest:
            raise InvalidArgumentsError(f"Which server? {usage}")
        return self.known(said(self.rest.pop(0)))

    def known(self, name: str) -> str:
        """A server's name.

        Raises:
            InvalidArgumentsError: there is no such server.
        """
        there = list(self.servers.specs())
        if name in there:
            return name
        hint = did_you_mean(name, there) or (f" There are {', '.join(there)}." if there else "")
        add = "" if there else " No MCP server yet: %mcp add NAME URL, or %mcp add NAME -- COMMAND"
        raise InvalidArgumentsError(f"There is no MCP server {name}.{hint}{add}")

    def spec(self, name: str) -> ServerSpec:
        """A server's configuration."""
        return self.servers.specs()[name]

    def up(self, name: str) -> Status:
        """How a server is, connected if it can be. One that was switched off stays so.

        Raises:
            ToolError: it is switched off.
        """
        off = self.servers.switched_off(self.spec(name))
        if off:
            raise ToolError(off)
        status = self.servers.status()[name]
        return status if status.state == "connected" else self.wait(self.servers.connect(name))


__all__ = ["Request", "said"]
