"""The official SDK's server over streamable HTTP on loopback; it lets in who has a token of an `AuthServer`."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl

from .auth_server import AuthServer


class _Verifier:
    def __init__(self, authorization: AuthServer) -> None:
        self._authorization = authorization

    async def verify_token(self, token: str) -> AccessToken | None:
        if not self._authorization.allowed(f"Bearer {token}"):
            return None
        return AccessToken(token=token, client_id="x", scopes=[])


@contextmanager
def mcp_remote(authorization: AuthServer, *, older: bool = False) -> Iterator[str]:
    """Its address; `older`: it speaks the older transport, with server-sent events."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    root = f"http://127.0.0.1:{listening.getsockname()[1]}"
    address = f"{root}/sse" if older else f"{root}/mcp"
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(f"{authorization.url}/as"),
        resource_server_url=AnyHttpUrl(address),
        validate_token_resource=False,
    )
    server = MCPServer("remote", token_verifier=_Verifier(authorization), auth=settings)

    @server.tool()
    def double(n: int) -> int:
        """Twice a number."""
        return n * 2

    authorization.resource = address
    app = server.sse_app() if older else server.streamable_http_app()
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield address
    finally:
        running.should_exit = True
        thread.join(10)
        listening.close()
