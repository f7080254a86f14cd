"""One call of a server's tool: its time limit, its progress, and what is done when the server goes away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from .callbacks import running
from .errors import McpError, words_of

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from ..core.context import ToolContext
    from .connection import Connection


class Running:
    """A call in progress, on the loop of the servers.

    Args:
        ctx: the call as its tool sees it.
        limit: seconds without a word of the server; a person's time to think does not count.
    """

    def __init__(self, ctx: ToolContext, limit: float) -> None:
        self.ctx = ctx
        self.limit = limit
        self.sampled = 0
        """Answers of a model that the server asked for."""
        self._scope = anyio.CancelScope()
        self._asked = 0
        self._reached = ""

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """A person, or a model, is asked meanwhile: the clock stands still."""
        self._asked += 1
        self._scope.deadline = float("inf")
        try:
            yield
        finally:
            self._asked -= 1
            self._heard()

    async def heard(self, progress: float, total: float | None, message: str | None) -> None:
        """The server says how far it is."""
        self._heard()
        said: dict[str, Any] = {"value": _number(progress)}
        if total is not None:
            said["total"] = _number(total)
        if message:
            said["message"] = message
        share = f"{said['value']} of {said['total']}" if "total" in said else str(said["value"])
        self._reached = f"; it had come to {share}" + (f" ({message})" if message else "")
        self.ctx.metadata(metadata={"progress": said})

    async def run(self, connection: Connection, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool.

        Args:
            connection: its server.
            name: the tool's name as the server has it.
            arguments: as the server wants them.

        Raises:
            McpError: the server is not there, went away, took too long, or refused.
        """
        server = connection.spec.name
        client = await connection.client()
        token = running.set(self)
        connection.running.append(self)
        try:
            with self._scope:
                self._heard()
                return await client.call_tool(name, arguments, progress_callback=self.heard)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                why = await connection.lost()
                text = f"the MCP server {server} ended during the call ({why}){self._reached}"
                raise McpError(server, text) from error
            raise McpError(server, f"the MCP server {server} refused the call: {error.message}") from error
        except ValidationError as error:
            text = f"the MCP server {server} sent a result that does not fit the protocol"
            raise McpError(server, f"{text}: {error.errors(include_url=False)[0]['msg']}") from error
        except McpError:
            raise
        except RuntimeError as error:  # the SDK's word for a result that does not fit the tool's own output schema
            raise McpError(server, f"the MCP server {server}: {error}") from error
        except Exception as error:
            raise McpError(server, f"the MCP server {server} could not be reached: {words_of(error)}") from error
        finally:
            connection.running.remove(self)
            running.reset(token)
        raise McpError(
            server,
            f"the MCP server {server} did not answer within {self.limit:g} s{self._reached}; "
            f'"timeout" (in ms) of its entry in the configuration allows more',
        )

    def _heard(self) -> None:
        if not self._asked:
            self._scope.deadline = asyncio.get_running_loop().time() + self.limit


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
