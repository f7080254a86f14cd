"""Connecting to a server: its program or its address, and what it may ask of us."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation, LoggingMessageNotificationParams, ToolListChangedNotification

from ..runtime.sandbox.service import Sandbox
from ..tools.process import clean_environment
from .connection import Connection, LiveClient, State
from .elicitation import Callbacks
from .errors import McpError, auth_error, innermost, words_of
from .oauth import auth_for
from .stdio import MAX_MESSAGE, TOO_LARGE, Wire

if TYPE_CHECKING:
    from ..core.host import ToolHost

# The SDK logs whole tracebacks of connections that close; without a handler they would stand in the notebook's cells.
logging.getLogger("mcp").addHandler(logging.NullHandler())

NAME = "opencode"
"""What we call ourselves (docs/opencode/core.md 19.2)."""
_WAIT = 5.0
_READ = 300.0
_AUTH_WORDS = ("registration", "client_id")


class NotAllowedError(McpError):
    """A remote server wants to know who asks.

    Attributes:
        state: ``needs_auth`` or ``needs_client_registration``.
    """

    def __init__(self, server: str, message: str, state: State) -> None:
        super().__init__(server, message)
        self.state = state


class Opener:
    """Connects to the servers of one workspace."""

    def __init__(self, workspace: ToolHost, callbacks: Callbacks) -> None:
        self._workspace = workspace
        self._callbacks = callbacks

    @asynccontextmanager
    async def __call__(self, connection: Connection) -> AsyncIterator[LiveClient]:
        """A client, connected within the server's time limit.

        Raises:
            McpError: it can't be; the message says why in one line.
        """
        if connection.spec.local:
            async with self._local(connection) as client:
                yield client
        else:
            async with self._remote(connection) as client:
                yield client

    def _client(self, connection: Connection, transport: Any) -> Client:
        async def logged(params: LoggingMessageNotificationParams) -> None:
            connection.log.add(str(params.data), params.level)

        async def heard(message: Any) -> None:
            if isinstance(message, ToolListChangedNotification):
                connection.relist_soon()

        return Client(
            transport,
            client_info=Implementation(name=NAME, version="1.0.0"),
            logging_callback=logged,
            message_handler=heard,
            list_roots_callback=self._callbacks.roots,
            elicitation_callback=self._callbacks.elicitation(connection),
            sampling_callback=self._callbacks.sampling(connection),
            cache=None,
        )

    def _limit(self) -> int:
        """Bytes of one message of a server."""
        most = self._workspace.config.get("experimental", "mcp_max_message_bytes")
        return most if isinstance(most, int) and most > 0 else MAX_MESSAGE

    # ------------------------------------------------------------------ programs

    @asynccontextmanager
    async def _local(self, connection: Connection) -> AsyncIterator[LiveClient]:
        spec, ended = connection.spec, asyncio.Event()
        experimental = self._workspace.config.data.get("experimental") or {}
        keep = experimental.get("shell_env_keep", ())
        env = clean_environment(os.environ, keep=[keep] if isinstance(keep, str) else keep, extra=spec.environment)
        cwd = _folder(connection.folder, spec.cwd)
        argv = [program(spec.command[0], cwd, env, spec.name), *spec.command[1:]]
        wire = Wire(
            argv,
            cwd=cwd,
            env=env,
            log=connection.log,
            on_end=ended.set,
            max_message=self._limit(),
            sandbox=self._workspace.service(Sandbox).program("mcp", spec.name),
        )

        async def why() -> str:
            last = connection.log.last()
            return f"{await wire.exit()}: {last}" if last else await wire.exit()

        client = self._client(connection, wire)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(connection.limit):
                    await stack.enter_async_context(client)
                    _take_any_result(client)
            except TimeoutError as error:
                said = connection.log.last()
                text = f"it did not answer within {connection.limit:g} s" + (f"; it said: {said}" if said else "")
                raise McpError(spec.name, text) from error
            except Exception as error:
                found = innermost(error)
                if ended.is_set():
                    raise McpError(spec.name, f"it ended at its start ({await why()})") from error
                raise McpError(spec.name, f"it can't be started: {words_of(found)}") from error
            yield LiveClient(client, ended, why, wire.program.pid if wire.program is not None else 0)

    # ------------------------------------------------------------------ addresses

    @asynccontextmanager
    async def _remote(self, connection: Connection) -> AsyncIterator[LiveClient]:
        """Streamable HTTP, then SSE; a refusal for want of a login ends the trial."""
        spec = connection.spec
        ways = [spec.transport] if spec.transport else ["http", "sse"]
        failures: list[str] = []
        for way in ways:
            refused: list[int] = []
            auth = auth_for(self._workspace, spec)
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(connection.limit):
                        transport = await self._transport(stack, connection, way, refused, auth)
                        client = self._client(connection, transport)
                        await stack.enter_async_context(client)
                        _take_any_result(client)
                except Exception as error:
                    if refused or auth_error(error, spec.name) is not None:
                        raise _refusal(spec.name, error) from error
                    timed_out = isinstance(error, TimeoutError)
                    text = f"no answer within {connection.limit:g} s" if timed_out else words_of(error)
                    failures.append(f"{way}: {text}")
                    continue
                ended = asyncio.Event()
                if auth is not None:
                    auth.on_problem = ended.set  # the older transport loses the error, and its request would wait
                yield LiveClient(client, ended, partial(_closed, auth))
                return
        raise McpError(spec.name, f"{spec.shown} can't be reached ({'; '.join(failures)})")

    async def _transport(
        self, stack: AsyncExitStack, connection: Connection, way: str, refused: list[int], auth: httpx2.Auth | None
    ) -> Any:
        spec = connection.spec

        async def answered(response: httpx2.Response) -> None:
            if response.status_code in (401, 403):
                refused.append(response.status_code)
            else:
                refused.clear()  # a login was renewed
            limit(response, self._limit())

        def make(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity", **spec.headers, **(headers or {})},
                timeout=timeout or httpx2.Timeout(connection.limit, read=_READ),
                auth=auth,
                event_hooks={"response": [answered]},
            )

        if way == "sse":
            return sse_client(spec.url, timeout=_WAIT, httpx_client_factory=make, auth=auth)
        http = await stack.enter_async_context(make(auth=auth))
        return streamable_http_client(spec.url, http_client=http, max_sse_event_size=None)


def _take_any_result(client: Client) -> None:
    """Keep the SDK from checking results against the tools' output schemas.

    A result that does not fit would be lost to the person who waits for it; and the check imports jsonschema, whose
    formats (which Jupyter installs) take seconds to load.
    """

    async def taken(name: str, result: CallToolResult) -> None:
        pass

    client.session.validate_tool_result = taken  # type: ignore[method-assign]


def program(command: str, cwd: str, env: dict[str, str], server: str) -> str:
    """The absolute path of a command: on the PATH, or beside the kernel's Python.

    Raises:
        McpError: there is none.
    """
    command = os.path.expanduser(command)
    if os.sep in command:
        path = Path(cwd) / command
        if not os.access(path, os.X_OK) or path.is_dir():
            raise McpError(server, f"{path} does not exist, or is not a program")
        return str(path)
    found = shutil.which(command, path=env.get("PATH")) or shutil.which(command, path=str(Path(sys.executable).parent))
    if found is None:
        raise McpError(server, f"the command {command} was not found; install it, or use its full path")
    return found


def _folder(base: Path, named: str) -> str:
    return str(base / os.path.expanduser(named)) if named else str(base)


def _refusal(server: str, error: BaseException) -> McpError:
    found = auth_error(error, server)
    if found is not None:
        return found
    text = words_of(error)
    registration = any(word in text.lower() for word in _AUTH_WORDS)
    state: State = "needs_client_registration" if registration else "needs_auth"
    return NotAllowedError(server, f"it wants a login: {text}", state)


async def _closed(auth: httpx2.Auth | None) -> str:
    problem = getattr(auth, "problem", None)  # a transport that fails for want of a login just closes
    return str(problem) if problem is not None else "the connection was closed"


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
