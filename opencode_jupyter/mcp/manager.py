"""The MCP servers of a workspace: which there are, how they are, what they offer, calls of their tools."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.result import ToolResult
from ..core.trust import Subject
from ..tools.language.background import Background
from . import servers
from .errors import McpError, missing_sdk, words_of
from .servers import CALL, ServerSpec
from .tools import prefix, sanitise, tools_of

if TYPE_CHECKING:
    from ..core.config import Config
    from ..core.context import ToolContext
    from ..core.tool import Tool
    from ..core.workspace import Workspace
    from .calls import Running
    from .connection import Connection, Status
    from .offers import Prompt, Resource
    from .opening import Opener

log = logging.getLogger(__name__)

CHANGED = "mcp.tools.changed"
"""Event: a server's tools are not what they were (docs/opencode/core.md 22)."""
STATUS = "mcp.status.changed"
"""Event: a server is not as it was."""
FRESH = 1.0
"""Seconds in which the files of other programs are not looked at again."""
END = 2.7
"""Seconds that ending all servers may take."""
UNTRUSTED = "not trusted yet; run %tools trust"


class _Read(NamedTuple):
    """The servers of the configuration as they were read last."""

    config: Config
    directory: Path
    state: tuple[Any, ...]
    specs: dict[str, ServerSpec]
    until: float


class McpServers:
    """Servers by name; made by ``workspace.service(McpServers)``.

    Nothing is started before it is wanted. The servers live on a loop of their own, so every method may be called from
    any thread, and the async ones awaited on any loop.

    Attributes:
        auth: makes what signs the requests to a remote server: called with its `Connection`, gives an ``httpx2.Auth``.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._background = Background("opencode-mcp")
        self._connections: dict[str, Connection] = {}
        self._added: dict[str, ServerSpec] = {}
        self._off: set[str] = set()
        self._opener: Opener | None = None
        self._read: _Read | None = None
        self._tools: list[Tool] = []
        self._prints: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()
        self._closing = False
        self.auth: Any = self._login

    # ------------------------------------------------------------------ which there are

    def specs(self) -> dict[str, ServerSpec]:
        """The servers that are configured or were added, by name."""
        workspace, known, now = self._workspace, self._read, time.monotonic()
        same = known is not None and known.config is workspace.config and known.directory == workspace.directory
        if known is None or not same or now >= known.until:
            state = servers.watched(workspace.directory, workspace.worktree)
            if known is not None and same and known.state == state:
                known = self._read = known._replace(until=now + FRESH)
            else:
                found = servers.configured(workspace.config, workspace.directory, workspace.worktree)
                if found and (reason := missing_sdk()):
                    found = {name: spec._replace(problem=spec.problem or reason) for name, spec in found.items()}
                known = self._read = _Read(workspace.config, workspace.directory, state, found, now + FRESH)
        return {**known.specs, **self._added} if self._added else known.specs

    def status(self) -> dict[str, Status]:
        """How each server is. One that was not needed yet is ``disabled``, and ``error`` says so."""
        return {name: self._status(spec) for name, spec in self.specs().items()}

    def untrusted(self) -> list[Subject]:
        """What a person would have to trust before it is started: servers that files of the project bring."""
        return [spec.subject() for spec in self.specs().values() if self._startable(spec) and not self.trusted(spec)]

    def trusted(self, spec: ServerSpec) -> bool:
        """Return whether a server may be started without asking."""
        return spec.own or self._workspace.trust.known(spec.subject())

    def logs(self, name: str) -> list[str]:
        """The last lines of a server's stderr and log messages, oldest first, without secrets.

        Raises:
            McpError: there is no such server.
        """
        self._spec(name)
        connection = self._connections.get(name)
        return connection.log.lines() if connection is not None else []

    def why_not(self, spec: ServerSpec) -> str:
        """Why a server has no tools now, and what to do about it; "" if it has, or was not needed yet."""
        if spec.problem:
            return spec.problem
        if not self._startable(spec):
            return ""
        if not self.trusted(spec):
            return UNTRUSTED
        connection = self._connections.get(spec.name)
        return connection.error if connection is not None and connection.state != "connected" else ""

    def switched_off(self, spec: ServerSpec) -> str:
        """What to do to start a server that is not to be started; "" for another one."""
        off = not spec.problem and not self._startable(spec)
        return f"{spec.name} is switched off; start it: %mcp connect {spec.name}" if off else ""

    # ------------------------------------------------------------------ changing them

    async def add(self, name: str, spec: ServerSpec | Mapping[str, Any]) -> Status:
        """Add a server, in place of one of that name, and connect it.

        Args:
            name: its name; its tools are ``name_tool``.
            spec: an entry as under ``mcp`` in ``opencode.json``, or a `ServerSpec`.

        Raises:
            McpError: the entry is wrong.
        """
        if reason := missing_sdk():
            raise McpError(name, reason)
        given = spec if isinstance(spec, ServerSpec) else servers.spec_of(name, spec, source="added in this session")
        if given.problem:
            raise McpError(name, given.problem)
        self._added[name] = given._replace(name=name)
        self._off.discard(name)
        return await self.connect(name) if given.enabled else self._status(given)

    async def connect(self, name: str) -> Status:
        """Connect a server, anew if it is connected; the status says whether that went well.

        Raises:
            McpError: there is no such server, or it is not trusted.
        """
        spec = self._spec(name)
        if spec.problem:
            raise McpError(name, spec.problem)
        if not self.trusted(spec):
            raise McpError(name, f"the MCP server {name} is {UNTRUSTED}")
        self._off.discard(name)
        if not spec.enabled:
            self._added[name] = spec = spec._replace(enabled=True)
        await self._background.run(self._restart(name))
        return self._status(spec)

    async def disconnect(self, name: str) -> Status:
        """End a server; it stays down until `connect`.

        Raises:
            McpError: there is no such server.
        """
        spec = self._spec(name)
        self._off.add(name)
        await self._background.run(self._end([name]))
        return self._status(spec)

    async def remove(self, name: str) -> bool:
        """End a server that was added here and forget it; False if only a file has it."""
        if self._added.pop(name, None) is None:
            return False
        self._off.discard(name)
        await self._background.run(self._end([name]))
        return True

    # ------------------------------------------------------------------ what the source of tools asks

    def tools(self) -> list[Tool]:
        """The tools of the connected servers."""
        return self._tools

    @property
    def none(self) -> bool:
        """True if no server is configured and none runs: what most calls find."""
        return not self._connections and not self.specs()

    def behind(self, wanted: str | None) -> list[ServerSpec]:
        """The servers that have to be connected before the tool of an id (None: all) can be looked up."""
        if wanted is None:
            return [spec for spec in self.specs().values() if self._behind(spec, asked=False)]
        known = self._workspace.registry.get(wanted)
        if known is not None and not known.external:
            return []
        lowered = wanted.lower()
        return [
            spec
            for name, spec in self.specs().items()
            if lowered.startswith(prefix(name).lower()) and self._behind(spec, asked=True)
        ]

    def stale(self, wanted: str | None) -> bool:
        """Return whether a server runs that is configured otherwise now, or no more; `wanted` as in `behind`."""
        specs, lowered = self.specs(), (wanted or "").lower()
        return any(
            not self._current(one, specs) and (wanted is None or lowered.startswith(prefix(name).lower()))
            for name, one in list(self._connections.items())
        )

    async def bring_up(self, names: Iterable[str]) -> None:
        """Connect servers side by side; what goes wrong stands in their status."""
        await self._background.run(self._bring_up(list(names)))

    # ------------------------------------------------------------------ what they offer

    async def call(self, server: str, name: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        """Call a tool.

        Args:
            server: whose.
            name: the tool's name as the server has it.
            arguments: as its schema wants them.
            ctx: the call; takes the progress and the server's questions.

        Raises:
            McpError: the server is not there, went away, took too long, or the result is an error.
        """
        return await self._background.run(self._call(server, name, arguments, ctx))

    async def prompts(self, server: str | None = None) -> dict[str, Prompt]:
        """The prompts of one server, or of all, under ``server:name``."""
        return await self._background.run(self._prompts(server))

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str] | None = None) -> list[dict[str, str]]:
        """A prompt's messages, as dicts of ``role`` and ``text``.

        Raises:
            McpError: there is no such server or prompt, or it wants other arguments.
        """
        from . import offers

        return await self._background.run(self._asked(server, lambda c: offers.prompt(c, name, dict(arguments or {}))))

    async def resources(self, server: str | None = None) -> dict[str, Resource]:
        """The resources of one server, or of all, under ``server:name``."""
        return await self._background.run(self._resources(server))

    async def read_resource(self, server: str, uri: str) -> ToolResult:
        """A resource: its text as the output, anything else as attachments.

        Raises:
            McpError: there is no such server or resource.
        """
        from . import offers

        return await self._background.run(self._asked(server, lambda c: offers.read(c, uri)))

    async def close(self) -> None:
        """End every server; bounded."""
        self._closing = True
        if self._background.running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._background.run(self._end(list(self._connections))), END)
            await asyncio.to_thread(self._background.stop)

    # ------------------------------------------------------------------ on the loop of the servers

    async def _bring_up(self, names: list[str]) -> None:
        specs = self.specs()
        old = [name for name, one in self._connections.items() if not self._current(one, specs)]
        if old:  # the configuration is not what it was
            await self._end(old)
        wanted = [self._connection(specs[name]) for name in names if name in specs]
        await asyncio.gather(*(one.connect() for one in wanted))

    async def _restart(self, name: str) -> None:
        await self._end([name])
        await self._bring_up([name])

    async def _end(self, names: list[str]) -> None:
        gone = [one for name in names if (one := self._connections.pop(name, None)) is not None]
        await asyncio.gather(*(one.stop() for one in gone), return_exceptions=True)
        self._rebuild()

    def _connection(self, spec: ServerSpec) -> Connection:
        found = self._connections.get(spec.name)
        if found is None:
            if self._closing:
                raise McpError(spec.name, "the workspace is closing")
            from .connection import Connection  # here, as below: most projects have no servers

            folder = self._workspace.directory
            found = self._connections[spec.name] = Connection(spec, folder, self._opening(), self._changed)
        return found

    def _opening(self) -> Opener:
        if self._opener is None:
            from .callbacks import Callbacks  # here: the SDK takes most of a second to import
            from .opening import Opener

            self._opener = Opener(self._workspace, Callbacks(self._workspace, self._newest))
        self._opener.auth = self.auth
        return self._opener

    def _newest(self, server: str) -> Running | None:
        """The call that a question of a server most likely belongs to."""
        connection = self._connections.get(server)
        return connection.running[-1] if connection is not None and connection.running else None

    async def _call(self, server: str, name: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        from .calls import Running
        from .results import error_of, result_of

        connection = await self._ready(server)
        given = await Running(ctx, self._limit(connection.spec)).run(connection, name, arguments)
        if given.is_error:
            raise McpError(server, error_of(given))
        return result_of(given)

    async def _ready(self, server: str) -> Connection:
        """A server's connection, if it may be used."""
        spec = self._spec(server)
        reason = spec.problem or (UNTRUSTED if not self.trusted(spec) else "")
        if not spec.enabled or server in self._off:
            reason = "disconnected"
        if reason:
            raise McpError(server, f"the MCP server {server} is {reason}" if not spec.problem else reason)
        await self._bring_up([server])
        return self._connection(spec)

    async def _asked(self, server: str, ask: Any) -> Any:
        connection = await self._ready(server)
        client = await connection.client()
        limit = self._limit(connection.spec)
        try:
            async with asyncio.timeout(limit):
                return await ask(client)
        except McpError:
            raise
        except TimeoutError as error:
            raise McpError(server, f"the MCP server {server} did not answer within {limit:g} s") from error
        except Exception as error:
            raise McpError(server, f"the MCP server {server}: {words_of(error)}") from error

    async def _of_all(self, ask: Any, server: str | None) -> list[Any]:
        """What each server, or one, answers; one that fails gives nothing, and its log says why."""
        specs = {name: spec for name, spec in self.specs().items() if server in (None, name)}
        names = [name for name, spec in specs.items() if self._startable(spec) and self.trusted(spec)]
        await self._bring_up(names)
        up = [c for name in names if (c := self._connections.get(name)) is not None and c.state == "connected"]

        async def one(connection: Connection) -> list[Any]:
            try:
                async with asyncio.timeout(connection.limit):
                    return list(await ask(connection.spec.name, await connection.client()))
            except Exception as error:
                connection.log.add(f"could not list its tools: {words_of(error)}", "client")
                return []

        return [item for items in await asyncio.gather(*(one(c) for c in up)) for item in items]

    async def _prompts(self, server: str | None) -> dict[str, Prompt]:
        from . import offers

        found = await self._of_all(offers.prompts, server)
        return {f"{sanitise(one.server)}:{sanitise(one.name)}": one for one in found}

    async def _resources(self, server: str | None) -> dict[str, Resource]:
        from . import offers

        found = await self._of_all(offers.resources, server)
        return {f"{sanitise(one.server)}:{sanitise(one.name)}": one for one in found}

    def _changed(self, connection: Connection, tools: bool) -> None:
        """A connection has another status, or other tools."""
        if self._closing:
            return
        name = connection.spec.name
        self._workspace.publish(STATUS, lambda: {"server": name})
        if not tools:
            return
        self._forget_grants(connection)
        self._rebuild()
        self._workspace.publish(CHANGED, lambda: {"server": name})

    def _rebuild(self) -> None:
        with self._lock:
            registry = self._workspace.registry
            custom = set(registry.custom_names())
            taken = [id for id in registry.names() if id not in custom]
            listings = [
                (name, connection.tools)
                for name in self.specs()
                if (connection := self._connections.get(name)) is not None and connection.tools
            ]
            self._tools = tools_of(listings, taken, self.call)
        registry.changed()

    def _forget_grants(self, connection: Connection) -> None:
        """A person allowed a tool for this session as it described itself then; another description asks again."""
        from .connection import fingerprints

        name = connection.spec.name
        for tool, print_ in fingerprints(connection.tools).items():
            old = self._prints.get((name, tool))
            self._prints[name, tool] = print_
            if old is None or old == print_:
                continue
            permissions = self._workspace.permissions
            for rule in [r for r in permissions.approved if r.permission.startswith(prefix(name) + sanitise(tool))]:
                permissions.revoke(rule)

    # ------------------------------------------------------------------ small

    def _current(self, connection: Connection, specs: Mapping[str, ServerSpec]) -> bool:
        """Return whether a server runs as it is configured now, in the workspace's folder."""
        moved = connection.spec.local and connection.folder != self._workspace.directory
        return specs.get(connection.spec.name) == connection.spec and not moved

    def _login(self, connection: Connection) -> Any:
        from .oauth import auth_for  # here: it imports the SDK

        return auth_for(self._workspace, connection.spec)

    def _spec(self, name: str) -> ServerSpec:
        specs = self.specs()
        if name not in specs:
            there = ", ".join(specs) or "none; add one under mcp in opencode.json"
            raise McpError(name, f"there is no MCP server {name!r}; there are: {there}")
        return specs[name]

    def _status(self, spec: ServerSpec) -> Status:
        from .connection import Status

        connection = self._connections.get(spec.name)
        shown = Status("disabled", target=spec.shown, source=spec.source)
        if spec.problem:
            return replace(shown, state="failed", error=spec.problem)
        if not self._startable(spec):
            return replace(shown, error=self.switched_off(spec))
        if connection is not None:
            status = connection.status()
            return replace(status, error="starting") if connection.connecting and not status.error else status
        return replace(shown, error="not started yet" if self.trusted(spec) else UNTRUSTED)

    def _startable(self, spec: ServerSpec) -> bool:
        return spec.enabled and not spec.problem and spec.name not in self._off

    def _behind(self, spec: ServerSpec, *, asked: bool) -> bool:
        """Return whether something is to be done for a server; `asked`: somebody calls a tool of it."""
        if not self._startable(spec):
            return False
        connection = self._connections.get(spec.name)
        if connection is not None and self._current(connection, {spec.name: spec}):
            return connection.state != "connected" and not connection.just_tried if asked else connection.due
        return asked or self.trusted(spec)

    def _limit(self, spec: ServerSpec) -> float:
        """Seconds a call may take without a word of the server (docs/opencode/core.md 19.5)."""
        given = self._workspace.config.get("experimental", "mcp_timeout")
        configured = given / 1000 if isinstance(given, int | float) and given > 0 else None
        return spec.timeout or configured or CALL
