"""The body of a remote server's answer, up to a limit: past it the request fails that it answers, and no other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from .wire import TOO_LARGE

EVENTS = "text/event-stream"


def limit(response: httpx2.Response, most: int) -> None:
    """Let a response have at most so many bytes: in its body, or in each event of a stream of them."""
    if response.headers.get("content-type", "").startswith(EVENTS):
        response.stream = _Events(response.stream, most, _asked(response.request))
    else:
        response.stream = _Body(response.stream, most)


def _asked(request: httpx2.Request) -> Any:
    """The id of the JSON-RPC request that was sent; None for a stream that answers none."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.RequestNotRead):
        return None
    return message.get("id") if isinstance(message, dict) else None


def _words(most: int) -> str:
    return f"the server sent a message of more than the limit of {most / 1e6:g} MB; ask for less at a time"


class _Body(httpx2.AsyncByteStream):
    """A body that ends with an error past the limit."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._stream:
            count += len(chunk)
            if count > self._most:
                raise httpx2.StreamError(_words(self._most))
            yield chunk

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._stream.aclose()


class _Events(_Body):
    """A stream of events; in place of one past the limit comes an error, as the server might have sent it.

    The library gives the whole session up for an event that is too long.
    """

    def __init__(self, stream: Any, most: int, asked: Any) -> None:
        super().__init__(stream, most)
        self._asked = asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count, end = 0, b""
        async for chunk in self._stream:
            seen = (end + chunk).replace(b"\r", b"")
            last = seen.rfind(b"\n\n")
            count = len(seen) - last - 2 if last >= 0 else count + len(chunk)
            end = seen[-1:]
            if count <= self._most:
                yield chunk
                continue
            if self._asked is None:
                raise httpx2.StreamError(_words(self._most))
            error = {"code": TOO_LARGE, "message": _words(self._most)}
            answer = json.dumps({"jsonrpc": "2.0", "id": self._asked, "error": error})
            # what has come of the event becomes one of a kind that nobody listens to
            yield f"\nevent: dropped\n\nevent: message\ndata: {answer}\n\n".encode()
            return
