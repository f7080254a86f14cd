"""One provider's HTTP connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import anyio

from ...core.threads import submit

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 30.0
"""Seconds for a connection to stand."""
MOST_CONNECTIONS = 200
"""At a time: as many as runs go side by side."""
LOOPBACK = ("all://localhost", "all://127.0.0.1", "all://[::1]")
"""Reached without a proxy, whatever ``HTTP_PROXY`` is: servers of the user's own."""


class ProviderConnection:
    """The connections to one provider; they are made at the first request; each event loop has its own.

    A request without data for `timeout` seconds is given up; None is no limit.
    """

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()
        self._active: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
        self.library: Any = None
        """The HTTP library, once it is loaded."""

    async def open(self) -> httpx2.AsyncClient:
        """The client; loading the library and the certificates takes a fifth of a second, on a thread."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            new_client = await asyncio.to_thread(self._make)
            client = self._clients.setdefault(loop, new_client)
        return client

    def _make(self) -> httpx2.AsyncClient:
        import httpx2

        self.library = httpx2
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(self._timeout, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=20, keepalive_expiry=60),
            mounts=dict.fromkeys(LOOPBACK),
            follow_redirects=False,
        )

    @asynccontextmanager
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[httpx2.Response, None]:
        """Send a request and give the response, its body still to be read; the connection ends with the context,
        unless the body was read whole.

        Raises:
            httpx2.HTTPError, httpx2.InvalidURL: it did not work.
        """
        client = await self.open()
        loop = asyncio.get_running_loop()
        self._active[loop] = self._active.get(loop, 0) + 1
        handshake = _Handshake()
        extensions = {"trace": handshake.trace}
        try:
            async with client.stream("POST", url, headers=headers, content=body, extensions=extensions) as response:
                yield response
        finally:
            self._active[loop] -= 1
            await handshake.close_unfinished()

    async def close_idle(self) -> None:
        """Close the connections that this loop keeps for its next request, unless one is under way."""
        loop = asyncio.get_running_loop()
        if not self._active.get(loop):
            client = self._clients.pop(loop, None)
            if client is not None:
                await client.aclose()

    async def aclose(self) -> None:
        """Close all connections. Twice is harmless."""
        clients, self._clients = self._clients, WeakKeyDictionary()
        for loop, client in list(clients.items()):
            if loop is asyncio.get_running_loop():
                await client.aclose()
            elif loop.is_running():
                submit(loop, client.aclose())


class _Handshake:
    """Closes a connection whose TLS handshake is given up: the HTTP library forgets its socket when it is cancelled.

    It receives the library's steps through the request extension ``trace`` (httpcore2's documentation, "Extensions").
    """

    def __init__(self) -> None:
        self._stream: Any = None
        self._started = False

    async def trace(self, step: str, info: Mapping[str, Any]) -> None:
        """A step of the library."""
        if step.endswith("connect_tcp.complete"):
            self._stream = info["return_value"]
        elif step.endswith("start_tls.started"):
            self._started = True
        elif step.endswith("start_tls.complete"):
            self._started = False

    async def close_unfinished(self) -> None:
        """The request is over."""
        if self._started and self._stream is not None:
            with anyio.CancelScope(shield=True), contextlib.suppress(Exception):
                await self._stream.aclose()
