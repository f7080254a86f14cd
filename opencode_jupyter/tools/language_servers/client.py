"""One language server at work for one root: started, shown files, asked, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from pathlib import Path
from typing import Any

from ...core.errors import ToolError
from ...sandbox.policy import SandboxPolicy
from ..process.environment import clean_environment
from ..process.stdio import Stdio, start_stdio
from . import servers
from .documents import Documents, FileTree, to_path
from .json_rpc import METHOD_NOT_FOUND, RETRY, Connection, HungError, RpcError, ServerFailedError
from .servers import Server

log = logging.getLogger(__name__)

REQUEST = 10.0
"""Seconds a server has for an answer; the config's ``experimental.lsp_timeout`` (milliseconds) goes before."""
START = 3
"""How many times longer it has to start."""
DEBOUNCE = 0.15
"""Seconds without another batch of diagnostics after which they count as complete (docs/opencode/tools.md 13.1)."""
GOODBYE = 0.3
"""Seconds a server has to end by itself."""
SETTLE = 3.0
"""Seconds to wait for the work a server announced when it was first shown a file (an index), at most."""
DIAGNOSTIC = "textDocument/diagnostic"
WATCHED = "workspace/didChangeWatchedFiles"
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True, "showDocument": {"support": False}},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": False},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {"symbolKind": {"valueSet": [*range(1, 27)]}},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": True},
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": True, "relatedInformation": True},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "definition": {"linkSupport": False},
        "implementation": {"linkSupport": False},
        "references": {},
        "documentSymbol": {
            "hierarchicalDocumentSymbolSupport": True,
            "symbolKind": {"valueSet": [*range(1, 27)]},
        },
        "callHierarchy": {"dynamicRegistration": True},
    },
}
"""The client's capabilities. Positions are in UTF-16 units, as the tools' columns are."""

PROVIDERS = {
    "textDocument/definition": "definitionProvider",
    "textDocument/references": "referencesProvider",
    "textDocument/hover": "hoverProvider",
    "textDocument/documentSymbol": "documentSymbolProvider",
    "workspace/symbol": "workspaceSymbolProvider",
    "textDocument/implementation": "implementationProvider",
    "textDocument/prepareCallHierarchy": "callHierarchyProvider",
    "textDocument/diagnostic": "diagnosticProvider",
}
"""Request to the capability that announces it."""


class Client:
    """A server's connection. Everything in it belongs to the event loop that `start` ran on.

    Attributes:
        server: which server it is.
        root: the folder it works in.
        diagnostics: its latest ones by file.
    """

    def __init__(
        self,
        server: Server,
        root: Path,
        *,
        timeout: float = REQUEST,
        keep: Any = (),
        sandbox: SandboxPolicy | None = None,
    ) -> None:
        self.server = server
        self.root = root
        self.timeout = timeout
        self.diagnostics: dict[Path, list[dict[str, Any]]] = {}
        self._keep = keep
        self._sandbox = sandbox
        self._settings = servers.settings(server, root)
        self._program: Stdio | None = None
        self._connection: Connection | None = None
        self._capabilities: dict[str, Any] = {}
        self._registered: dict[str, str] = {}
        self._documents = Documents(1)
        self._tree = FileTree(root, self._is_relevant)
        self._working: set[str] = set()
        self._activity = asyncio.Event()
        """Set when diagnostics come or work begins or ends; who waits clears it."""
        self._updates = 0
        """How often the server was notified that files have changed."""
        self._changed_at: dict[Path, int] = {}
        """The value of `_updates` when the server was last notified that a file has changed."""
        self._diagnosed_at: dict[Path, int] = {}
        """The value of `_updates` when a file's diagnostics were requested, or came unasked."""
        self._closed_reason = f"The language server {server.name} is not running."
        self._lock = asyncio.Lock()

    # ------------------------------------------------------------------ life

    @property
    def alive(self) -> bool:
        """True if it can be asked."""
        return self._connection is not None and self._program is not None and not self._program.exited

    @property
    def pid(self) -> int:
        """Its process; 0 if there is none."""
        return self._program.pid if self._program is not None else 0

    async def start(self) -> None:
        """Start the server and introduce ourselves.

        Raises:
            ServerFailedError: it is not installed, can't be started, or does not answer.
        """
        name = self.server.name
        program = servers.program(self.server)
        if program is None:
            hint = f" ({self.server.install})" if self.server.install else ""
            raise ServerFailedError(f"The language server {name} is not installed: no {self.server.command[0]}{hint}.")
        extra = servers.environment(self.server, self.root)
        env = clean_environment(os.environ, keep=self._keep, extra=extra)
        if self.server.group == "python" and "VIRTUAL_ENV" not in extra:
            env.pop("VIRTUAL_ENV", None)  # of another environment than the one this Python runs in
        await asyncio.to_thread(self._tree.changes)
        try:
            argv = [program, *self.server.command[1:]]
            self._program = await start_stdio(argv, cwd=str(self.root), env=env, sandbox=self._sandbox)
        except (OSError, ValueError) as error:
            raise ServerFailedError(f"The language server {name} can't be started: {error}") from error
        self._connection = Connection(self._program.write, self._answer_request, self._handle_notification)
        self._program.listen(self._connection.feed, self._on_exit)
        try:
            await self._initialize()
        except BaseException:
            await self.stop()
            raise

    async def _initialize(self) -> None:
        uri = self.root.as_uri()
        params = {
            "processId": os.getpid() if self._sandbox is None else None,  # not visible there; a server would end
            "clientInfo": {"name": "opencode-jupyter"},
            "rootUri": uri,
            "rootPath": str(self.root),
            "workspaceFolders": [{"uri": uri, "name": self.root.name or "workspace"}],
            "initializationOptions": self.server.initialization,
            "capabilities": CAPABILITIES,
        }
        answer = await self.request("initialize", params, self.timeout * START)
        answer = answer if isinstance(answer, dict) else {}
        self._capabilities = answer.get("capabilities") or {}
        encoding = self._capabilities.get("positionEncoding") or answer.get("offsetEncoding") or "utf-16"
        if encoding != "utf-16":
            raise ServerFailedError(
                f"The language server {self.server.name} counts characters in {encoding}, which it was not offered; "
                "use another server or release."
            )
        self._documents = Documents(self._capabilities.get("textDocumentSync"))
        self._notify("initialized", {})
        self._notify("workspace/didChangeConfiguration", {"settings": self._settings})

    async def stop(self) -> None:
        """Ask it to end; end it, and what it started, if it does not."""
        connection, program = self._connection, self._program
        if connection is not None and program is not None and not program.exited:
            try:
                with contextlib.suppress(TimeoutError, RpcError, ServerFailedError):
                    await asyncio.wait_for(connection.request("shutdown", None, GOODBYE * 2), GOODBYE)
                    connection.notify("exit", None)
                    await asyncio.wait_for(program.wait(), GOODBYE)
            finally:
                await self._end()
        else:
            await self._end()

    async def _end(self) -> None:
        connection, program = self._connection, self._program
        self._connection = None
        if connection is not None:
            self._closed_reason = (
                f"The language server {self.server.name} was stopped. It is started again at its next use."
            )
            connection.close(ServerFailedError(self._closed_reason))
        if program is not None:
            await program.stop()

    def _on_exit(self) -> None:
        """Its stdout closed."""
        connection, program = self._connection, self._program
        if connection is None or program is None:
            return
        words = program.errors.splitlines()[-3:]
        output = "; it last said: " + " | ".join(words) if words else ""
        text = (
            f"The language server {self.server.name} ended unexpectedly{output}. It will be restarted at its next use."
        )
        self._connection = None
        self._closed_reason = text
        connection.close(ServerFailedError(text))
        program.close()
        self._activity.set()

    # ------------------------------------------------------------------ asking

    def supports(self, method: str) -> bool:
        """Return whether the server answers this request."""
        return bool(self._capabilities.get(PROVIDERS[method])) or method in self._registered.values()

    async def request(self, method: str, params: Any, timeout: float | None = None) -> Any:
        """Ask the server; positions are counted in UTF-16 units.

        Raises:
            RpcError: it answered with an error.
            ServerFailedError: it ended, or did not answer in time. One that is hung is stopped.
        """
        limit = self.timeout if timeout is None else timeout
        for tries in (2, 1, 0):
            connection = self._connection
            if connection is None:
                raise ServerFailedError(self._closed_reason)
            try:
                return await connection.request(method, params, limit)
            except RpcError as error:
                if error.code not in RETRY or not tries:
                    raise
                await asyncio.sleep(0.1)
            except HungError:
                await self.stop()
                raise ServerFailedError(
                    f"The language server {self.server.name} did not answer {method} within {limit:g} s and was "
                    "stopped. It is started again at its next use."
                ) from None
            except TimeoutError:
                raise ServerFailedError(
                    f"The language server {self.server.name} needs more than {limit:g} s for {method}. Try again, or "
                    "raise experimental.lsp_timeout (milliseconds) in the configuration."
                ) from None
        raise AssertionError

    async def ask_at(self, method: str, path: Path, line: int, character: int, **more: Any) -> Any:
        """Ask about a place in a document, counted from 0; the answer as the server gave it."""
        document = {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": character}}
        return await self.request(method, {**document, **more})

    def lines(self, path: Path) -> list[str] | None:
        """A file's lines as the server counts them; None if it can't be read. Reads a file that is not open."""
        return self._documents.lines(path)

    # ------------------------------------------------------------------ files

    async def touch(self, path: Path) -> bool:
        """Show the server a file as it is on the disk, and tell it what else has changed there.

        Returns:
            Whether the file is new to the server, or another than it knew.

        Raises:
            ToolError: the file can't be read.
            ServerFailedError: the connection ended.
        """
        async with self._lock:
            first = not self._documents.open
            messages, others = await asyncio.to_thread(self._due_messages, path)
            self._updates += bool(messages)
            self._changed_at |= dict.fromkeys(others, self._updates)
            for method, params in messages:
                self._notify(method, params)
        if first:
            await self._await_startup_work()
        return path in others

    def _due_messages(self, path: Path) -> tuple[list[tuple[str, Any]], set[Path]]:
        """The messages that the server is due, in order, and the documents that have changed."""
        events = self._tree.changes() if self._watches_files() else []
        out: list[tuple[str, Any]] = []
        others: set[Path] = set()
        if events:
            changes = [{"uri": Path(name).as_uri(), "type": kind} for name, kind in events]
            out.append((WATCHED, {"changes": changes}))
        for other in self._documents.changed():
            if not other.exists():
                out += self._documents.close(other)
                self.diagnostics.pop(other, None)
            elif other != path:
                with contextlib.suppress(ToolError):  # it can't be read now; this call is not about it
                    if messages := self._documents.messages(other):
                        others.add(other)
                        out += messages
        if messages := self._documents.messages(path):
            others.add(path)
        return out + messages, others

    def _watches_files(self) -> bool:
        return WATCHED in self._registered.values()

    def _is_relevant(self, name: str) -> bool:
        return name in self.server.markers or not self.server.extensions or servers.serves(self.server, Path(name))

    async def diagnose(self, path: Path, fresh: bool, limit: float) -> bool:
        """Bring `diagnostics` of a document that was touched up to date.

        Args:
            path: the document.
            fresh: it is new to the server, or another, so what the server said before does not count.
            limit: seconds to wait; then what is known counts.

        Returns:
            Whether the server said something in time.
        """
        try:
            async with asyncio.timeout(limit):
                if fresh or self.supports(DIAGNOSTIC) or path not in self.diagnostics or not self.current(path):
                    await self._await_diagnostics(path)
        except (TimeoutError, RpcError, ServerFailedError):
            return False
        return True

    async def diagnose_others(self, but: set[Path], count: int, limit: float) -> None:
        """Ask again for the diagnostics of open documents other than `but`, which an edit may have changed.

        A server that sends diagnostics unasked has sent these too.
        """
        others = [path for path in reversed(self._documents.open) if path not in but]
        others = sorted(others, key=lambda path: not self.diagnostics.get(path))[:count]  # those that had some first
        if not others or limit <= 0 or not self.supports(DIAGNOSTIC):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await asyncio.gather(*(self._pull(path) for path in others), return_exceptions=True)

    def current(self, path: Path) -> bool:
        """Return whether the latest diagnostics of a file are about the content that the server was last sent."""
        if self.supports(DIAGNOSTIC):
            return self._diagnosed_at.get(path) == self._updates
        return self._diagnosed_at.get(path, 0) >= self._changed_at.get(path, 0)

    async def _pull(self, path: Path) -> None:
        updates = self._updates
        report = await self.request(DIAGNOSTIC, {"textDocument": {"uri": path.as_uri()}})
        if not isinstance(report, dict):
            return
        reports = {path: report}
        for uri, other in (report.get("relatedDocuments") or {}).items():
            file = to_path(uri)
            if file is not None and isinstance(other, dict):
                reports[file] = other
        for file, full_report in reports.items():
            if full_report.get("kind") == "full" and isinstance(full_report.get("items"), list):
                self.diagnostics[file] = valid_diagnostics(full_report["items"])
                self._diagnosed_at[file] = updates

    async def _await_diagnostics(self, path: Path) -> None:
        """Ask for a file's diagnostics, or wait for those sent unasked and for a moment of quiet after them."""
        while self.alive:
            if self.supports(DIAGNOSTIC):  # a server may say so only some time after it has started
                await self._pull(path)
                return
            if path not in self.diagnostics or not self.current(path):
                self._activity.clear()
                await self._activity.wait()
            else:
                items = self.diagnostics[path]
                await asyncio.sleep(DEBOUNCE)
                if self.diagnostics.get(path) is items:  # no other batch has come
                    return

    async def _await_startup_work(self) -> None:
        """Wait until the work is done that the server announced."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE):
                while self._working and self.alive:
                    self._activity.clear()
                    await self._activity.wait()

    # ------------------------------------------------------------------ what the server says

    def _notify(self, method: str, params: Any) -> None:
        if self._connection is None:
            raise ServerFailedError(self._closed_reason)
        self._connection.notify(method, params)

    def _handle_notification(self, method: str, params: Any) -> None:
        if method == "textDocument/publishDiagnostics" and isinstance(params, dict):
            path = to_path(str(params.get("uri")))
            items = params.get("diagnostics")
            if path is not None and isinstance(items, list):
                self._store_diagnostics(path, items, params.get("version"))
        elif method == "$/progress" and isinstance(params, dict):
            value = params.get("value")
            if isinstance(value, dict) and value.get("kind") == "end":
                self._working.discard(str(params.get("token")))
                self._activity.set()
        elif method == "window/logMessage" and isinstance(params, dict):
            log.debug("%s: %s", self.server.name, params.get("message"))

    def _store_diagnostics(self, path: Path, items: list[Any], version: Any) -> None:
        document = self._documents.open.get(path)
        if document is not None and isinstance(version, int) and version < document.version:
            return  # about a text that is no longer there
        self.diagnostics[path] = valid_diagnostics(items)
        self._diagnosed_at[path] = self._updates
        self._activity.set()

    def _answer_request(self, method: str, params: Any) -> Any:
        """Answer a request of the server's."""
        if method == "workspace/configuration":
            return [self._section(item) for item in (params or {}).get("items", [])]
        if method == "workspace/workspaceFolders":
            return [{"uri": self.root.as_uri(), "name": self.root.name or "workspace"}]
        if method == "client/registerCapability":
            for registration in params.get("registrations", []):
                self._registered[registration["id"]] = registration["method"]
            self._activity.set()
            return None
        if method == "client/unregisterCapability":
            for registration in params.get("unregisterations", params.get("unregistrations", [])):
                self._registered.pop(registration["id"], None)
            return None
        if method == "window/workDoneProgress/create":
            self._working.add(str(params.get("token")))
            return None
        if method == "workspace/applyEdit":
            return {"applied": False, "failureReason": "this client only reads"}
        if method == "window/showDocument":
            return {"success": False}
        if method == "window/showMessageRequest" or (method.startswith("workspace/") and method.endswith("/refresh")):
            return None
        raise RpcError(METHOD_NOT_FOUND, f"unhandled method {method}")

    def _section(self, item: Any) -> Any:
        """The settings of a section such as ``python.analysis``; all of them without a section."""
        settings: Any = self._settings
        section = item.get("section") if isinstance(item, dict) else None
        if not section:
            return settings
        if section in self._settings:
            return self._settings[section]
        for word in section.split("."):
            settings = settings.get(word) if isinstance(settings, dict) else None
        return settings


def valid_diagnostics(items: list[Any]) -> list[dict[str, Any]]:
    """The diagnostics among these that have what the protocol demands: a place and a message in words."""
    return [
        item
        for item in items
        if isinstance(item, dict) and isinstance(item.get("message"), str) and _is_range(item.get("range"))
    ]


def _is_range(value: Any) -> bool:
    ends = [value.get("start"), value.get("end")] if isinstance(value, dict) else [None]
    return all(
        isinstance(end, dict) and isinstance(end.get("line"), int) and isinstance(end.get("character"), int)
        for end in ends
    )
