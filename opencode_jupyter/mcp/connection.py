"""One server: connecting, listing its tools, noticing its end; and calls of its tools.

What the SDK opens in one task it must close in the same task; so an owner task enters the client and leaves it, and
everybody else waits for that task.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from ..core.secrets import hide
from .configuration import CONNECT_LIMIT, ServerSpec
from .errors import McpError, describe_error, innermost
from .status import ServerState, ServerStatus

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcp import Client
    from mcp_types import CallToolResult, Tool

    from ..core.context import ToolContext

log = logging.getLogger(__name__)

LOG_LINES = 500
"""Lines kept of each server."""
LINE_LENGTH = 2000
"""Characters kept of a line."""
RETRY = 30.0
"""Seconds in which a server that could not be connected, or ended soon, is left alone unless a tool of it is called."""
JUST_FAILED = 3.0
"""Seconds after a failed attempt in which a call does not make another: looking a tool up takes several steps."""
PAGES = 100
"""Most pages of one listing."""
SETTLE = 0.1
"""Seconds in which several "the list changed" count as one."""


class ServerLog:
    """The last lines of a server; any thread may read them.

    Args:
        secrets: values that are never to be shown.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secrets)
        self._lines: deque[str] = deque(maxlen=LOG_LINES)
        self._unfinished = b""

    def add(self, text: str, source: str = "") -> None:
        """Add one line or more; `source` names their origin."""
        head = f"[{source}] " if source else ""
        for line in text.splitlines():
            self._lines.append(head + self.clean(line[:LINE_LENGTH]))

    def feed(self, data: bytes) -> None:
        """Add a chunk of the server's stderr; its last line is kept until it is whole."""
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        self._unfinished = self._unfinished[-LINE_LENGTH:]
        for line in lines:
            if line.strip():
                self.add(line.decode("utf-8", "replace").rstrip())

    def end(self) -> None:
        """Add the unfinished line: the server has ended."""
        if self._unfinished.strip():
            self.add(self._unfinished.decode("utf-8", "replace"))
        self._unfinished = b""

    def lines(self) -> list[str]:
        """The lines, oldest first."""
        return list(self._lines)

    def last(self) -> str:
        """The last line of stderr, which often says why a server ended; "" if there is none."""
        return next((line for line in reversed(self._lines) if line.strip() and not line.startswith("[")), "")

    def clean(self, text: str) -> str:
        """A text with the secrets replaced."""
        return hide(text, self._secrets)


@dataclass(slots=True)
class LiveClient:
    """A connected client, as `OpenClient` yields it."""

    client: Client
    ended: asyncio.Event
    """Set when the server sends nothing more."""
    end_reason: Callable[[], Awaitable[str]]
    """Why it ended, in words; waits a moment for its exit."""
    pid: int = 0


OpenClient = Callable[["ServerConnection"], "AbstractAsyncContextManager[LiveClient]"]


class ServerConnection:
    """A server in use. Belongs to the loop of the servers; the attributes may be read on any thread.

    Args:
        spec: the server.
        folder: where a local server runs.
        open_client: connects a client; raises what went wrong.
        on_change: called when `status` or `tools` changed; the second argument is True if `tools` did.

    Attributes:
        spec: the server.
        folder: where a local server runs.
        log: its last lines.
        state: OpenCode's word for its state.
        error: why it failed.
        tools: what it listed last; empty while it is not connected.
        connecting: it is being connected.
        calls: its calls in progress, oldest first.
    """

    def __init__(
        self,
        spec: ServerSpec,
        folder: Path,
        open_client: OpenClient,
        on_change: Callable[[ServerConnection, bool], None],
    ) -> None:
        self.spec = spec
        self.folder = folder
        self.log = ServerLog(spec.secrets)
        self.state: ServerState = "disabled"
        self.error = ""
        self.tools: list[Tool] = []
        self.connecting = False
        self.calls: list[ServerCall] = []
        self._open_client = open_client
        self._on_change = on_change
        self._live: LiveClient | None = None
        self._owner: asyncio.Task[None] | None = None
        self._attempt_over = asyncio.Event()
        self._stopping = False
        self._retry_at = 0.0
        self._failed_at = -JUST_FAILED
        self._relist_due = False
        self._relisting: set[asyncio.Task[None]] = set()

    def current_call(self) -> ServerCall | None:
        """The call that a request of the server most likely belongs to: the newest, unless it is known."""
        return _current_call.get() or (self.calls[-1] if self.calls else None)

    @property
    def is_due(self) -> bool:
        """True if a listing should wait for it: it is being connected, was never tried, or failed a while ago."""
        return self.connecting or (self.state != "connected" and time.monotonic() >= self._retry_at)

    @property
    def has_just_failed(self) -> bool:
        """True if an attempt to connect failed a moment ago."""
        return self.state != "connected" and time.monotonic() < self._failed_at + JUST_FAILED

    @property
    def limit(self) -> float:
        """Seconds for connecting, and for a listing."""
        return self.spec.timeout or CONNECT_LIMIT

    def status(self) -> ServerStatus:
        """Its status; any thread may call it."""
        live, spec = self._live, self.spec
        info = live.client.server_info if live is not None and self.state == "connected" else None
        name = " ".join(filter(None, (info.name, info.version))) if info is not None else ""
        pid = live.pid if live is not None else 0
        return ServerStatus(self.state, self.error, len(self.tools), spec.target, spec.source, name, pid)

    # ------------------------------------------------------------------ connecting and ending

    async def client(self) -> Client:
        """The connected client; starts it if it is not connected.

        Raises:
            McpError: it can't be connected.
        """
        await self.connect()
        live = self._live
        if self.state != "connected" or live is None:
            raise McpError(self.spec.name, f"the MCP server {self.spec.name} is not connected: {self.error}")
        return live.client

    async def connect(self) -> None:
        """Connect it unless it is connected; `state` says whether that went well. Bounded by its time limits."""
        if self._live is not None and self._live.ended.is_set() and self._owner is not None:
            await asyncio.wait([self._owner])  # it ended this moment
        if self._stopping:
            return
        if self._owner is None or self._owner.done():
            self.connecting = True
            self._attempt_over = asyncio.Event()
            self._owner = asyncio.create_task(self._run(), name=f"mcp {self.spec.name}")
        if self.connecting:
            await self._attempt_over.wait()

    async def stop(self) -> None:
        """End it; bounded."""
        self._stopping = True
        if self._live is not None:
            self._live.ended.set()
        owner = self._owner
        if owner is not None and not owner.done():
            if self.connecting:
                owner.cancel()
            await asyncio.wait([owner], timeout=2.0)
            if not owner.done():
                owner.cancel()
                await asyncio.wait([owner], timeout=0.5)
        self._set_state("disabled", "")

    async def close_broken(self) -> str:
        """End the connection, which a request found closed; returns why, in words, "" if that is not known."""
        live = self._live
        if live is None:
            return self.error
        live.ended.set()
        return await live.end_reason()

    async def _run(self) -> None:
        """The owner task: connect, and stay until the server ends."""
        began = time.monotonic()
        try:
            async with self._open_client(self) as live:
                self._live = live
                await self._list_first(live.client)
                reason = await self._stay(live)
        except Exception as error:
            self._fail(error)
        else:
            if not self._stopping:
                self._retry_at = began + RETRY
                self.log.add(f"the server ended: {reason}", "client")
                self._set_state("failed", f"it ended: {reason}")
        finally:
            self.connecting = False
            self._live = None
            self._attempt_over.set()

    async def _list_first(self, client: Client) -> None:
        try:
            async with asyncio.timeout(self.limit):
                self.tools = await self._list_tools(client)
        except Exception as error:
            self.log.add(describe_error(error), "client")
            raise McpError(self.spec.name, f"Failed to get tools: {describe_error(error)}") from error
        self.connecting = False
        self._set_state("connected", "")

    async def _stay(self, live: LiveClient) -> str:
        """Wait for the end of a connected server; returns its reason."""
        listener = asyncio.create_task(self._listen(live.client))
        try:
            await live.ended.wait()
            return await live.end_reason() or "the connection was closed"
        finally:
            for task in (listener, *self._relisting):
                task.cancel()
            await asyncio.wait([listener, *self._relisting])
            self._relist_due = False

    def _fail(self, error: BaseException) -> None:
        cause = innermost(error)
        self._failed_at = time.monotonic()
        self._retry_at = self._failed_at + RETRY
        message = self.log.clean(str(cause) if isinstance(cause, McpError) else describe_error(cause))
        self.log.add(message, "client")
        log.debug("MCP server %s: %s", self.spec.name, message)
        self.connecting = False
        self._set_state(getattr(cause, "state", "failed"), message)

    def _set_state(self, state: ServerState, error: str) -> None:
        had_tools = bool(self.tools)
        self.state, self.error = state, error
        if state != "connected":
            self.tools = []
        self._attempt_over.set()
        self._on_change(self, had_tools or bool(self.tools))

    # ------------------------------------------------------------------ listing

    def relist_soon(self) -> None:
        """List the tools again in a moment: the server says that they changed."""
        if not self._relist_due and not self._stopping:
            self._relist_due = True
            task = asyncio.create_task(self._list_again())
            self._relisting.add(task)
            task.add_done_callback(self._relisting.discard)

    async def _list_again(self) -> None:
        await asyncio.sleep(SETTLE)
        self._relist_due = False
        live = self._live
        if live is None or self.state != "connected":
            return
        try:
            async with asyncio.timeout(self.limit):
                tools = await self._list_tools(live.client)
        except Exception as error:
            self.log.add(f"its tools could not be listed again: {describe_error(error)}", "client")
            return
        if fingerprints(tools) != fingerprints(self.tools):
            self.tools = tools
            self._on_change(self, True)

    async def _list_tools(self, client: Client) -> list[Tool]:
        if client.server_capabilities.tools is None:
            return []
        tools: dict[str, Tool] = {}
        duplicates: set[str] = set()
        async for page in pages(client.list_tools):
            for tool in page.tools:
                if tool.name in tools:
                    duplicates.add(tool.name)
                tools.setdefault(tool.name, tool)
        if duplicates:
            self.log.add(f"it lists {', '.join(sorted(duplicates))} more than once; the first counts", "client")
        return list(tools.values())

    async def _listen(self, client: Client) -> None:
        """Receive changes of the tools from servers of the newer protocol; older ones send a notification unasked."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed or client.protocol_version < "2026":
            return
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self.relist_soon()
        except Exception as error:
            self.log.add(f"changes of its tools cannot be received: {describe_error(error)}", "client")


async def pages(list_page: Callable[..., Awaitable[Any]]) -> AsyncIterator[Any]:
    """The pages of a listing; the rest is left out if a server names a page again or has more than `PAGES`."""
    cursors: list[str | None] = [None]
    while cursors[-1] not in cursors[:-1] and len(cursors) <= PAGES:
        page = await list_page(cursor=cursors[-1])
        yield page
        if not page.next_cursor:
            return
        cursors.append(page.next_cursor)


def fingerprints(tools: list[Tool]) -> dict[str, str]:
    """A hash of each tool's definition, by its name: what a person's "for this session" was given for."""
    return {tool.name: _fingerprint(tool) for tool in tools}


def _fingerprint(tool: Tool) -> str:
    fields = [tool.description, tool.input_schema, tool.title, tool.annotations and tool.annotations.model_dump()]
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()


_current_call: ContextVar[ServerCall | None] = ContextVar("mcp_call", default=None)
"""The call in whose task this code runs; requests of servers of the older protocol come outside of it."""


class ServerCall:
    """A call of a server's tool in progress, on the loop of the servers.

    Args:
        ctx: the call as its tool sees it.
        limit: seconds without progress or a result; waiting for a person or a model does not count.
    """

    def __init__(self, ctx: ToolContext, limit: float) -> None:
        self.ctx = ctx
        self.limit = limit
        self.samplings = 0
        """Answers of a model that the server requested."""
        self._scope = anyio.CancelScope()
        self._pauses = 0
        self._progress = ""

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock while a person or a model answers."""
        self._pauses += 1
        self._scope.deadline = float("inf")
        try:
            yield
        finally:
            self._pauses -= 1
            self._restart_clock()

    async def _on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._restart_clock()
        state: dict[str, Any] = {"value": _number(progress)}
        if total is not None:
            state["total"] = _number(total)
        if message:
            state["message"] = message
        share = f"{state['value']} of {state['total']}" if "total" in state else str(state["value"])
        self._progress = f"; it had come to {share}" + (f" ({message})" if message else "")
        self.ctx.metadata(metadata={"progress": state})

    async def run(self, connection: ServerConnection, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool.

        Args:
            connection: its server.
            name: the tool's name as the server has it.
            arguments: as the server expects them.

        Raises:
            McpError: the server is missing, ended, took too long, or refused.
        """
        server = connection.spec.name
        client = await connection.client()
        token = _current_call.set(self)
        connection.calls.append(self)
        try:
            with self._scope:
                self._restart_clock()
                return await client.call_tool(name, arguments, progress_callback=self._on_progress)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                reason = await connection.close_broken() or error.message
                text = f"the MCP server {server} ended during the call ({reason}){self._progress}"
                raise McpError(server, text) from error
            raise McpError(server, f"the MCP server {server} refused the call: {error.message}") from error
        except ValidationError as error:
            text = f"the MCP server {server} sent a result that does not fit the protocol"
            raise McpError(server, f"{text}: {error.errors(include_url=False)[0]['msg']}") from error
        except McpError:
            raise
        except RuntimeError as error:  # the result does not fit the tool's own output schema
            raise McpError(server, f"the MCP server {server}: {error}") from error
        except Exception as error:
            raise McpError(server, f"the MCP server {server} could not be reached: {describe_error(error)}") from error
        finally:
            connection.calls.remove(self)
            _current_call.reset(token)
        raise McpError(
            server,
            f"the MCP server {server} did not answer within {self.limit:g} s{self._progress}; "
            f'"timeout" (in ms) of its entry in the configuration allows more',
        )

    def _restart_clock(self) -> None:
        if not self._pauses:
            self._scope.deadline = asyncio.get_running_loop().time() + self.limit


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
