"""Connect to a server, a program or an address, as a client that answers its requests.

The SDK's own transport for programs joins chunks quadratically (20 MB take 10 s), has no size limit, and starts a
process that outlives a killed kernel. Here a message that is too long ends the connection, and the program ends with
the workspace (`tools.process`).
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CallToolResult,
    Implementation,
    JSONRPCError,
    JSONRPCResponse,
    LoggingMessageNotificationParams,
    ToolListChangedNotification,
    jsonrpc_message_adapter,
)

from ..sandbox.service import Sandbox
from ..tools.process.environment import clean_environment
from ..tools.process.stdio import start_stdio
from .connection import LiveClient, ServerConnection
from .errors import AuthError, McpError, auth_error, describe_error
from .oauth import Auth, auth_for
from .server_requests import ServerRequests

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream

    from ..core.host import ToolHost
    from ..tools.process.stdio import Stdio
    from .connection import ServerLog

# The SDK logs whole tracebacks of connections that close; without a handler they would stand in the notebook's cells.
logging.getLogger("mcp").addHandler(logging.NullHandler())

NAME = "opencode"
"""What we call ourselves (docs/opencode/core.md 19.2)."""
_SSE_TIMEOUT = 5.0
_READ_TIMEOUT = 300.0
MAX_MESSAGE = 16_000_000
"""Bytes of one message."""
GRACE = 0.5
"""Seconds a server has to exit after its stdin is closed."""
EXIT = 0.3
"""Seconds between the end of a program's output and its exit."""
BACKLOG = 2000
"""Unhandled messages after which requests and notifications are dropped; responses never are."""


def open_client(workspace: ToolHost, connection: ServerConnection) -> AbstractAsyncContextManager[LiveClient]:
    """A client, connected within the server's time limit.

    Raises:
        McpError: on entering, if it can't be; the message says why in one line.
    """
    return (_start_program if connection.spec.is_local else _open_address)(workspace, connection)


def _make_client(workspace: ToolHost, connection: ServerConnection, transport: Any) -> Client:
    async def on_log(params: LoggingMessageNotificationParams) -> None:
        connection.log.add(str(params.data), params.level)

    async def on_message(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            connection.relist_soon()

    requests = ServerRequests(workspace, connection)
    return Client(
        transport,
        client_info=Implementation(name=NAME, version="1.0.0"),
        logging_callback=on_log,
        message_handler=on_message,
        list_roots_callback=requests.roots,
        elicitation_callback=requests.elicit,
        sampling_callback=requests.sample if requests.allows_sampling else None,
        cache=None,
    )


def _max_message(workspace: ToolHost) -> int:
    """Bytes of one message of a server."""
    limit = workspace.config.get("experimental", "mcp_max_message_bytes")
    return limit if isinstance(limit, int) and limit > 0 else MAX_MESSAGE


@asynccontextmanager
async def _start_program(workspace: ToolHost, connection: ServerConnection) -> AsyncIterator[LiveClient]:
    spec, ended = connection.spec, asyncio.Event()
    experimental = workspace.config.data.get("experimental") or {}
    keep = experimental.get("shell_env_keep", ())
    env = clean_environment(os.environ, keep=keep, extra=spec.environment)
    cwd = _working_folder(connection)
    argv = [_executable(spec.command[0], cwd, env, spec.name), *spec.command[1:]]
    sandbox = workspace.service(Sandbox)
    policy = sandbox.program("mcp", spec.name)
    start = partial(start_stdio, argv, cwd=cwd, env=env, sandbox=policy)
    transport = StdioTransport(start, connection.log, ended.set, _max_message(workspace))

    async def end_reason() -> str:
        reason, last = await transport.exit_reason(), connection.log.last()
        return f"{reason}: {last}" if last else reason

    client = _make_client(workspace, connection, transport)
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
                raise McpError(spec.name, f"it ended at its start ({await end_reason()})") from error
            raise McpError(spec.name, f"it can't be started: {describe_error(error)}") from error
        yield LiveClient(client, ended, end_reason, transport.process.pid if transport.process is not None else 0)


@asynccontextmanager
async def _open_address(workspace: ToolHost, connection: ServerConnection) -> AsyncIterator[LiveClient]:
    """Streamable HTTP, then SSE; a refusal for want of a login ends the attempt."""
    spec = connection.spec
    failures: list[str] = []
    for name in [spec.transport] if spec.transport else ["http", "sse"]:
        refused: list[int] = []
        auth = auth_for(workspace, spec)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(connection.limit):
                    transport = await _http_transport(stack, connection, name, refused, auth, _max_message(workspace))
                    client = _make_client(workspace, connection, transport)
                    await stack.enter_async_context(client)
                    _skip_result_validation(client)
            except Exception as error:
                known = auth_error(error, spec.name)
                if refused or known is not None:
                    login = f"it wants a login: {describe_error(error)}"
                    raise (known or AuthError(login, server=spec.name)) from error
                timed_out = isinstance(error, TimeoutError)
                text = f"no answer within {connection.limit:g} s" if timed_out else describe_error(error)
                failures.append(f"{name}: {text}")
                continue
            ended = asyncio.Event()
            if auth is not None:
                auth.on_problem = ended.set  # the older transport loses the error, and its request would wait
            yield LiveClient(client, ended, partial(_raise_problem, auth))
            return
    raise McpError(spec.name, f"{spec.target} can't be reached ({'; '.join(failures)})")


async def _http_transport(
    stack: AsyncExitStack,
    connection: ServerConnection,
    name: str,
    refused: list[int],
    auth: httpx2.Auth | None,
    max_message: int,
) -> Any:
    spec = connection.spec

    async def on_response(response: httpx2.Response) -> None:
        if response.status_code in (401, 403):
            refused.append(response.status_code)
        else:
            refused.clear()  # a login was renewed
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _LimitedBody(response.stream, max_message)

    def make_http_client(
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
        return sse_client(spec.url, timeout=_SSE_TIMEOUT, httpx_client_factory=make_http_client, auth=auth)
    http = await stack.enter_async_context(make_http_client(auth=auth))
    return streamable_http_client(spec.url, http_client=http, max_sse_event_size=max_message)


def _skip_result_validation(client: Client) -> None:
    """Keep the SDK from checking results against the tools' output schemas.

    A result that does not fit would be lost.
    """

    async def accept(name: str, result: CallToolResult) -> None:
        pass

    client.session.validate_tool_result = accept  # type: ignore[method-assign]


def _working_folder(connection: ServerConnection) -> str:
    return str(connection.folder / os.path.expanduser(connection.spec.cwd))


def _executable(command: str, cwd: str, env: dict[str, str], server: str) -> str:
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


# ---------------------------------------------------------------------- a program's stdin and stdout


class StdioTransport:
    """The transport of one connection; entered once.

    Args:
        start: starts the program.
        log: receives its stderr, and lines on its stdout that are no messages.
        on_end: called once when nothing more will come.
        max_message: bytes of one message.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[Stdio]],
        log: ServerLog,
        on_end: Callable[[], None],
        max_message: int = MAX_MESSAGE,
    ) -> None:
        self._start = start
        self._log = log
        self._on_end = on_end
        self._limit = max_message
        self._line = bytearray()
        self.too_long = ""
        self._dropped = False
        self.process: Stdio | None = None
        self._send, self.received = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _MessageWriter]:
        self.process = await self._start()
        self.process.subscribe_errors(self._log.feed)
        self.process.listen(self.feed, self.handle_end)
        return self.received, _MessageWriter(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self.process
        if process is None:
            return
        self._on_end = _do_nothing
        with anyio.CancelScope(shield=True):
            process.close_stdin()
            await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=GRACE)
            await process.stop()
        self._log.end()
        self._send.close()
        self.received.close()

    async def exit_reason(self) -> str:
        """How the program ended, in words; waits a moment for its exit."""
        if self.too_long:
            return self.too_long
        if self.process is None:
            return "it was not started"
        done, _ = await asyncio.wait([asyncio.ensure_future(self.process.wait())], timeout=EXIT)
        if not done:
            return "it closed its output"
        status = done.pop().result()
        return f"signal {status.signal}" if status.signal else f"exit code {status.code}"

    # ------------------------------------------------------------------ to the server

    def write(self, item: SessionMessage) -> None:
        """Send a message.

        Raises:
            anyio.BrokenResourceError: the server no longer reads.
        """
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        try:
            if self.process is None:
                raise BrokenPipeError
            self.process.write(data)
        except (OSError, BufferError) as error:
            self._log.add(f"could not be sent a message: {error}", "client")
            raise anyio.BrokenResourceError from error

    # ------------------------------------------------------------------ from the server

    def feed(self, data: bytes) -> None:
        """Take a chunk of any size."""
        *pieces, rest = data.split(b"\n")
        for piece in pieces:
            if self._extend(piece):
                line, self._line = bytes(self._line), bytearray()
                self._receive_line(line.strip())
        self._extend(rest)

    def _extend(self, piece: bytes) -> bool:
        """Add to the current line; False if a line was too long, which ends the connection."""
        if not self.too_long and len(self._line) + len(piece) > self._limit:
            self.too_long = f"it sent a message of more than the limit of {self._limit / 1e6:g} MB"
            self._line.clear()
            self.handle_end()
        if self.too_long:
            return False
        self._line += piece
        return True

    def _receive_line(self, line: bytes) -> None:
        if not line:
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._log.add(line[:200].decode("utf-8", "replace"), "stdout")
            return
        is_response = isinstance(message, JSONRPCResponse | JSONRPCError)
        if not is_response and self.received.statistics().current_buffer_used >= BACKLOG:
            if not self._dropped:
                self._log.add("sends faster than its messages can be handled: some were dropped", "client")
            self._dropped = True
            return
        try:
            self._send.send_nowait(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the session is over

    def handle_end(self) -> None:
        """Take the end of the output."""
        if self._line:
            self._receive_line(bytes(self._line).strip())
            self._line.clear()
        self._log.end()
        self._send.close()
        on_end, self._on_end = self._on_end, _do_nothing
        on_end()


class _MessageWriter:
    """What the session sends with."""

    def __init__(self, transport: StdioTransport) -> None:
        self._transport = transport

    async def send(self, item: SessionMessage, /) -> None:
        self._transport.write(item)

    async def aclose(self) -> None:
        """The program's stdin is closed with the transport."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _do_nothing() -> None:
    """Stands for a callback that was called already, or is no longer needed."""
