"""What servers answer, as this package has it: results of tools, prompts, resources."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, EmbeddedResource

from ..core.result import Attachment, ToolResult
from .connection import pages

if TYPE_CHECKING:
    from mcp import Client

_MIME = re.compile(r"[\w.+-]+/[\w.+-]+(?:;\s*[\w.+=-]+)*")
OCTETS = "application/octet-stream"


def result_of(result: CallToolResult) -> ToolResult:
    """Texts joined by a blank line; pictures, sounds and files as attachments; rows where the result is a table."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for item in result.content:
        if item.type == "text":
            texts.append(item.text)
        elif item.type in ("image", "audio"):
            attachments.append(_attachment(item.mime_type, item.data))
        elif item.type == "resource_link":
            texts.append(" - ".join(filter(None, [f"{item.title or item.name}: {item.uri}", item.description])))
        elif item.type == "resource":
            text = getattr(item.resource, "text", None)
            if isinstance(text, str):
                texts.append(text)
            else:
                blob = getattr(item.resource, "blob", "")
                attachments.append(_attachment(item.resource.mime_type, blob, str(item.resource.uri)))
    metadata: dict[str, Any] = {}
    extra = (result.model_extra or {}).get("metadata")
    if isinstance(extra, dict):
        metadata.update(extra)
        for name in ("truncated", "outputPath"):  # only the pipeline sets these
            metadata.pop(name, None)
    structured = result.structured_content
    if structured is not None:
        metadata["structuredContent"] = structured
        if not texts:
            texts.append(json.dumps(structured, indent=2, ensure_ascii=False))
    return ToolResult(output="\n\n".join(texts), metadata=metadata, attachments=attachments, records=_rows(structured))


def error_of(result: CallToolResult) -> str:
    """The message of a result that is an error."""
    return result_of(result).output or "the tool failed without a message"


def _attachment(mime: str | None, data: str, filename: str | None = None) -> Attachment:
    kind = mime if mime and _MIME.fullmatch(mime) else OCTETS
    return Attachment(kind, f"data:{kind};base64,{data}", filename)


def _rows(structured: Any) -> list[dict[str, Any]] | None:
    """The rows of a table: a list of objects, alone or as the only entry of an object."""
    if isinstance(structured, dict) and len(structured) == 1:
        structured = next(iter(structured.values()))
    if isinstance(structured, list) and structured and all(isinstance(row, dict) for row in structured):
        return list(structured)
    return None


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


async def list_prompts(server: str, client: Client) -> list[Prompt]:
    """A server's prompts."""
    if client.server_capabilities.prompts is None:
        return []
    return [_prompt(server, prompt) async for page in pages(client.list_prompts) for prompt in page.prompts]


def _prompt(server: str, prompt: Any) -> Prompt:
    arguments = [
        {"name": argument.name, "description": argument.description or "", "required": bool(argument.required)}
        for argument in prompt.arguments or ()
    ]
    return Prompt(server, prompt.name, prompt.description or "", arguments)


async def get_prompt(client: Client, name: str, arguments: dict[str, str]) -> list[dict[str, str]]:
    """A prompt's messages."""
    result = await client.get_prompt(name, arguments)
    return [{"role": message.role, "text": _text(message.content)} for message in result.messages]


async def list_resources(server: str, client: Client) -> list[Resource]:
    """A server's resources."""
    if client.server_capabilities.resources is None:
        return []
    return [
        Resource(server, str(resource.uri), resource.name, resource.description or "", resource.mime_type or "")
        async for page in pages(client.list_resources)
        for resource in page.resources
    ]


async def read_resource(client: Client, uri: str) -> ToolResult:
    """A resource."""
    result = await client.read_resource(uri)
    items = [EmbeddedResource(type="resource", resource=content) for content in result.contents]
    return result_of(CallToolResult(content=list(items)))


def _text(content: Any) -> str:
    """A message's content as text; of anything else its type."""
    result = result_of(CallToolResult(content=[content]))
    if result.attachments:
        return f"[{result.attachments[0].mime}]"
    return result.output
