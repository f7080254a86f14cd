"""A web site on loopback that can misbehave in every way: each path is answered by a function of the test."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

CERTIFICATE = Path(__file__).parent.parent / "data" / "site_certificate.pem"
"""Key and self-signed certificate of site.test, localhost and 127.0.0.1, for these tests alone."""


@dataclass
class Request:
    """What a client asked for."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Connection:
    """How a handler answers."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: str = "200 OK", **headers: str | int) -> None:
        """Send a status line and headers (``content_type`` becomes Content-Type)."""
        lines = [f"HTTP/1.1 {status}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def page(self, body: bytes | str, content_type: str = "text/html", **headers: str | int) -> None:
        """Send a whole answer."""
        data = body.encode() if isinstance(body, str) else body
        await self.head(content_type=content_type, content_length=len(data), **headers)
        await self.send(data)

    def reset(self) -> None:
        """Break the connection hard."""
        self.writer.transport.abort()


Handler = Callable[[Request, Connection], Awaitable[None]]


class Site:
    """A site in a thread of its own; use it as a context manager.

    Attributes:
        routes: path (without its query) to the function that answers.
        requests: what was asked for, in order.
        port: where it listens on 127.0.0.1.
    """

    def __init__(self, *, tls: bool = False) -> None:
        self.routes: dict[str, Handler] = {}
        self.requests: list[Request] = []
        self.port = 0
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def on(self, path: str) -> Callable[[Handler], Handler]:
        """Answer a path with the decorated function."""

        def add(handler: Handler) -> Handler:
            self.routes[path] = handler
            return handler

        return add

    def serve(
        self, path: str, body: bytes | str, content_type: str = "text/html", status: str = "200 OK", **headers: str
    ) -> None:
        """Answer a path with a fixed page."""

        async def handler(_: Request, to: Connection) -> None:
            data = body.encode() if isinstance(body, str) else body
            kind = {"content_type": content_type} if content_type else {}
            await to.head(status, content_length=len(data), **kind, **headers)
            await to.send(data)

        self.routes[path] = handler

    def redirect(self, path: str, location: str, status: str = "302 Found") -> None:
        """Answer a path with a redirect."""
        self.serve(path, "", status=status, location=location)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        context = None
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._answer(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context, backlog=100)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            try:
                request = await self._request(reader)
                self.requests.append(request)
                handler = self.routes.get(request.path.partition("?")[0], _missing)
                await handler(request, Connection(reader, writer))
            finally:
                writer.close()

    @staticmethod
    async def _request(reader: asyncio.StreamReader) -> Request:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        method, path, _ = first.split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _missing(_: Request, to: Connection) -> None:
    await to.head("404 Not Found", content_length=0)
