"""One server: connecting, listing, noticing its end, starting it again. One task owns all of it.

What the SDK opens in one task it must close in the same task; so an owner task enters the client and leaves it, and
everybody else asks that task.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..core.secrets import hide
from .configuration import CONNECT, ServerSpec
from .errors import McpError, innermost, words_of

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mcp import Client
    from mcp_types import Tool

    from .calls import Running

LINES = 500
"""Lines kept of each server."""
LENGTH = 2000
"""Characters kept of a line."""


class Log:
    """A ring of lines; any thread may read it.

    Args:
        secrets: values that are never to be shown.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secrets)
        self._lines: deque[str] = deque(maxlen=LINES)
        self._open = b""

    def add(self, text: str, source: str = "") -> None:
        """Add what is one line or more; `source` says where it came from."""
        head = f"[{source}] " if source else ""
        for line in text.splitlines():
            self._lines.append(head + self.clean(line[:LENGTH]))

    def feed(self, data: bytes) -> None:
        """Add a chunk of the server's stderr; its last line is kept until it is whole."""
        *lines, self._open = (self._open + data).split(b"\n")
        self._open = self._open[-LENGTH:]
        for line in lines:
            if line.strip():
                self.add(line.decode("utf-8", "replace").rstrip())

    def end(self) -> None:
        """The server is over: what stands open is a line too."""
        if self._open.strip():
            self.add(self._open.decode("utf-8", "replace"))
        self._open = b""

    def lines(self) -> list[str]:
        """The lines, oldest first."""
        return list(self._lines)

    def last(self) -> str:
        """The last line of stderr, which often says why a server ended; "" if there is none."""
        return next((line for line in reversed(self._lines) if line.strip() and not line.startswith("[")), "")

    def clean(self, text: str) -> str:
        """A text with the secrets replaced."""
        return hide(text, self._secrets)


log = logging.getLogger(__name__)

State = Literal["connected", "disabled", "failed", "needs_auth", "needs_client_registration"]
RESTARTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each restart of a server that ended again soon; after the last it stays down."""
STEADY = 30.0
"""Seconds after which a server that runs has its earlier ends forgiven."""
RETRY = 30.0
"""Seconds in which a server that could not be connected is left alone, unless somebody calls one of its tools."""
JUST = 3.0
"""Seconds after an attempt that failed in which a call does not make another: looking a tool up takes several steps."""
PAGES = 100
"""Most pages of one listing."""
SETTLE = 0.1
"""Seconds in which several "the list changed" count as one."""


@dataclass(frozen=True, slots=True)
class Status:
    """How a server is.

    Attributes:
        state: OpenCode's words.
        error: why it failed.
        tools: how many tools it has.
        target: its command line or address, without secrets.
        source: the file that configures it.
        name: what it calls itself, and its version.
        pid: process of a local server.
    """

    state: State
    error: str = ""
    tools: int = 0
    target: str = ""
    source: str = ""
    name: str = ""
    pid: int = 0


@dataclass(slots=True)
class LiveClient:
    """A connected client, as `open_client` gives it."""

    client: Client
    ended: asyncio.Event
    """Set when the server says nothing more."""
    why: Callable[[], Awaitable[str]]
    """Why it ended, in words; waits a moment for its exit."""
    pid: int = 0


OpenClient = Callable[["Connection"], "AbstractAsyncContextManager[LiveClient]"]


class Connection:
    """A server while it is wanted. Belongs to the loop of the servers, except what says otherwise.

    Args:
        spec: what it is.
        folder: where a local server runs.
        open_client: connects a client; raises what went wrong.
        on_change: told when `status` or `tools` are not what they were.

    Attributes:
        spec: what it is.
        folder: where a local server runs.
        log: its last lines; any thread may read them.
        state: OpenCode's word for how it is; any thread may read it.
        error: why it failed.
        tools: what it listed last; empty while it is not connected. Any thread may read it.
        connecting: whether it is being connected, or will be in a moment.
        running: its calls in progress, oldest first.
    """

    def __init__(
        self,
        spec: ServerSpec,
        folder: Path,
        open_client: OpenClient,
        on_change: Callable[[Connection, bool], None],
    ) -> None:
        self.spec = spec
        self.folder = folder
        self.log = Log(spec.secrets)
        self.state: State = "disabled"
        self.error = ""
        self.tools: list[Tool] = []
        self.connecting = False
        self.running: list[Running] = []
        self._open = open_client
        self._on_change = on_change
        self._connected: LiveClient | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        """Set, and replaced, when an attempt to connect is over."""
        self._wake = asyncio.Event()
        self._stopping = False
        self._pausing = False
        self._lived = False
        self._failed_at = 0.0
        self._tried_at = -JUST
        self._relist: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ for everybody

    @property
    def due(self) -> bool:
        """True if it should be tried (again): never tried, or a while ago. Any thread may ask."""
        if self.state == "connected" or self.connecting:
            return self.connecting and not self._pausing
        return self._failed_at == 0.0 or time.monotonic() >= self._failed_at + RETRY

    @property
    def just_tried(self) -> bool:
        """True if an attempt to connect failed this moment. Any thread may ask."""
        return self.state != "connected" and time.monotonic() < self._tried_at + JUST

    @property
    def limit(self) -> float:
        """Seconds for connecting, and for a listing."""
        return self.spec.timeout or CONNECT

    def status(self) -> Status:
        """How it is; any thread may ask."""
        live = self._connected
        info = live.client.server_info if live is not None and self.state == "connected" else None
        named = " ".join(word for word in (info.name, info.version) if word) if info is not None else ""
        return Status(
            self.state,
            self.error,
            len(self.tools),
            self.spec.shown,
            self.spec.source,
            named,
            live.pid if live is not None else 0,
        )

    async def client(self) -> Client:
        """The connected client; waits for a start that is under way, and starts what is not.

        Raises:
            McpError: it can't be connected.
        """
        await self.connect()
        live = self._connected
        if self.state != "connected" or live is None:
            raise McpError(self.spec.name, f"the MCP server {self.spec.name} is not connected: {self.error}")
        return live.client

    async def connect(self) -> None:
        """Have it connected, or `state` say why it is not. Bounded by its time limits."""
        if self.state == "connected" and self._connected is not None and not self._connected.ended.is_set():
            return
        if self._stopping:
            return
        if self._task is None or self._task.done():
            self.connecting = True
            self._tried = asyncio.Event()
            self._task = asyncio.create_task(self._own(), name=f"mcp {self.spec.name}")
        elif not self.connecting:
            if self._connected is None or not self._connected.ended.is_set():
                return
            self.connecting = True  # it ended this moment; the owner task has not seen it yet
        tried = self._tried
        self._wake.set()  # somebody wants it: no waiting for the next restart
        await tried.wait()

    async def stop(self) -> None:
        """End it; bounded."""
        self._stopping = True
        self._wake.set()
        if self._connected is not None:
            self._connected.ended.set()
        task = self._task
        if task is not None and not task.done():
            if self.connecting:
                task.cancel()
            await asyncio.wait([task], timeout=2.0)
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=0.5)
        self._tell("disabled", "")

    async def lost(self) -> str:
        """A request found the connection closed; says why, in words."""
        live = self._connected
        if live is None:
            return self.error or "it ended"
        live.ended.set()
        return await live.why()

    def relist_soon(self) -> None:
        """The server says that its tools changed: list them again in a moment."""
        if self._relist is None and not self._stopping:
            self._relist = asyncio.get_running_loop().call_later(SETTLE, self._start_relist)

    # ------------------------------------------------------------------ the owner task

    async def _own(self) -> None:
        """Connect; when the server ends, connect again, later each time."""
        ends = 0
        self._lived = False
        try:
            while True:
                began = time.monotonic()
                try:
                    reason = await self._live()
                except Exception as error:
                    self._tried_at = time.monotonic()
                    wants_login = getattr(innermost(error), "state", "failed") != "failed"
                    if not self._lived or wants_login:
                        self._failed(error)
                        return
                    reason = self._words(error)
                    self._tell("failed", reason)
                if self._over():
                    return
                ends = 1 if time.monotonic() - began > STEADY else ends + 1
                self.log.add(f"the server ended: {reason}", "client")
                if ends > len(RESTARTS):
                    self._failed_at = time.monotonic()
                    self._tell("failed", f"it ended {ends} times in a row: {reason}")
                    return
                self.connecting = True
                self._tell("failed", f"it ended and is being started again: {reason}", tried=False)
                await self._pause(RESTARTS[ends - 1])
                if self._over():
                    return
        finally:
            self.connecting = False
            self._connected = None
            self._tried.set()

    def _over(self) -> bool:
        return self._stopping

    async def _live(self) -> str:
        """One connection from its start to its end; gives the reason of the end."""
        async with self._open(self) as live:
            self._connected = live
            try:
                async with asyncio.timeout(self.limit):
                    self.tools = await self._listed(live.client)
            except Exception as error:
                self.log.add(words_of(error), "client")
                raise McpError(self.spec.name, f"Failed to get tools: {words_of(error)}") from error
            self._failed_at = 0.0
            self._lived = True
            self.connecting = False
            self._tell("connected", "")
            listener = asyncio.create_task(self._listen(live.client))
            try:
                await live.ended.wait()
                reason = await live.why()
            finally:
                listener.cancel()
                for task in (listener, *self._tasks):
                    task.cancel()
                await asyncio.wait([listener, *self._tasks])
                if self._relist is not None:
                    self._relist.cancel()
                    self._relist = None
                if not self._stopping:
                    self.connecting = True  # who asks from now on waits for the next connection
        return reason

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        self._pausing = seconds > 0
        if self._pausing:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), seconds)
        self._pausing = False

    def _failed(self, error: BaseException) -> None:
        found = innermost(error)
        self._failed_at = time.monotonic()
        state: State = getattr(found, "state", "failed")
        text = self._words(error)
        self.log.add(text, "client")
        log.debug("MCP server %s: %s", self.spec.name, text)
        self.connecting = False
        self._tell(state, text)

    def _words(self, error: BaseException) -> str:
        found = innermost(error)
        return self.log.clean(str(found) if isinstance(found, McpError) else words_of(found))

    def _tell(self, state: State, error: str, *, tried: bool = True) -> None:
        had = bool(self.tools)
        self.state, self.error = state, error
        if state != "connected":
            self.tools = []
        if tried:
            self._tried.set()
            self._tried = asyncio.Event()
        self._on_change(self, had or bool(self.tools))

    # ------------------------------------------------------------------ listing

    async def _listed(self, client: Client) -> list[Tool]:
        capabilities = client.server_capabilities
        if capabilities.tools is None:
            return []
        found: dict[str, Tool] = {}
        twice: set[str] = set()
        cursor: str | None = None
        pages: set[str] = set()
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            for one in page.tools:
                if one.name in found:
                    twice.add(one.name)
                found.setdefault(one.name, one)
            cursor = page.next_cursor
            if not cursor or cursor in pages:  # a server that names a page again would go on for ever
                break
            pages.add(cursor)
        if twice:
            self.log.add(f"it lists {', '.join(sorted(twice))} more than once; the first counts", "client")
        return list(found.values())

    def _start_relist(self) -> None:
        self._relist = None
        task = asyncio.create_task(self._list_again())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _list_again(self) -> None:
        live = self._connected
        if live is None or self.state != "connected":
            return
        try:
            async with asyncio.timeout(self.limit):
                found = await self._listed(live.client)
        except Exception as error:
            self.log.add(f"its tools could not be listed again: {words_of(error)}", "client")
            return
        if fingerprints(found) != fingerprints(self.tools):
            self.tools = found
            self._on_change(self, True)

    async def _listen(self, client: Client) -> None:
        """Hear of changed tools from servers of the newer protocol; older ones send a notification unasked."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed or client.protocol_version < "2026":
            return
        try:
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self.relist_soon()
        except Exception as error:
            self.log.add(f"changes of its tools cannot be received: {words_of(error)}", "client")


def fingerprints(tools: list[Tool]) -> dict[str, str]:
    """A hash of each tool's definition, by its name: what a person's "for this session" was given for."""
    return dict(_fingerprints(tools))


def _fingerprints(tools: list[Tool]) -> Iterator[tuple[str, str]]:
    for tool in tools:
        said = [tool.description, tool.input_schema, tool.title, tool.annotations and tool.annotations.model_dump()]
        yield tool.name, hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()
