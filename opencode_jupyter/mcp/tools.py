"""The tools that servers list, as tools of the registry (docs/opencode/core.md 6.4, 19)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..core.ids import clean_tool_id
from ..core.tool import Definition, Tool, checked_elsewhere

if TYPE_CHECKING:
    from mcp_types import Tool as ListedTool

    from ..core.context import ToolContext
    from ..core.result import ToolResult

CallTool = Callable[[str, str, dict[str, Any], "ToolContext"], Awaitable["ToolResult"]]
"""Calls a tool: server, the tool's own name, arguments, context."""


def prefix(server: str) -> str:
    """What the ids of a server's tools begin with."""
    return f"{clean_tool_id(server)}_"


def make_tools(listings: Iterable[tuple[str, list[ListedTool]]], reserved: Iterable[str], call: CallTool) -> list[Tool]:
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
            base = prefix(server) + clean_tool_id(tool.name)
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
