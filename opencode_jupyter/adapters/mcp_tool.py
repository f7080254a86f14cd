"""One tool of an MCP server that somebody else's code is connected to.

Servers of the configuration are another matter: the package starts and ends those itself (`opencode_jupyter.mcp`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import ToolError
from ..core.schema_validation import checker
from ..core.threads import call_soon, run_on_loop
from ._adapted_tool import adapted_tool

if TYPE_CHECKING:
    from mcp import Client, ClientSession
    from mcp.types import CallToolResult
    from mcp.types import Tool as McpTool

    from ..core.context import ToolContext
    from ..core.result import ToolResult
    from ..core.tool import Tool

T = TypeVar("T")
ANSWER = 5.0
"""Seconds that the session's event loop may take to answer at all."""


def tool_of(definition: McpTool, session: Client | ClientSession | None = None) -> Tool:
    """A tool that a session listed, bound to this session.

    Args:
        definition: what ``list_tools`` gave.
        session: stays open for as long as the tool is used. It is called on the event loop on which this runs.

    Raises:
        TypeError: the session is missing.
    """
    if not callable(getattr(session, "call_tool", None)):
        raise TypeError(
            f"the MCP tool {definition.name} is only a description: register(tool, session=...) with the mcp.Client or "
            "ClientSession it came from, or name its server under mcp in opencode.json"
        )
    schema = {"properties": {}, **(definition.input_schema or {}), "type": "object"}
    home = _running_loop()

    async def run(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        from ..mcp.results import error_of, result_of

        result: CallToolResult = await _await_on_loop(home, session.call_tool(definition.name, arguments))  # type: ignore[union-attr]
        if result.is_error:
            raise ToolError(error_of(result))
        return result_of(result)

    text = definition.description or definition.title or ""
    return adapted_tool(
        definition.name, text, schema, run, source="mcp", check=checker(schema, definition.name), external=True
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _await_on_loop(home: asyncio.AbstractEventLoop | None, work: Coroutine[Any, Any, T]) -> T:
    """Await what belongs to another event loop.

    Raises:
        ToolError: that loop has ended, or a cell keeps it busy.
    """
    current = asyncio.get_running_loop()
    if home is None or home is current:
        return await work
    if home.is_closed() or not home.is_running():
        work.close()
        raise ToolError("the event loop of this MCP session has ended; connect again and register the tool anew")
    answered = asyncio.Event()
    call_soon(home, call_soon, current, answered.set)
    try:
        await asyncio.wait_for(answered.wait(), ANSWER)
    except TimeoutError:
        work.close()
        raise ToolError(
            "this MCP session lives on the event loop that the cell blocks while it waits: await the call "
            "(%tool at the top level of a cell does), or name the server under mcp in opencode.json"
        ) from None
    return await run_on_loop(home, work)
