"""`FileTools`: the tools of files as a source of the registry (`core.sources`).

Nothing is read before a tool is wanted, and nothing runs before it may: a file of the user's own config folder runs
when a tool of it is wanted or all are listed; one of a project when a person trusted exactly what it holds
(`core.trust`).
What has changed on disk is read again at the next call.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from ..errors import PermissionRejectedError
from ..sources import Rank, Unavailable
from ..tool import Tool
from ..tool_files import Loader
from ..trust import Subject
from .watch import Watch

if TYPE_CHECKING:
    from ..call import Call
    from ..workspace import Workspace
    from .entry import Entry, Problem
    from .loading import Loading

NOT_TRUSTED = "not trusted yet; run %tools trust"
NO_TOOL = "it defines no tool; write @tool above a function, or give the function a docstring"
NO_TOOL_JS = "it exports no tool; export default tool({ description, args, execute })"
WAITING = ("new", "untrusted", "missing")
"""States of files that may give tools later."""
_POLL = 0.005


class FileTools:
    """The tools of files.

    Args:
        workspace: whose config folders.
        scripts: gives what loads JavaScript and TypeScript files; called when there is such a file.
    """

    rank = Rank.FILES

    def __init__(self, workspace: Workspace, scripts: Callable[[], Loader] | None = None) -> None:
        self._workspace = workspace
        self._scripts = scripts
        self._busy = threading.Lock()
        self._publishing = threading.RLock()
        self._gone: list[Entry] = []
        self._tools: tuple[Tool, ...] = ()
        self._hidden: tuple[Problem, ...] = ()
        self._by_id: dict[str, Entry] = {}
        self._waiting: dict[str, list[Entry]] = {}
        """Entries that were not loaded, by their file's name in lower case."""
        self._watch = Watch(workspace, self._may_stay, self._gone.append, workspace.data_dir / "trust.json")

    # ------------------------------------------------------------------ what the registry asks

    def tools(self) -> Sequence[Tool]:
        """See `ToolSource.tools`."""
        return self._tools

    def unavailable(self) -> Sequence[Unavailable]:
        """See `ToolSource.unavailable`."""
        found = []
        for entry in self._watch.entries:
            failed = entry.state in ("failed", "missing")
            reason = entry.failure if failed else NOT_TRUSTED if entry.state == "untrusted" else ""
            if reason:
                ids = entry.ids or [entry.file.path.stem]
                found += [Unavailable(id, entry.label, reason) for id in ids]
            elif entry.state == "loaded" and (not entry.tools or entry.problems):
                nothing = NO_TOOL if entry.file.python else NO_TOOL_JS
                said = "; ".join(one.message for one in entry.problems) or nothing
                name = entry.file.path.stem
                found += [Unavailable(id, entry.label, said, quiet=True) for id in (name, f"{name}_*")]
        return found

    @property
    def quiet(self) -> bool:
        """See `ToolSource.quiet`."""
        return not (self._watch.entries or self._gone)

    def settled(self, wanted: str | None) -> bool:
        """See `ToolSource.settled`."""
        if self._watch.due() or wanted is None or not self._as_it_was(wanted):
            self._look()
        if not self._waiting and not self._gone:
            return True
        if wanted is None:
            return not self._gone and not any(one.state == "new" for one in self._watch.entries)
        return not any(self._may_give(entry, wanted) for entry in self._near(wanted))

    async def prepare(self, wanted: str | None, call: Call | None) -> None:
        """See `ToolSource.prepare`.

        Raises:
            ToolError: a person refused what `call` needed.
        """
        self._look()
        near = list(self._watch.entries) if wanted is None else list(self._near(wanted))
        async with self._turn():
            await self._forget_gone()
            for entry in near:
                if entry.state in WAITING:
                    await self._advance(entry, wanted)
        self._publish()
        if wanted is None or call is None:
            return
        for entry in near:
            if entry.state == "untrusted" and self._may_give(entry, wanted):
                await self._ask(entry, wanted, call)
                if entry not in self._watch.entries:  # it was changed while it was asked for
                    await self.prepare(wanted, call)
                    return

    # ------------------------------------------------------------------ what a person asks

    def problems(self) -> list[Problem]:
        """Problems of tool files, and notes on them."""
        return [*(problem for entry in self._watch.entries for problem in entry.problems), *self._hidden]

    def untrusted(self) -> list[Subject]:
        """The project's files that need a person's trust. Blocks for as long as reading them takes."""
        self._look()
        subjects = []
        for entry in self._watch.entries:
            if entry.file.own or entry.state not in WAITING:
                continue
            if entry.content is None and self._loading.read_now(entry):
                self._watch.add(entry)
            if entry.content is not None and not self._workspace.trust.known(entry.subject):
                subjects.append(entry.subject)
        return subjects

    # ------------------------------------------------------------------ which files may give a tool

    def _near(self, wanted: str) -> Iterator[Entry]:
        """The files that are not loaded and whose names fit an id; the single files too."""
        waiting = self._waiting
        yield from waiting.get("", ())
        low = wanted.lower()
        yield from waiting.get(low, ())
        at = low.find("_")
        while at >= 0:
            yield from waiting.get(low[:at], ())
            at = low.find("_", at + 1)

    def _may_give(self, entry: Entry, wanted: str) -> bool:
        """Return whether a file that is not loaded is to be loaded, or asked for, because of a wanted id."""
        if entry.content is None or entry.names(wanted):
            refused = entry.refused and not self._workspace.trust.known(entry.subject)
            return not refused or self._workspace.registry.get(wanted) is None
        # Its text does not say so, but may not say all: tools can be made by any code.
        return bool(entry.file.namespace) and self._workspace.registry.get(wanted) is None

    # ------------------------------------------------------------------ loading, and asking before

    @cached_property
    def _loading(self) -> Loading:
        """The loader of files, created when the first file is found."""
        from .loading import Loading

        made = Loading(self._scripts)
        weakref.finalize(self, made.close)
        return made

    async def _advance(self, entry: Entry, wanted: str | None) -> None:
        """Read a file, and load it if it may be."""
        if entry.content is None:
            if not await self._loading.read(entry):
                return
            self._watch.add(entry)
        if not entry.file.own and not self._workspace.trust.known(entry.subject):
            entry.state = "untrusted"
        elif wanted is None or self._may_give(entry, wanted):
            await self._loading.load(entry)

    async def _ask(self, entry: Entry, wanted: str, call: Call) -> None:
        """Ask a person for a file, once however many calls want it, and load it."""
        waited = False
        while entry.asking:
            waited = True
            await anyio.sleep(_POLL * 4)
        if entry.state == "untrusted":
            if waited and entry.refused:
                raise PermissionRejectedError
            entry.asking = True
            try:
                await self._workspace.trust.require(entry.subject, call)
            except PermissionRejectedError:
                entry.refused = True
                if self._workspace.registry.get(wanted) is None:
                    raise
                return  # the tool that it would have hidden is called
            finally:
                entry.asking = False
            entry.refused = False
            self._look()
            async with self._turn():
                if entry.state == "untrusted" and entry in self._watch.entries:
                    await self._loading.load(entry)
            self._publish()

    # ------------------------------------------------------------------ keeping up

    def _as_it_was(self, wanted: str) -> bool:
        """Whether the tool of that id, if it is of a file, is still what that file says, and exists otherwise."""
        entry = self._by_id.get(wanted)
        return entry.same() if entry is not None else self._workspace.registry.get(wanted) is not None

    def _look(self) -> None:
        if self._watch.look():
            self._publish()

    def _may_stay(self, entry: Entry) -> bool:
        if entry.file.own or entry.state in ("new", "missing", "failed"):
            return True
        return self._workspace.trust.known(entry.subject) == (entry.state == "loaded")

    async def _forget_gone(self) -> None:
        while self._gone:
            await self._loading.forget(self._gone.pop())

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One at a time. Calls may run on several loops, so no loop's own lock will do."""
        while not self._busy.acquire(blocking=False):  # noqa: ASYNC110 - see above
            await anyio.sleep(_POLL)
        try:
            yield
        finally:
            self._busy.release()

    def _publish(self) -> None:
        """Make what the entries have the source's answer."""
        with self._publishing:  # what was read last is to stand last
            waiting: dict[str, list[Entry]] = {}
            tools: list[Tool] = []
            by_id: dict[str, Entry] = {}
            hidden: list[Problem] = []
            for entry in self._watch.entries:
                if entry.state in WAITING:
                    waiting.setdefault(entry.file.namespace.lower(), []).append(entry)
                for one in entry.tools:
                    before = by_id.get(one.id)
                    if before is not None and before.file.path.resolve() != entry.file.path.resolve():
                        from .entry import Problem

                        said = f"its tool {one.id} is hidden by that of {entry.label}, which comes later"
                        hidden.append(Problem(before.file.path, None, said))
                    by_id[one.id] = entry
                    tools.append(one)
            self._waiting = waiting
            self._by_id = by_id
            self._hidden = tuple(hidden)
            changed = tools != list(self._tools)
            self._tools = tuple(tools)
            if changed:
                self._workspace.registry.changed()
