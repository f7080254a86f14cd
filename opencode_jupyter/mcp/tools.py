"""A server's listing as tools: their names, schemas and calls (docs/opencode/core.md 6.4, 19)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..core.tool import Definition, Tool, checked_elsewhere

if TYPE_CHECKING:
    from mcp_types import Tool as Listed

    from ..core.context import ToolContext
    from ..core.result import ToolResult

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
    made: list[Tool] = []
    for server, listed in listings:
        for one in listed:
            base = prefix(server) + sanitise(one.name)
            id, number = base, 1
            while id in used:
                number += 1
                id = f"{base}_{number}"
            used.add(id)
            made.append(_tool(id, server, one, call))
    return made


def schema_of(given: dict[str, Any] | None) -> dict[str, Any]:
    """A tool's input schema as models are sent it."""
    schema = dict(given or {})
    properties = schema.get("properties")
    schema.update(
        type="object", properties=properties if isinstance(properties, dict) else {}, additionalProperties=False
    )
    return schema


def _tool(id: str, server: str, one: Listed, call: CallTool) -> Tool:
    name = one.name

    async def execute(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        await ctx.ask(id, ["*"], ["*"], {"server": server})
        ctx.proceed()
        return await call(server, name, arguments, ctx)

    description, schema = one.description or "", schema_of(one.input_schema)
    definition = Definition(description, schema, execute, check=checked_elsewhere, asks=True)
    return Tool(id, definition, external=True, source=f"mcp: {server}")
