"""Exa's search, over its hosted MCP endpoint. See docs/opencode/tools.md 11 and 12.

A call is one JSON-RPC request by POST; the answer is a stream of server-sent events, or plain JSON. A key is not
needed (there is a free allowance); one in the environment is sent along.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio

from ...core.context import ToolContext
from ...core.errors import ToolError
from ...core.secrets import hide
from . import url as urls
from .http_client import ACCEPTED, UnreachableError, WebResponse, resolve_addresses, send
from .sse import events

ENDPOINT = "https://mcp.exa.ai/mcp"
URL = "OPENCODE_EXA_URL"
"""Environment: another endpoint of the same protocol. No project's file can name one, since queries go there."""
KEY = "EXA_API_KEY"
"""Environment: sent as the header ``x-api-key``."""
LIMIT = 5 << 20
"""Bytes of an answer."""
SHOWN = 2000
"""Characters of an error's body that are shown."""


class ExaUnreachableError(ToolError):
    """There is no way to Exa: no network, or the host takes no connection."""


async def call_exa(ctx: ToolContext, tool: str, arguments: dict[str, Any], timeout: float, *, what: str) -> str | None:
    """Call one of Exa's tools.

    Args:
        ctx: the call this is for; shows how much has come.
        tool: Exa's name of it (``web_search_exa``).
        arguments: its arguments, as Exa spells them.
        timeout: seconds for everything.
        what: what errors begin with (``Search``).

    Returns:
        The text of the result's first part; None if there is none.

    Raises:
        ExaUnreachableError: Exa can't be reached.
        ToolError: it takes too long, or Exa says no.
    """
    where = urls.parse(os.environ.get(URL) or ENDPOINT)
    headers = {
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": ACCEPTED,
        "Content-Type": "application/json",
    }
    key = os.environ.get(KEY, "").strip()
    if key:
        headers["x-api-key"] = key
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    content = json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")
    ctx.metadata(metadata={"progress": {"message": f"asking {where.host}"}})
    try:
        with anyio.fail_after(timeout):
            addresses = await resolve_addresses(where)
            async with send(where, addresses, headers, method="POST", content=content) as answer:
                if not 200 <= answer.status < 300:
                    text = hide(await _start(answer), [key])[:SHOWN]
                    raise ToolError(f"{what} error ({answer.status}): {text}")
                result = await _result(answer, what, key)
                return None if result is None else hide(result, [key])
    except TimeoutError:
        raise ToolError(f"{what} request timed out") from None
    except UnreachableError as error:
        raise ExaUnreachableError(f"{what} error: {where.host} can't be reached. {error}") from error


async def _start(answer: WebResponse) -> str:
    """The beginning of an error's body."""
    body = bytearray()
    async for piece in answer.body():
        body += piece
        if len(body) > SHOWN * 4:
            break
    return body.decode("utf-8", "replace")


async def _result(answer: WebResponse, what: str, key: str) -> str | None:
    """The first result in the answer; a stream that stays open is left as soon as it is there."""
    streamed = "application/json" not in answer.headers.get("content-type", "").lower()
    async for text in _messages(answer, streamed=streamed):
        for message in _parsed(text):
            error, result = message.get("error"), message.get("result")
            if isinstance(error, dict):
                reason = hide(str(error.get("message", "")), [key])[:SHOWN]
                raise ToolError(f"{what} error ({error.get('code')}): {reason}")
            content = result.get("content") if isinstance(result, dict) else None
            if isinstance(content, list) and content and isinstance(content[0], dict):
                first = content[0].get("text")
                return first if isinstance(first, str) else ""
    return None


async def _messages(answer: WebResponse, *, streamed: bool) -> AsyncIterator[str]:
    """The messages of a body: the data of each server-sent event, or the body itself."""
    if streamed:
        async for data in events(_bounded(answer)):
            yield data.decode("utf-8", "replace")
    else:
        yield b"".join([piece async for piece in _bounded(answer)]).decode("utf-8", "replace")


async def _bounded(answer: WebResponse) -> AsyncIterator[bytes]:
    total = 0
    async for piece in answer.body():
        total += len(piece)
        if total > LIMIT:
            raise ToolError("The search's answer is larger than 5 MB")
        yield piece


def _parsed(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in an event's data: one, or one a line where a server puts no blank line between."""
    for part in (text, *text.split("\n")) if "\n" in text else (text,):
        try:
            message = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            yield message
        if part is text:
            return
