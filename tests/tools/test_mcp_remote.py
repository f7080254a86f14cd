"""MCP servers over the web: streamable HTTP, SSE, and addresses where nothing answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.mcp import McpServers
from opencode_jupyter.mcp.errors import McpError

from ..support.mcp import npm
from .conftest import Approver

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Opened = Callable[..., AbstractAsyncContextManager[Workspace]]


@pytest.fixture
def opened(project: Path, approver: Approver, tmp_path: Path) -> Opened:
    @asynccontextmanager
    async def open_(mcp: dict[str, Any]) -> AsyncIterator[Workspace]:
        config = {"mcp": mcp, "permission": {"*": "allow"}}
        async with Workspace(project, config, data_dir=tmp_path / "data", approve=approver) as ws:
            yield ws

    return open_


@contextmanager
def everything(transport: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The everything server on a free port of this machine."""
    entry = npm("mcp-server-everything", transport)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, **entry["environment"], "PORT": str(port)}
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(entry["command"], env=env, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        last = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < last, "the server did not open its port"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}", process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server with what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("transport", ["streamableHttp", "sse"])
async def test_a_remote_server_is_reached_whichever_way_it_speaks(opened: Opened, transport: str) -> None:
    with everything(transport) as (url, process):
        async with opened({"far": {"type": "remote", "url": url, "timeout": 10_000}}) as ws:
            assert (await ws.call("far_echo", {"message": "hi"})).output == "Echo: hi"
            results = await asyncio.gather(*(ws.call("far_get-sum", {"a": n, "b": 1}) for n in range(10)))
            assert all(str(n + 1) in result.output for n, result in enumerate(results))
            servers = ws.service(McpServers)
            assert servers.status()["far"].target == url
            end(process)
            with pytest.raises(McpError):
                await ws.call("far_echo", {"message": "hi"})


class Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append(dict(self.headers))  # type: ignore[attr-defined]
        self.send_response(401)
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *arguments: Any) -> None:
        pass


async def test_a_server_that_wants_a_login_says_so_and_its_headers_stay_secret(opened: Opened) -> None:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        server.seen = []  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp?key=sesame-open"
        entry = {"type": "remote", "url": url, "headers": {"X-Key": "sesame-open"}, "oauth": False}
        async with opened({"far": entry}) as ws:
            await ws.registry.ids()
            status = ws.service(McpServers).status()["far"]
            assert status.state == "needs_auth"
            assert "sesame" not in repr(status)
            assert "sesame" not in "\n".join(ws.service(McpServers).logs("far"))
        server.shutdown()
        assert server.seen[0]["X-Key"] == "sesame-open"  # type: ignore[attr-defined]


class Large(BaseHTTPRequestHandler):
    """Answers every call with as many bytes as it asks for, as JSON or as an event."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        method, events = message.get("method"), False
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.get("id")}
        if method == "initialize":
            answer["result"] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "large", "version": "1"},
            }
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("json", "event")]
            answer["result"] = {"tools": tools}
        elif method == "tools/call":
            events = message["params"]["name"] == "event"
            text = "x" * message["params"]["arguments"]["size"]
            answer["result"] = {"content": [{"type": "text", "text": text}]}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        body = json.dumps(answer).encode()
        body = b"event: message\ndata: " + body + b"\n\n" if events else body
        self.send_response(202 if "id" not in message else 200)
        self.send_header("Content-Type", "text/event-stream" if events else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(405)
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.mark.parametrize("tool", ["far_json", "far_event"])
async def test_a_large_answer_fails_its_call(opened: Opened, tool: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Large) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        async with opened({"far": {"type": "remote", "url": url}}) as ws:
            ws.config.data["experimental"] = {"mcp_max_message_bytes": 200_000, "mcp_timeout": 10_000}
            assert len((await ws.call(tool, {"size": 20_000})).output) >= 20_000
            with pytest.raises(McpError, match=r"more than the limit of 0\.2 MB|exceeded the 200000 byte limit"):
                await ws.call(tool, {"size": 5_000_000})
            assert len((await ws.call(tool, {"size": 20_000})).output) >= 20_000
        server.shutdown()


async def test_an_address_where_nothing_answers_fails_in_words(opened: Opened) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with opened({"far": {"type": "remote", "url": f"http://127.0.0.1:{port}/mcp"}}) as ws:
        await ws.registry.ids()
        status = ws.service(McpServers).status()["far"]
        assert status.state == "failed"
        assert f"http://127.0.0.1:{port}/mcp can't be reached" in status.error
