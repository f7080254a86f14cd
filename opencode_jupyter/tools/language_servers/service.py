"""The language servers of a workspace: one per server and root, started at first use, ended with the workspace."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ToolError
from ...core.flags import flag
from ...core.threads import LoopThread
from ...sandbox.service import Sandbox
from . import operations, servers
from .client import DIAGNOSTIC, REQUEST, Client
from .json_rpc import RpcError, ServerFailedError
from .servers import Server, ServerTable

if TYPE_CHECKING:
    from ...core.host import ToolHost

log = logging.getLogger(__name__)

WAIT = 3.0
"""Seconds an edit waits for diagnostics, a server's start included (docs/opencode/tools.md 13.1)."""
OTHERS = 50
"""Other open documents whose diagnostics are asked for again after an edit; those that had some before the rest."""
PAUSE = 60.0
"""Seconds in which edits leave a server alone that failed or gave no diagnostics in time; lsp calls never do."""
END = 2.5
"""Seconds that ending all servers may take."""


@dataclass(slots=True)
class ServerAnswers:
    """The answers of a file's servers.

    Attributes:
        result: their results, one after another.
        notes: why a server has no part in it, in words.
    """

    result: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class LanguageServers:
    """Servers by name and root. Every method may be called from any event loop.

    Args:
        workspace: whose folder and config count.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._background = LoopThread("opencode-language-servers")
        self.clients: dict[tuple[str, Path], Client] = {}
        self._starting: dict[tuple[str, Path], asyncio.Task[Client]] = {}
        self._failed: dict[tuple[str, Path], float] = {}
        self._table: tuple[Any, ServerTable] | None = None
        self._closing = False

    # ------------------------------------------------------------------ from any loop

    def table(self) -> ServerTable:
        """The servers that the config leaves, as it is now."""
        config = self._workspace.config
        if self._table is None or self._table[0] is not config:
            table = servers.table(config.data.get("lsp"))
            if flag("OPENCODE_DISABLE_LSP"):
                table = ServerTable((), enabled=False)
            self._table = (config, table)
        return self._table[1]

    def running(self, path: Path) -> bool:
        """Return whether every server that would serve a file at once is there already."""
        keys = [self._key(server, path) for server in self._servers_for(path)]
        return all(key in self.clients and self.clients[key].alive for key in keys)

    async def ask(self, operation: str, path: Path, line: int, character: int) -> ServerAnswers:
        """Ask every server of a file.

        Args:
            operation: one of `operations.METHODS`.
            path: the file, which must exist.
            line: counted from 0.
            character: counted from 0, in UTF-16 units.

        Raises:
            ToolError: no server serves this file, or none of them could be asked.
        """
        return await self._background.run(self._ask(operation, path, line, character))

    async def diagnose(self, paths: Sequence[Path]) -> dict[Path, list[dict[str, Any]]]:
        """Show changed files to their servers and collect these servers' diagnostics; empty if no server is there.

        Nothing is reported that may be out of date: a server that does not answer in time, or was not asked, gives
        nothing, and of other files only what was said since the change counts. What is new comes first.

        A server that does not run is started if the config asks for servers, or for Python code in a folder that is
        marked as a project (``pyproject.toml`` and the like). Waits at most `WAIT` seconds.
        """
        pairs = [
            (path, server) for path in paths for server in self._servers_for(path) if self._may_start(server, path)
        ]
        return await self._background.run(self._diagnose(pairs)) if pairs else {}

    async def close(self) -> None:
        """End every server; bounded."""
        self._closing = True
        if self._background.is_alive:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._background.run(self._end_all()), END)
            await asyncio.to_thread(self._background.close)
        self.clients.clear()

    def missing(self, path: Path) -> str:
        """The reason why no server serves a file, and what to do; empty if one does."""
        table = self.table()
        if self._servers_for(path):
            return ""
        text = "No LSP server available for this file type."
        if not table.enabled:
            return text + ' The configuration switches language servers off ("lsp": false).'
        serving = table.serving(path)
        configured = [server for server in serving if server.configured]
        install_hints = [server.install for server in serving if server.install]
        if configured:
            server = configured[0]
            text += f" The configuration names {server.name}, whose program {server.command[0]} is not installed."
        if install_hints:
            text += f" To have one: {install_hints[0]}"
        elif path.suffix == ".ipynb":
            text += (
                " Language servers read source files; a notebook's code can be asked about once it is in a .py file."
            )
        elif not configured:
            ending = path.suffix or path.name
            text += (
                f" Any server can be named in the configuration, such as "
                f'"lsp": {{"my-server": {{"command": ["my-server", "--stdio"], "extensions": ["{ending}"]}}}}.'
            )
        return "\n".join([text, *table.problems])

    # ------------------------------------------------------------------ choosing

    def _servers_for(self, path: Path) -> list[Server]:
        """The servers to ask: of each group the first that is installed, those the config names first."""
        chosen: dict[str, Server] = {}
        for server in sorted(self.table().serving(path), key=lambda server: not server.configured):
            if servers.program(server) is not None:
                chosen.setdefault(server.group or server.name, server)
        return list(chosen.values())

    def _key(self, server: Server, path: Path) -> tuple[str, Path]:
        return server.name, servers.root(server, path, self._workspace.directory)

    def _may_start(self, server: Server, path: Path) -> bool:
        """Return whether an edit may use a server: it runs, or may be started for this file."""
        key = self._key(server, path)
        if key in self._failed and time.monotonic() < self._failed[key] + PAUSE:
            return False
        client = self.clients.get(key)
        if (client is not None and client.alive) or self.table().requested:
            return True
        return server.group == "python" and servers.marked_folder(server, path, self._workspace.directory) is not None

    # ------------------------------------------------------------------ on the loop of the servers

    async def _ask(self, operation: str, path: Path, line: int, character: int) -> ServerAnswers:
        chosen = self._servers_for(path)
        if not chosen:
            raise ToolError(self.missing(path))
        parts = await asyncio.gather(
            *(self._ask_server(server, operation, path, line, character) for server in chosen), return_exceptions=True
        )
        answer = ServerAnswers()
        failures: list[BaseException] = []
        for part in parts:
            if isinstance(part, ServerAnswers):
                answer.result += part.result
                answer.notes += part.notes
            elif isinstance(part, ToolError):
                failures.append(part)
                answer.notes.append(str(part))
            else:
                raise part
        if failures and len(failures) == len(parts):
            raise failures[0]
        return answer

    async def _ask_server(self, server: Server, operation: str, path: Path, line: int, character: int) -> ServerAnswers:
        """Ask one server."""
        client = await self._client_with_file(server, path)
        if not operations.is_offered(client, operation):
            return ServerAnswers(notes=[f"The language server {server.name} does not offer {operation}."])
        try:
            return ServerAnswers(await operations.run_operation(client, operation, path, line, character))
        except RpcError as error:
            return ServerAnswers(notes=[f"The language server {server.name} answered with an error: {error}"])
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            log.warning("%s answered %s with what can't be read", server.name, operation, exc_info=error)
            return ServerAnswers(notes=[f"The language server {server.name} gave an answer that cannot be read."])

    async def _client_with_file(self, server: Server, path: Path) -> Client:
        """A running server that has the file as it is now."""
        client = await self._client(server, path)
        self._failed.pop(self._key(server, path), None)
        fresh = await client.touch(path)
        if fresh and not client.supports(DIAGNOSTIC):
            await client.diagnose(path, fresh, WAIT)  # a server that sends them unasked is then done with the file
        return client

    async def _client(self, server: Server, path: Path) -> Client:
        key = self._key(server, path)
        client = self.clients.get(key)
        if client is not None and client.alive and client.server == server:
            return client
        task = self._starting.get(key)
        if task is None:
            task = self._starting[key] = asyncio.create_task(self._start(server, key))
            task.add_done_callback(lambda done: self._started(key, done))
        return await asyncio.shield(task)  # the start goes on for the next caller if this one is cancelled

    def _started(self, key: tuple[str, Path], task: asyncio.Task[Client]) -> None:
        self._starting.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at: who waited may be gone

    async def _start(self, server: Server, key: tuple[str, Path]) -> Client:
        old = self.clients.pop(key, None)
        if old is not None:
            await old.stop()
        if self._closing:
            raise ServerFailedError("the workspace is closing")
        experimental = self._workspace.config.data.get("experimental") or {}
        limit = experimental.get("lsp_timeout")
        timeout = limit / 1000 if isinstance(limit, int | float) and limit > 0 else REQUEST
        keep = experimental.get("shell_env_keep", ())
        sandbox = self._workspace.service(Sandbox).program("lsp", server.name)
        client = Client(server, key[1], timeout=timeout, keep=keep, sandbox=sandbox)
        try:
            await client.start()
        except BaseException:
            self._failed[key] = time.monotonic()
            raise
        self._failed.pop(key, None)
        self.clients[key] = client
        log.debug("%s started in %s", server.name, key[1])
        return client

    async def _diagnose(self, pairs: Sequence[tuple[Path, Server]]) -> dict[Path, list[dict[str, Any]]]:
        end = time.monotonic() + WAIT
        before = {path: items for client in self.clients.values() for path, items in client.diagnostics.items()}

        async def diagnose_file(path: Path, server: Server) -> Client | None:
            try:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    client = await self._client(server, path)
                    fresh = await client.touch(path)
                    if await client.diagnose(path, fresh, end - time.monotonic()):
                        return client
            except (TimeoutError, ToolError) as error:
                log.debug("no diagnostics of %s: %s", path, error)
            self._failed[self._key(server, path)] = time.monotonic()
            return None

        used = await asyncio.gather(*(diagnose_file(path, server) for path, server in pairs))
        touched = {path for path, _ in pairs}
        by_client: dict[int, tuple[Client, set[Path]]] = {}
        for used_client, (path, _) in zip(used, pairs, strict=True):
            if used_client is not None:
                by_client.setdefault(id(used_client), (used_client, set()))[1].add(path)
        for client, _ in by_client.values():
            await client.diagnose_others(touched, OTHERS, end - time.monotonic())
        diagnostics: dict[Path, list[dict[str, Any]]] = {}
        for client, paths in by_client.values():
            for path, items in client.diagnostics.items():
                if path in paths or (path not in touched and client.current(path)):
                    diagnostics.setdefault(path, []).extend(items)
        return dict(sorted(diagnostics.items(), key=lambda pair: pair[1] == before.get(pair[0], [])))

    async def _end_all(self) -> None:
        for task in self._starting.values():
            task.cancel()
        await asyncio.gather(*self._starting.values(), return_exceptions=True)
        await asyncio.gather(*(client.stop() for client in self.clients.values()), return_exceptions=True)
