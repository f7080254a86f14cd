"""Our MCP server over HTTP on loopback, with the tools that the official conformance suite calls registered as ours.

Run as ``python conformance_server.py FOLDER``; it prints its address.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

import uvicorn

from opencode_jupyter import Attachment, ToolContext, ToolResult, Workspace, tool
from opencode_jupyter.mcp_server.server import ToolServer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "query": {"type": "string"},
    },
    "required": ["region"],
}
ASKING = ("elicitation", "streaming_elicitation", "input_required_result_elicitation")
ASKING_MORE = ("input_required_result_request_state", "input_required_result_tampered_state")


@tool
async def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@tool
async def test_image_content() -> ToolResult:
    """Give a picture."""
    return ToolResult(output="image", attachments=[Attachment.from_bytes(PNG, "image/png")])


@tool
async def test_audio_content() -> ToolResult:
    """Give a sound."""
    return ToolResult(output="audio", attachments=[Attachment.from_bytes(b"RIFF", "audio/wav")])


@tool
async def test_embedded_resource() -> ToolResult:
    """Give a file."""
    return ToolResult(output="file", attachments=[Attachment.from_bytes(b"x", "application/pdf", "a.pdf")])


@tool
async def test_multiple_content_types() -> ToolResult:
    """Give a text, a picture and a file."""
    files = [Attachment.from_bytes(PNG, "image/png"), Attachment.from_bytes(b"{}", "application/json", "a.json")]
    return ToolResult(output="Multiple content types test:", attachments=files)


@tool
async def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_progress(*, ctx: ToolContext) -> str:
    """Report how far it is."""
    for done in (0, 50, 100):
        ctx.metadata(metadata={"progress": {"value": done, "total": 100, "message": f"step {done}"}})
        await asyncio.sleep(0.1)
    return "done"


@tool
async def test_logging_tool() -> str:
    """Say nothing on the way."""
    return "no logs were asked for"


@tool("json_schema_2020_12_tool", parameters=SCHEMA)
async def schema_tool(arguments: dict[str, Any]) -> str:
    """Take what its schema says."""
    return str(sorted(arguments))


@tool("test_custom_headers", parameters=HEADERS)
async def headers_tool(arguments: dict[str, Any]) -> str:
    """Take an argument that a client repeats in a header."""
    return str(arguments.get("region"))


def asking(name: str) -> Any:
    """A tool that asks the person at the client."""

    @tool(f"test_{name}")
    async def ask(message: str = "What is your name?", *, ctx: ToolContext) -> str:
        """Ask, and say what was answered."""
        return str(await ctx.question([{"question": message, "header": "name", "options": []}]))

    return ask


async def main(folder: Path) -> None:
    """Serve until it is ended."""
    project = folder / "project"
    project.mkdir(parents=True)
    async with Workspace(project, data_dir=folder / "data", store=False) as workspace:
        for function in (test_simple_text, test_image_content, test_audio_content, test_embedded_resource):
            workspace.registry.register(function)
        for function in (test_multiple_content_types, test_error_handling, test_tool_with_progress, test_logging_tool):
            workspace.registry.register(function)
        for function in (schema_tool, headers_tool):
            workspace.registry.register(function)
        for name in (*ASKING, *ASKING_MORE):
            workspace.registry.register(asking(name))

        @tool
        async def test_trigger_tool_change() -> str:
            """Add a tool."""

            @tool(f"added_{len(workspace.registry.names())}")
            async def added() -> str:
                """Do nothing."""
                return ""

            workspace.registry.register(added)
            return "added"

        workspace.registry.register(test_trigger_tool_change)
        app = ToolServer(workspace).server.streamable_http_app()
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
        await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve([listening])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
