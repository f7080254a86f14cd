"""A server of the official SDK: numbers, progress, a question, pictures, tools that come and go."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Annotated, Any

from mcp_types import AudioContent, BlobResourceContents, EmbeddedResource, ResourceLink, TextContent
from pydantic import BaseModel

from mcp.server import MCPServer
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve

server = MCPServer("demo")


class Row(BaseModel):
    name: str
    size: int


class Form(BaseModel):
    name: str
    age: int


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def rows() -> list[Row]:
    """A table."""
    return [Row(name="a", size=1), Row(name="b", size=2)]


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool()
async def steps(count: int, pause: float, ctx: Context[Any, Any]) -> str:
    """Say how far it is."""
    for step in range(count):
        await ctx.report_progress(step + 1, count, f"step {step + 1}")
        await asyncio.sleep(pause)
    return "done"


@server.tool()
async def wait(seconds: float) -> str:
    """Wait without a word."""
    await asyncio.sleep(seconds)
    return "waited"


def form() -> Elicit[Form]:
    return Elicit("Who are you?", Form)


@server.tool()
async def who(answer: Annotated[ElicitationResult[Form], Resolve(form)]) -> str:
    """Ask a person."""
    return f"{answer.action}: {getattr(answer, 'data', None)}"


@server.tool(structured_output=False)
def media() -> list[Any]:
    """One of each kind of content."""
    data = base64.b64encode(b"bytes").decode()
    return [
        TextContent(type="text", text="first"),
        Image(data=b"\x89PNG", format="png"),
        AudioContent(type="audio", data=data, mime_type="audio/wav"),
        EmbeddedResource(
            type="resource",
            resource=BlobResourceContents(uri="file:///x.bin", blob=data, mime_type="application/zip"),
        ),
        ResourceLink(type="resource_link", name="link", uri="file:///y.txt"),
        TextContent(type="text", text="last"),
    ]


@server.tool()
def environment(name: str) -> str:
    """A variable of the server's environment."""
    return os.environ.get(name, "unset")


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


@server.resource("demo://motto")
def motto() -> str:
    """A motto."""
    return "Slow and steady."


if __name__ == "__main__":
    server.run()
