"""One request to a server: a call of its tool with progress and time limit, its prompts and resources, and results."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult, EmbeddedResource
from pydantic import ValidationError

from ..core.result import Attachment, ToolResult
from .connection import PAGES
from .elicitation import running
from .errors import McpError, words_of

if TYPE_CHECKING:
    from mcp import Client

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


_MIME = re.compile(r"[\w.+-]+/[\w.+-]+(?:;\s*[\w.+=-]+)*")
OCTETS = "application/octet-stream"


def result_of(given: CallToolResult) -> ToolResult:
    """Texts joined by a blank line; pictures, sounds and files as attachments; rows where the result is a table."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for item in given.content:
        if item.type == "text":
            texts.append(item.text)
        elif item.type in ("image", "audio"):
            attachments.append(_attachment(item.mime_type, item.data))
        elif item.type == "resource_link":
            said = [f"{item.title or item.name}: {item.uri}", item.description or ""]
            texts.append(" - ".join(word for word in said if word))
        elif item.type == "resource":
            text = getattr(item.resource, "text", None)
            if isinstance(text, str):
                texts.append(text)
            else:
                blob = getattr(item.resource, "blob", "")
                attachments.append(_attachment(item.resource.mime_type, blob, str(item.resource.uri)))
    metadata: dict[str, Any] = {}
    extra = (given.model_extra or {}).get("metadata")
    if isinstance(extra, dict):
        metadata.update(extra)
        for name in ("truncated", "outputPath"):  # only the pipeline says these
            metadata.pop(name, None)
    structured = given.structured_content
    if structured is not None:
        metadata["structuredContent"] = structured
        if not texts:
            texts.append(json.dumps(structured, indent=2, ensure_ascii=False))
    return ToolResult(output="\n\n".join(texts), metadata=metadata, attachments=attachments, records=_rows(structured))


def error_of(given: CallToolResult) -> str:
    """What a result that is an error says."""
    return result_of(given).output or "the tool failed without a message"


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
