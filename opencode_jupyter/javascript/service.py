"""The tool files of a workspace, run in a worker process: loaded, called, started again (docs/opencode/core.md 4)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ToolError
from ..core.threads import LoopThread
from ..core.tool import Definition, Tool, checked_elsewhere
from ..core.tool_source import ToolFileError
from ..sandbox.service import Sandbox
from . import calls, runtime
from .runtime import Runtime, RuntimeKind
from .worker import Worker, WorkerEndedError, environment

if TYPE_CHECKING:
    from ..core.context import ToolContext
    from ..core.host import ToolHost
    from ..core.result import ToolResult
    from ..sandbox.startup_files import StartupFiles

log = logging.getLogger(__name__)

LOAD = 30.0
"""Seconds a file has to load."""
HUNG = 2.0
"""Seconds in which the worker has to answer after a call was stopped; else the tool blocks it, and it is ended."""
END = 2.5
"""Seconds that ending the workers may take."""


@dataclass(frozen=True, slots=True)
class _LoadedFile:
    """A file that was loaded."""

    namespace: str
    digest: str
    """Of its content; another content was not seen by whoever trusted this one."""
    runtime: Runtime


class JavaScriptTools:
    """Loads tool files in TypeScript and JavaScript (`core.tool_source.ToolFileLoader`); see `Workspace.service`.

    All files of a workspace run in one process, as they do in OpenCode; files that use what only Bun has run in
    a second one, if Bun is there. Every method may be called from any event loop.

    Args:
        workspace: whose folder the process works in.
    """

    suffixes: Sequence[str] = (".ts", ".mts", ".js", ".mjs")

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._thread = LoopThread("opencode-javascript")
        self._workers: dict[RuntimeKind, Worker] = {}
        self._files: dict[Path, _LoadedFile] = {}
        self._loading = asyncio.Lock()
        self._watching: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------ from any loop

    def why_not(self) -> str:
        """Why no file can be loaded on this machine, and what to do about it; "" if they can."""
        return runtime.find()[1]

    async def load(self, path: Path, namespace: str) -> list[Tool]:
        """Run a file and give its tools, in the order of their exports' names.

        The default export is ``namespace``, an export ``x`` is ``namespace_x``; exports that are no tools are passed
        over. Loading a path again gives what the file, and what it imports, holds now.

        Raises:
            ToolFileError: it can't be loaded; the message says why in one line.
        """
        listed = await self._thread.run(self._load(path, namespace))
        return [self._tool(path, tool) for tool in listed]

    async def forget(self, path: Path) -> None:
        """The file is gone or was changed: nothing of it is kept."""
        self._files.pop(path, None)
        if self._thread.is_alive:
            await self._thread.run(self._forget(path))

    async def close(self) -> None:
        """End the workers; bounded."""
        if self._thread.is_alive:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._thread.run(self._end()), END)
        await asyncio.to_thread(self._thread.close)

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return [worker.pid for worker in self._workers.values() if worker.alive]

    def _tool(self, path: Path, listed: dict[str, Any]) -> Tool:
        async def execute(arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
            return await self._thread.run(self._call(path, listed["id"], listed["export"], arguments, ctx))

        definition = Definition(
            listed["description"], listed["schema"], execute, check=checked_elsewhere, asks=listed["asks"]
        )
        return Tool(listed["id"], definition, source=str(path))

    # ------------------------------------------------------------------ on the background loop: files

    async def _load(self, path: Path, namespace: str) -> list[dict[str, Any]]:
        program, why = await asyncio.to_thread(runtime.find)
        if program is None:
            raise ToolFileError(f"{path.name} can't be loaded: {why}", path)
        bun = await asyncio.to_thread(runtime.find_bun) if program.kind == "node" else None
        async with self._loading:
            digest = await asyncio.to_thread(_digest, path)
            try:
                listed = await self._load_in(program, path, namespace, bun is not None)
            except _NeedsBunError as error:
                if bun is None:
                    raise _load_error(path, error.error) from None
                program = bun
                listed = await self._load_in(program, path, namespace, elsewhere=False)
            self._workers[program.kind].loaded[path] = digest
        self._files[path] = _LoadedFile(namespace, digest, program)
        return listed

    async def _load_in(self, program: Runtime, path: Path, namespace: str, elsewhere: bool) -> list[dict[str, Any]]:
        """Load a file in the worker of a runtime.

        Raises:
            ToolFileError: it can't be loaded.
            _NeedsBunError: not in this runtime.
        """
        try:
            worker = await self._worker(program)
        except ToolError as error:
            raise ToolFileError(f"{path.name} can't be loaded: {error}", path) from error
        worker.loaded.pop(path, None)
        request = {"method": "load", "path": str(path), "namespace": namespace, "elsewhere": elsewhere}
        try:
            with self._startup_files_kept():
                async with asyncio.timeout(LOAD):
                    reply = await worker.request(request)
        except TimeoutError:
            why = f"{path.name} was not loaded within {LOAD:g} s"
            await self._end_if_hung(worker, f"{why} and blocked all JavaScript tools, so their process was ended")
            raise ToolFileError(f"{why}: something at its top level does not end", path) from None
        except WorkerEndedError as error:
            raise ToolFileError(f"{path.name} can't be loaded: {error}", path) from error
        failure = reply.get("error")
        if failure is None:
            return list(reply["tools"])
        worker.spoiled = program.kind == "bun"
        if failure.get("name") == "BunError":
            raise _NeedsBunError(failure)
        raise _load_error(path, failure)

    async def _forget(self, path: Path) -> None:
        for worker in self._workers.values():
            if worker.loaded.pop(path, None) is not None and worker.alive:
                with contextlib.suppress(WorkerEndedError):
                    await worker.request({"method": "forget", "path": str(path)})

    # ------------------------------------------------------------------ calls

    async def _call(self, path: Path, id: str, export: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        with self._startup_files_kept(ctx.call_id) as files:
            worker = await self._ready(path, id)
            try:
                result = await calls.call(worker, path, id, export, arguments, ctx)
            except asyncio.CancelledError:
                self._watch(worker, id)
                raise
        return files.add_note(result)

    async def _ready(self, path: Path, id: str) -> Worker:
        """A worker that has a file loaded; loads it again after the process was started again.

        Raises:
            ToolError: the file is gone, was changed, or can't be loaded any more.
        """
        file = self._files.get(path)
        if file is None:
            raise ToolError(f"The {id} tool can't be called: {path} was removed or can no longer be loaded")
        worker = self._workers.get(file.runtime.kind)
        if worker is not None and worker.alive and path in worker.loaded:
            return worker
        async with self._loading:
            worker = await self._worker(file.runtime)
            if path not in worker.loaded:
                digest = await asyncio.to_thread(_digest, path)
                if digest != file.digest:
                    raise ToolFileError(f"{path.name} was changed since it was loaded; list the tools again", path)
                try:
                    await self._load_in(file.runtime, path, file.namespace, elsewhere=False)
                except _NeedsBunError as error:
                    raise _load_error(path, error.error) from None
                worker.loaded[path] = digest
            return worker

    # ------------------------------------------------------------------ the processes

    def _startup_files_kept(self, name: str = "") -> contextlib.AbstractContextManager[StartupFiles]:
        sandbox = self._workspace.service(Sandbox)
        return sandbox.startup_files_kept(sandbox.program("tools"), name)

    async def _worker(self, program: Runtime) -> Worker:
        """The running worker of a runtime. Call it with the lock held."""
        worker = self._workers.get(program.kind)
        if worker is not None and worker.spoiled and worker.idle:
            await worker.stop("a file failed to load")
        if worker is None or not worker.alive:
            directory = str(self._workspace.directory)
            experimental = self._workspace.config.data.get("experimental") or {}
            sandbox = self._workspace.service(Sandbox).program("tools")
            worker = Worker(program, directory, environment(directory, experimental.get("shell_env_keep")), sandbox)
            await worker.start()
            self._workers[program.kind] = worker
        return worker

    def _watch(self, worker: Worker, id: str) -> None:
        """A call was stopped: see that its tool lets the others run."""
        why = f"The {id} tool was stopped and went on blocking all JavaScript tools, so their process was ended"
        task = asyncio.ensure_future(self._end_if_hung(worker, why))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _end_if_hung(self, worker: Worker, why: str) -> None:
        try:
            async with asyncio.timeout(HUNG):
                await worker.request({"method": "ping"})
        except TimeoutError:
            log.warning("%s", why)
            await worker.stop(why)
        except WorkerEndedError:
            pass

    async def _end(self) -> None:
        for task in tuple(self._watching):
            task.cancel()
        await asyncio.gather(*(worker.stop("the Workspace was closed") for worker in self._workers.values()))


class _NeedsBunError(Exception):
    """A file can't be run by Node.js."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message")))
        self.error = error


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ToolFileError(f"{path.name} can't be read: {error.strerror or error}", path) from error


def _load_error(path: Path, error: dict[str, Any]) -> ToolFileError:
    """Why a file could not be loaded: one line, with the place in it or in a file that it imports."""
    name, message = str(error.get("name") or "Error"), str(error.get("message") or "")
    if name == "BunError":
        return ToolFileError(f"{path.name} can't be loaded: {calls.NEEDS_BUN}", path)
    at = error.get("at") or {}
    line = at.get("line")
    where, is_own = path.name, True
    if isinstance(line, int) and at.get("path"):
        other = Path(at["path"])
        is_own = other.name == path.name and (other == path or _is_same_file(other, path))
        where = f"{path.name}:{line}" if is_own else f"{path.name} (in {other}:{line})"
    detail = " ".join(message.split())
    reason = detail if name == "Error" else f"{name}: {detail}"
    return ToolFileError(f"{where} can't be loaded: {reason}", path, line if is_own and isinstance(line, int) else None)


def _is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
