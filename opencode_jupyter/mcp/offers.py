"""What servers offer besides tools: prompts and resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, EmbeddedResource

from ..core.result import ToolResult
from .connection import PAGES
from .results import result_of

if TYPE_CHECKING:
    from mcp import Client


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that a server offers; ``arguments`` are dicts of ``name``, ``description``, ``required``."""

    server: str
    name: str
    description: str = ""
    arguments: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that a server offers."""

    server: str
    uri: str
    name: str = ""
    description: str = ""
    mime: str = ""


async def prompts(server: str, client: Client) -> list[Prompt]:
    """A server's prompts."""
    if client.server_capabilities.prompts is None:
        return []
    found: list[Prompt] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_prompts(cursor=cursor)
        for one in page.prompts:
            arguments = [
                {"name": a.name, "description": a.description or "", "required": bool(a.required)}
                for a in one.arguments or ()
            ]
            found.append(Prompt(server, one.name, one.description or "", arguments))
        cursor = page.next_cursor
        if not cursor:
            break
    return found


async def prompt(client: Client, name: str, arguments: dict[str, str]) -> list[dict[str, str]]:
    """A prompt's messages."""
    given = await client.get_prompt(name, arguments)
    return [{"role": message.role, "text": _text(message.content)} for message in given.messages]


async def resources(server: str, client: Client) -> list[Resource]:
    """A server's resources."""
    if client.server_capabilities.resources is None:
        return []
    found: list[Resource] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_resources(cursor=cursor)
        found += [
            Resource(server, str(one.uri), one.name, one.description or "", one.mime_type or "")
            for one in page.resources
        ]
        cursor = page.next_cursor
        if not cursor:
            break
    return found


async def read(client: Client, uri: str) -> ToolResult:
    """A resource."""
    given = await client.read_resource(uri)
    items = [EmbeddedResource(type="resource", resource=one) for one in given.contents]
    return result_of(CallToolResult(content=list(items)))


def _text(content: Any) -> str:
    """What a message says, as text; something else is named."""
    result = result_of(CallToolResult(content=[content]))
    if result.attachments:
        return f"[{result.attachments[0].mime}]"
    return result.output
