"""The plugins of one workspace: loaded before the first call, side by side, each within a time limit."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..discovery.find import config_folders
from ..sources import Rank, Unavailable
from ..tool import Tool
from ..trust import Subject
from . import installed
from .config_hooks import ConfigHooks
from .found import NOT_TRUSTED, Finder, Findings, Found
from .seen import Seen
from .threads import apart

if TYPE_CHECKING:
    from ..call import Call
    from ..workspace import Workspace
    from .context import PluginInput
    from .plugin import Plugin

log = logging.getLogger(__name__)

LOAD_SECONDS = 10.0
"""A plugin may take this long to start, and as long again for its ``config`` hook."""

STANDSTILL = 0.5
"""Seconds between two looks at whether the loop still runs on which plugins are being started."""

_loading: ContextVar[PluginTools | None] = ContextVar("opencode_plugins_loading", default=None)
"""Whose plugins this code is part of loading: a call that a starting plugin makes must not wait for it."""


class PluginTools:
    """A place that tools come from (`ToolSource`), and where the hooks of plugins come from.

    It never asks anybody: what is not trusted is left out until ``%tools trust`` says yes.

    Attributes:
        limit: seconds that a plugin may take to start.
    """

    rank = Rank.PLUGINS

    def __init__(self, workspace: Workspace) -> None:
        self.limit = LOAD_SECONDS
        self._workspace = workspace
        self._lock = threading.Lock()
        self._findings = Findings()
        self._plugins: list[Plugin] = []
        self._undo: list[Callable[[], None]] = []
        self._seen: Seen | None = None
        self._round: Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._late: set[asyncio.Task[None]] = set()
        self._arrived = 0
        self._config_hooks = ConfigHooks(workspace)
        self._closed = False
        installed.installed()  # begun now, it is mostly done when the first call comes

    # ------------------------------------------------------------------ ToolSource

    def tools(self) -> Sequence[Tool]:
        """The tools of the plugins that run, in order; of equal ids the later one counts."""
        return [one for plugin in self._plugins if plugin.offer for one in plugin.offer.tools]

    def unavailable(self) -> Sequence[Unavailable]:
        """Plugins that do not run."""
        return [Unavailable(f"{found.name}_*", found.source, reason) for found, reason in self._idle()]

    @property
    def quiet(self) -> bool:
        """See `ToolSource.quiet`."""
        seen = self._seen
        return seen is not None and not seen.files and not self._plugins and self._round is None

    def settled(self, wanted: str | None = None) -> bool:
        """Whether every plugin there is now was dealt with: hooks may concern any call, so `wanted` hardly matters.

        A look at all tools, and a person's call, see every folder as it is now; another call may go by what was seen a
        moment ago (`seen`).
        """
        if self._closed or _loading.get() is self:
            return True
        seen = self._seen
        since = math.inf if wanted is None else self._workspace.registry.asked
        return seen is not None and seen.holds(self._workspace.config, since)

    async def prepare(self, wanted: str | None = None, call: Call | None = None) -> None:
        """Start what is new, forget what is gone or was changed. Nobody is asked."""
        for _ in range(3):  # what changes all the time must not keep a call from running
            if self.settled():
                return
            with self._lock:
                future = self._round
                if future is None:
                    future = self._round = Future()
                    future.set_running_or_notify_cancel()  # a waiter that is cancelled takes nobody along
                    self._task = asyncio.create_task(self._bring_up_to_date(future))
            await self._wait(future)

    async def _wait(self, future: Future[None]) -> None:
        """Wait for a round that may run on another loop; if that loop stands still, let a new round begin."""
        waiting = asyncio.wrap_future(future)
        while not (await asyncio.wait({waiting}, timeout=STANDSTILL))[0]:
            task = self._task
            if task is None or not task.get_loop().is_running():
                with self._lock:
                    if self._round is future:
                        self._round = None
                return

    # ------------------------------------------------------------------ for lists and magics

    def untrusted(self) -> list[Subject]:
        """What waits for a person's trust. Blocks for as long as reading the files takes."""
        found = self._look(installed.installed().result()).plugins
        return [one.subject for one in found if one.subject is not None and one.reason == NOT_TRUSTED]

    def describe(self) -> list[dict[str, str]]:
        """A row for every plugin that is known: ``plugin``, ``source``, ``state``, ``gives``, ``advice``."""
        rows = []
        for plugin in self._plugins:
            gives = plugin.offer.summary() if plugin.offer else ""
            advice = plugin.error or "; ".join(plugin.offer.problems if plugin.offer else ())
            rows.append(_row(plugin.found, "failed" if plugin.error else "runs", gives, advice))
        rows += [
            _row(found, "waits" if found.reason == NOT_TRUSTED else "can't run", "", found.reason)
            for found in self._findings.plugins
            if found.reason
        ]
        rows += [
            {"plugin": name, "source": source, "state": "switched off", "gives": "", "advice": ""}
            for name, source in self._findings.off
        ]
        return rows

    @property
    def problems(self) -> list[str]:
        """What is wrong with plugins that run, or with what configs say of plugins; one line each."""
        own = [f"plugin {p.found.name}: {said}" for p in self._plugins if p.offer for said in p.offer.problems]
        return [*own, *self._findings.problems]

    @property
    def without_effect(self) -> list[str]:
        """What configs say of plugins and has no effect, with the reason."""
        return list(self._findings.problems)

    def _idle(self) -> list[tuple[Found, str]]:
        waiting = [(found, found.reason) for found in self._findings.plugins if found.reason]
        return [*waiting, *((p.found, p.error) for p in self._plugins if p.error)]

    # ------------------------------------------------------------------ one round

    async def _bring_up_to_date(self, future: Future[None]) -> None:
        token = _loading.set(self)
        try:
            await self._round_of_changes()
        except Exception:
            log.exception("looking for plugins failed")
        finally:
            _loading.reset(token)
            with self._lock:
                if self._round is future:
                    self._round = None
            future.set_result(None)

    async def _round_of_changes(self) -> None:
        workspace = self._workspace
        import_path = list(sys.path)
        packages = await asyncio.shield(asyncio.wrap_future(installed.installed()))
        findings = await apart(self._look, packages)
        if any(found.subject is not None for found in findings.plugins):
            findings.watched.append(workspace.data_dir / "trust.json")
        seen = Seen.now(findings.watched, findings.folders)
        old = {plugin.found: plugin for plugin in self._plugins}
        wanted = [found for found in findings.plugins if not found.reason]
        new: list[Plugin] = []
        if unknown := [found for found in wanted if found not in old]:
            from .context import PluginInput  # here: most projects have no plugins
            from .plugin import Plugin

            new = [Plugin(found) for found in unknown]
            given = PluginInput.of(workspace)
            await self._start_all(new, given)
        started = {plugin.found: plugin for plugin in new}
        arrived = self._arrived
        self._take_over(findings, [old.get(found) or started[found] for found in wanted])
        await self._config_hooks.run(self._plugins, self.limit)
        if self._arrived == arrived:  # else a late one came meanwhile, and wants another round
            self._seen = replace(seen, config=workspace.config, path=import_path)
        workspace.registry.changed()

    def _look(self, packages: Sequence[installed.Installed]) -> Findings:
        workspace = self._workspace
        finder = Finder(
            self._config_hooks.before(),
            workspace.directory,
            workspace.worktree,
            workspace.trust,
            defaults=workspace.flags.default_plugins,
            folders=[folder for folder, _ in config_folders(workspace)],
        )
        return finder.look(packages)

    async def _start_all(self, new: list[Plugin], given: PluginInput) -> None:
        """Start plugins side by side. One that takes too long goes on by itself and joins when it is done."""
        tasks = {asyncio.create_task(self._start(plugin, given)): plugin for plugin in new}
        try:
            _, late = await asyncio.wait(tasks, timeout=self.limit)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            raise
        for task in late:
            plugin = tasks[task]
            plugin.error = f"it did not start within {self.limit:g} s; its tools and hooks join once it has"
            log.warning("plugin %s (%s): %s", plugin.name, plugin.found.source, plugin.error)
            self._late.add(task)
            task.add_done_callback(self._joins)

    def _joins(self, task: asyncio.Task[None]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            self._arrived += 1
            self._seen = None  # the next call takes it in

    async def _start(self, plugin: Plugin, given: PluginInput) -> None:
        """Run a plugin's functions. What goes wrong is kept in `plugin`."""
        from .contents import PluginError, described, exported, quietly
        from .offer import Offer, take

        offer, error = Offer(), ""
        name = plugin.name
        try:
            found = await apart(quietly, name, partial(exported, plugin.found))
            plugin.module = found.module
            for fn in found.functions:
                take(await _called(fn, name, given), fn, name, offer)
        except PluginError as raised:
            error = str(raised)
        except Exception as raised:
            error = f"starting it failed: {described(raised)}"
        if error:
            log.warning("plugin %s (%s): %s", name, plugin.found.source, error)
        else:
            plugin.offer = offer
        plugin.error = error

    def _take_over(self, findings: Findings, plugins: list[Plugin]) -> None:
        """Put the hooks of these plugins, in their order, in the place of those that were there."""
        workspace = self._workspace
        for undo in self._undo:
            undo()
        self._undo.clear()
        kept = {id(plugin) for plugin in plugins}
        for gone in self._plugins:
            if id(gone) not in kept:
                for listener in gone.listeners:
                    listener.end()
                _forget_module(gone)
        loop = asyncio.get_running_loop()
        for plugin in plugins:
            if plugin.offer is None:
                continue
            for name, fn in plugin.offer.hooks:
                self._undo.append(workspace.hooks.add(name, plugin.guarded(name, fn), plugin.name))
            if not plugin.listeners:
                from .listeners import Listener

                plugin.listeners = [Listener(fn, plugin.name, loop) for fn in plugin.offer.events]
            self._undo += [workspace.bus.subscribe("*", listener) for listener in plugin.listeners]
        self._findings, self._plugins = findings, plugins

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """Load nothing any more. Hooks stay until the workspace is closed; listeners end at its last event."""
        self._closed = True
        here = asyncio.get_running_loop()
        tasks = [*self._late, *([self._task] if self._task else [])]
        mine = [task for task in tasks if not task.done() and task.get_loop() is here]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)
        for plugin in self._plugins:
            _forget_module(plugin)


def _forget_module(plugin: Plugin) -> None:
    if plugin.module:
        from ..discovery.importing import drop

        drop(plugin.module)


async def _called(fn: Callable[..., Any], name: str, given: PluginInput) -> Any:
    """A plugin function's hooks: sync ones run apart, async ones on this loop."""
    from .contents import PluginError, described, quietly

    returned = await apart(quietly, name, partial(fn, given))
    if asyncio.iscoroutine(returned) or isinstance(returned, asyncio.Future):
        try:
            return await returned
        except (SystemExit, KeyboardInterrupt) as error:
            raise PluginError(f"it raised {described(error)}") from error
    return returned


def _row(found: Found, state: str, gives: str, advice: str) -> dict[str, str]:
    return {"plugin": found.name, "source": found.source, "state": state, "gives": gives, "advice": advice}
