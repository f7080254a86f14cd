"""`FileTools`: the tools of files as a source of the registry (`core.tool_source`).

A file is read when one of its tools is requested, or all tools are listed. A file of the user's own config folder runs
then; one of a project when a person trusted exactly its content (`core.trust`). A file that changed is read again at
the next call.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from ..core.config import ConfigWarning
from ..core.errors import PermissionRejectedError
from ..core.fingerprint import Fingerprint
from ..core.tool import Tool
from ..core.tool_source import Rank, ToolFileLoader, Unavailable
from ..core.trust import Subject
from .tool_file_discovery import NOT_TRUSTED, ToolFile, ToolFileProblem, config_folders, find_tool_files

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.config import Config
    from ..core.host import ToolHost


NO_TOOL = "it defines no tool; write @tool above a function, or give the function a docstring"
NO_TOOL_JS = "it exports no tool; export default tool({ description, args, execute })"
NOT_LOADED = ("new", "untrusted", "missing")
"""States of files that may provide tools later."""
MAX_AGE = 0.2
"""Seconds for which a call that concerns no changed file goes by the last check of all folders and files."""
_POLL = 0.005


class FileTools:
    """The tools of files.

    Args:
        workspace: whose config folders.
        scripts: gives the loader of JavaScript and TypeScript files; called when there is such a file.
    """

    rank = Rank.FILES

    def __init__(self, workspace: ToolHost, scripts: Callable[[], ToolFileLoader] | None = None) -> None:
        self._workspace = workspace
        self.scripts = scripts
        self._busy = threading.Lock()
        self._lock = threading.RLock()
        self._config: Config | None = None
        self._fingerprint = Fingerprint()
        """Of the folders and the trust file; with the files' own, all that a change is noticed in."""
        self.files: tuple[ToolFile, ...] = ()
        """In the order in which later ones override earlier ones."""
        self._gone: list[ToolFile] = []
        """Changed or deleted files whose modules were not dropped yet."""
        self._tools: tuple[Tool, ...] = ()
        self._hidden: tuple[ToolFileProblem, ...] = ()
        self._by_id: dict[str, ToolFile] = {}
        self._not_loaded: dict[str, list[ToolFile]] = {}
        """By their namespace in lower case."""
        workspace.warning_lists.append(self._failures)

    # ------------------------------------------------------------------ for the registry

    def tools(self) -> Sequence[Tool]:
        """See `ToolSource.tools`."""
        return self._tools

    def unavailable(self) -> Sequence[Unavailable]:
        """See `ToolSource.unavailable`."""
        unavailable = []
        for file in self.files:
            failed = file.state in ("failed", "missing")
            reason = file.failure if failed else NOT_TRUSTED if file.state == "untrusted" else ""
            if reason:
                unavailable += [Unavailable(id, file.label, reason) for id in file.ids or [file.path.stem]]
            elif file.state == "loaded" and (not file.tools or file.problems):
                no_tool = NO_TOOL if file.python else NO_TOOL_JS
                reason = "; ".join(problem.message for problem in file.problems) or no_tool
                name = file.path.stem
                unavailable += [Unavailable(id, file.label, reason, quiet=True) for id in (name, f"{name}_*")]
        return unavailable

    @property
    def quiet(self) -> bool:
        """See `ToolSource.quiet`."""
        return not (self.files or self._gone)

    def is_fresh(self, tool_id: str | None) -> bool:
        """See `ToolSource.is_fresh`."""
        self._refresh(MAX_AGE if tool_id is not None and self._is_current(tool_id) else 0.0)
        if not self._not_loaded and not self._gone:
            return True
        if tool_id is None:
            return not self._gone and not any(file.state == "new" for file in self.files)
        return not any(self._may_provide(file, tool_id) for file in self._candidates(tool_id))

    async def prepare(self, tool_id: str | None, call: Call | None) -> None:
        """See `ToolSource.prepare`.

        Raises:
            ToolError: a person denied what `call` needed.
        """
        self._refresh()
        candidates = list(self.files) if tool_id is None else list(self._candidates(tool_id))
        async with self._exclusive():
            await self._unload_gone()
            for file in candidates:
                if file.state in NOT_LOADED:
                    await self._advance(file, tool_id)
        self._publish()
        if tool_id is None or call is None:
            return
        for file in candidates:
            if file.state == "untrusted" and self._may_provide(file, tool_id):
                await self._request_trust(file, tool_id, call)
                if file not in self.files:  # it was changed meanwhile
                    await self.prepare(tool_id, call)
                    return

    # ------------------------------------------------------------------ for people

    def problems(self) -> list[ToolFileProblem]:
        """Problems of tool files, and notes on them."""
        return [*(problem for file in self.files for problem in file.problems), *self._hidden]

    def _failures(self) -> list[ConfigWarning]:
        """The files that could not be loaded."""
        failed = [problem for file in self.files if file.state == "failed" for problem in file.problems]
        return [ConfigWarning(problem.message, str(problem.path), problem.line) for problem in failed]

    def untrusted(self) -> list[Subject]:
        """The project's files that need a person's trust. Blocks while it reads them."""
        from .tool_file_loader import read_tool_file

        self._refresh()
        subjects = []
        for file in self.files:
            if file.own or file.state not in NOT_LOADED or (file.code is None and not read_tool_file(file)):
                continue
            if not self._workspace.trust.known(file.subject):
                subjects.append(file.subject)
        self._publish()
        return subjects

    # ------------------------------------------------------------------ which files may provide a tool

    def _candidates(self, id: str) -> Iterator[ToolFile]:
        """The files that are not loaded and whose names fit an id; the single files too."""
        yield from self._not_loaded.get("", ())
        name = id.lower()
        ends = [i for i, char in enumerate(name) if char == "_"]
        for end in (*ends, len(name)):
            yield from self._not_loaded.get(name[:end], ()) if end else ()

    def _may_provide(self, file: ToolFile, id: str) -> bool:
        """Return whether a file that is not loaded should be loaded, or trust in it requested, for this id."""
        if file.code is None or file.seems_to_export(id):
            refused = file.refused and not self._workspace.trust.known(file.subject)
            return not refused or self._workspace.registry.get(id) is None
        # Its text does not show all exports; for each unknown id Python's single files would be too many guesses.
        return bool(file.namespace or not file.python) and self._workspace.registry.get(id) is None

    # ------------------------------------------------------------------ loading, and trust before it

    async def _advance(self, file: ToolFile, tool_id: str | None) -> None:
        """Read a file, and load it if it may run and is needed."""
        from .tool_file_loader import load_tool_file, read_tool_file

        if file.code is None and not await anyio.to_thread.run_sync(read_tool_file, file):
            return
        if not file.own and not self._workspace.trust.known(file.subject):
            file.state = "untrusted"
        elif tool_id is None or self._may_provide(file, tool_id):
            await load_tool_file(file, self.scripts)

    async def _request_trust(self, file: ToolFile, tool_id: str, call: Call) -> None:
        """Ask a person to trust a file, once however many calls need it, and load it."""
        from .tool_file_loader import load_tool_file

        waited = False
        while file.is_asking:
            waited = True
            await anyio.sleep(_POLL * 4)
        if file.state != "untrusted":
            return
        if waited and file.refused:
            raise PermissionRejectedError
        file.is_asking = True
        try:
            await self._workspace.trust.require(file.subject, call)
        except PermissionRejectedError:
            file.refused = True
            if self._workspace.registry.get(tool_id) is None:
                raise
            return  # the tool that it would have hidden is called
        finally:
            file.is_asking = False
        file.refused = False
        self._refresh()
        async with self._exclusive():
            if file.state == "untrusted" and file in self.files:
                await load_tool_file(file, self.scripts)
        self._publish()

    # ------------------------------------------------------------------ noticing changes

    def _is_current(self, id: str) -> bool:
        """Return whether there is a tool of that id, and its file, if it is one of a file, is unchanged."""
        file = self._by_id.get(id)
        return file.fingerprint.matches() if file is not None else self._workspace.registry.get(id) is not None

    def _refresh(self, max_age: float = 0.0) -> None:
        """Notice changed files. A check that is at most `max_age` seconds old is enough."""
        with self._lock:
            if self._workspace.config is self._config and self._fingerprint.unchanged(max_age):
                return
            self._config = self._workspace.config
            fingerprint = Fingerprint([self._workspace.data_dir / "trust.json"])
            before = {(file.path, file.own): file for file in self.files}
            files = []
            for folder, own in config_folders(self._workspace):
                for candidate in find_tool_files(self._workspace, folder, own, fingerprint):
                    file = before.get((candidate.path, own))
                    if file is not None and file.fingerprint.matches() and self._may_stay(file):
                        del before[file.path, own]
                    else:
                        file = candidate
                    files.append(file)
                    fingerprint.merge(file.fingerprint)
            self._fingerprint = fingerprint
            self.files = tuple(files)
            self._gone += before.values()
        self._publish()

    def _may_stay(self, file: ToolFile) -> bool:
        """Return whether an unchanged file keeps its state: a person may have trusted it, or trusts it no more."""
        if file.own or file.state in ("new", "missing", "failed"):
            return True
        return self._workspace.trust.known(file.subject) == (file.state == "loaded")

    async def _unload_gone(self) -> None:
        if self._gone:
            from .tool_file_loader import unload_tool_file

            while self._gone:
                await unload_tool_file(self._gone.pop(), self.scripts)

    @contextlib.asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Let one task in at a time. Calls may run on several loops, so no loop's own lock will do."""
        while not self._busy.acquire(blocking=False):  # noqa: ASYNC110 - see above
            await anyio.sleep(_POLL)
        try:
            yield
        finally:
            self._busy.release()

    def _publish(self) -> None:
        """Make the tools of the files the source's tools, and watch what the files import."""
        with self._lock:
            not_loaded: dict[str, list[ToolFile]] = {}
            tools: list[Tool] = []
            by_id: dict[str, ToolFile] = {}
            hidden: list[ToolFileProblem] = []
            for file in self.files:
                if file.code is not None:
                    self._fingerprint.merge(file.fingerprint)
                if file.state in NOT_LOADED:
                    not_loaded.setdefault(file.namespace.lower(), []).append(file)
                for tool in file.tools:
                    other = by_id.get(tool.id)
                    if other is not None and other.path.resolve() != file.path.resolve():
                        message = f"its tool {tool.id} is hidden by that of {file.label}, which comes later"
                        hidden.append(ToolFileProblem(other.path, None, message))
                    by_id[tool.id] = file
                    tools.append(tool)
            self._not_loaded, self._by_id, self._hidden = not_loaded, by_id, tuple(hidden)
            changed = tools != list(self._tools)
            self._tools = tuple(tools)
            if changed:
                self._workspace.registry.changed()
