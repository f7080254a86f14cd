"""Connect to a server, a program or an address, as a client that answers its requests."""

from __future__ import annotations

import asyncio
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
from ..tools.process.environment import clean_environment
from .connection import LiveClient, ServerConnection
from .elicitation import Callbacks
from .errors import AuthError, McpError, auth_error, describe_error
from .oauth import Auth, auth_for
from .stdio import MAX_MESSAGE, ServerProgram, StdioTransport

if TYPE_CHECKING:
    from ..core.host import ToolHost

# The SDK logs whole tracebacks of connections that close; without a handler they would stand in the notebook's cells.
logging.getLogger("mcp").addHandler(logging.NullHandler())

NAME = "opencode"
"""What we call ourselves (docs/opencode/core.md 19.2)."""
_SSE_TIMEOUT = 5.0
_READ_TIMEOUT = 300.0


class Opener:
    """Connects to the servers of one workspace."""

    def __init__(self, workspace: ToolHost, callbacks: Callbacks) -> None:
        self._workspace = workspace
        self._callbacks = callbacks

    @asynccontextmanager
    async def __call__(self, connection: ServerConnection) -> AsyncIterator[LiveClient]:
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

    def _client(self, connection: ServerConnection, transport: Any) -> Client:
        async def on_log(params: LoggingMessageNotificationParams) -> None:
            connection.log.add(str(params.data), params.level)

        async def on_message(message: Any) -> None:
            if isinstance(message, ToolListChangedNotification):
                connection.relist_soon()

        return Client(
            transport,
            client_info=Implementation(name=NAME, version="1.0.0"),
            logging_callback=on_log,
            message_handler=on_message,
            list_roots_callback=self._callbacks.roots,
            elicitation_callback=self._callbacks.elicitation(connection),
            sampling_callback=self._callbacks.sampling(connection),
            cache=None,
        )

    @property
    def _max_message(self) -> int:
        """Bytes of one message of a server."""
        limit = self._workspace.config.get("experimental", "mcp_max_message_bytes")
        return limit if isinstance(limit, int) and limit > 0 else MAX_MESSAGE

    # ------------------------------------------------------------------ programs

    @asynccontextmanager
    async def _local(self, connection: ServerConnection) -> AsyncIterator[LiveClient]:
        spec, ended = connection.spec, asyncio.Event()
        experimental = self._workspace.config.data.get("experimental") or {}
        keep = experimental.get("shell_env_keep", ())
        env = clean_environment(os.environ, keep=[keep] if isinstance(keep, str) else keep, extra=spec.environment)
        cwd = _resolve(connection.folder, spec.cwd)
        argv = [program(spec.command[0], cwd, env, spec.name), *spec.command[1:]]
        sandbox = self._workspace.service(Sandbox)
        policy = sandbox.program("mcp", spec.name)
        server = ServerProgram(argv, cwd, env, policy)
        transport = StdioTransport(server, connection.log, ended.set, self._max_message)

        async def why() -> str:
            reason, last = await transport.exit_reason(), connection.log.last()
            return f"{reason}: {last}" if last else reason

        client = self._client(connection, transport)
        async with AsyncExitStack() as stack:
            try:
                with sandbox.startup_files_kept(policy):
                    async with asyncio.timeout(connection.limit):
                        await stack.enter_async_context(client)
                        _skip_result_validation(client)
            except TimeoutError as error:
                last = connection.log.last()
                text = f"it did not answer within {connection.limit:g} s" + (f"; it said: {last}" if last else "")
                raise McpError(spec.name, text) from error
            except Exception as error:
                if ended.is_set():
                    raise McpError(spec.name, f"it ended at its start ({await why()})") from error
                raise McpError(spec.name, f"it can't be started: {describe_error(error)}") from error
            yield LiveClient(client, ended, why, transport.process.pid if transport.process is not None else 0)

    # ------------------------------------------------------------------ addresses

    @asynccontextmanager
    async def _remote(self, connection: ServerConnection) -> AsyncIterator[LiveClient]:
        """Streamable HTTP, then SSE; a refusal for want of a login ends the trial."""
        spec = connection.spec
        transports = [spec.transport] if spec.transport else ["http", "sse"]
        failures: list[str] = []
        for name in transports:
            refused: list[int] = []
            auth = auth_for(self._workspace, spec)
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(connection.limit):
                        transport = await self._transport(stack, connection, name, refused, auth)
                        client = self._client(connection, transport)
                        await stack.enter_async_context(client)
                        _skip_result_validation(client)
                except Exception as error:
                    if refused or auth_error(error, spec.name) is not None:
                        raise _refusal(spec.name, error) from error
                    timed_out = isinstance(error, TimeoutError)
                    text = f"no answer within {connection.limit:g} s" if timed_out else describe_error(error)
                    failures.append(f"{name}: {text}")
                    continue
                ended = asyncio.Event()
                if auth is not None:
                    auth.on_problem = ended.set  # the older transport loses the error, and its request would wait
                yield LiveClient(client, ended, partial(_raise_problem, auth))
                return
        raise McpError(spec.name, f"{spec.shown} can't be reached ({'; '.join(failures)})")

    async def _transport(
        self,
        stack: AsyncExitStack,
        connection: ServerConnection,
        name: str,
        refused: list[int],
        auth: httpx2.Auth | None,
    ) -> Any:
        spec = connection.spec

        async def on_response(response: httpx2.Response) -> None:
            if response.status_code in (401, 403):
                refused.append(response.status_code)
            else:
                refused.clear()  # a login was renewed
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                response.stream = _LimitedBody(response.stream, self._max_message)

        def make_client(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity", **spec.headers, **(headers or {})},
                timeout=timeout or httpx2.Timeout(connection.limit, read=_READ_TIMEOUT),
                auth=auth,
                event_hooks={"response": [on_response]},
            )

        if name == "sse":
            return sse_client(spec.url, timeout=_SSE_TIMEOUT, httpx_client_factory=make_client, auth=auth)
        http = await stack.enter_async_context(make_client(auth=auth))
        return streamable_http_client(spec.url, http_client=http, max_sse_event_size=self._max_message)


def _skip_result_validation(client: Client) -> None:
    """Keep the SDK from checking results against the tools' output schemas.

    A result that does not fit would be lost, and the check imports jsonschema, whose formats take seconds to load.
    """

    async def accept(name: str, result: CallToolResult) -> None:
        pass

    client.session.validate_tool_result = accept  # type: ignore[method-assign]


def _resolve(folder: Path, path: str) -> str:
    return str(folder / os.path.expanduser(path))


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
    scripts = str(Path(sys.executable).parent)
    executable = shutil.which(command, path=env.get("PATH")) or shutil.which(command, path=scripts)
    if executable is None:
        raise McpError(server, f"the command {command} was not found; install it, or use its full path")
    return executable


def _refusal(server: str, error: BaseException) -> AuthError:
    known = auth_error(error, server)
    return known or AuthError(f"it wants a login: {describe_error(error)}", server=server)


async def _raise_problem(auth: Auth | None) -> str:
    if auth is not None and auth.problem is not None:  # a transport without a login just closes
        raise auth.problem
    return ""


class _LimitedBody(httpx2.AsyncByteStream):
    """The body of a response, which ends with an error past `limit` bytes."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._stream:
            count += len(chunk)
            if count > self._limit:
                raise httpx2.StreamError(
                    f"the server sent a message of more than the limit of {self._limit / 1e6:g} MB; "
                    "ask for less at a time"
                )
            yield chunk

    async def aclose(self) -> None:
        """Release the connection."""
        await self._stream.aclose()
