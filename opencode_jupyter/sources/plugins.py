"""`PluginTools`: the plugins of one workspace, loaded before the first call, side by side, each within a time limit."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..core.tool import Tool
from ..core.tool_source import Rank, Unavailable
from ..core.trust import Subject
from .plugin_discovery import InstalledPlugin, PluginScan, PluginSpec, installed_plugins

if TYPE_CHECKING:
    from ..core.call import Call
    from ..core.config import Config
    from ..core.host import ToolHost
    from .plugin_hooks import ConfigHooks, Plugin
    from .plugin_input import PluginInput

log = logging.getLogger(__name__)

LOAD_SECONDS = 10.0
"""A plugin may take this long to start, and as long again for its ``config`` hook."""
MAX_AGE = 0.02
"""Seconds for which code's calls go by the last check of the plugin folders: there are two in each config folder."""
STALLED = 0.5
"""Seconds between two checks whether the loop that starts plugins still runs."""

_loading: ContextVar[PluginTools | None] = ContextVar("opencode_plugins_loading", default=None)
"""Whose plugins this code is part of loading: a call that a starting plugin makes must not wait for it."""


class PluginTools:
    """A source of tools (`core.tool_source.ToolSource`) and of hooks.

    It never asks anybody: a plugin that is not trusted is left out until ``%tools trust``.

    Attributes:
        limit: seconds that a plugin may take to start.
    """

    rank = Rank.PLUGINS

    def __init__(self, workspace: ToolHost) -> None:
        self.limit = LOAD_SECONDS
        self._workspace = workspace
        self._lock = threading.Lock()
        self._scan = PluginScan(workspace, workspace.config, ())
        self._plugins: list[Plugin] = []
        self._undo: list[Callable[[], None]] = []
        self._is_fresh = False
        """The scan holds for `_config` and `_import_path`, unless its fingerprints differ."""
        self._config: Config | None = None
        self._import_path: list[str] = []
        self._round: Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._late: set[asyncio.Task[None]] = set()
        self._joined = 0
        self._config_hooks: ConfigHooks | None = None
        self._closed = False
        installed_plugins()  # started now, it has mostly finished when the first call comes

    # ------------------------------------------------------------------ for the registry

    def tools(self) -> Sequence[Tool]:
        """The tools of the plugins that run, in order; of equal ids the later one is used."""
        return [tool for plugin in self._plugins if plugin.exports for tool in plugin.exports.tools]

    def unavailable(self) -> Sequence[Unavailable]:
        """Plugins that do not run."""
        idle = [(spec, spec.reason) for spec in self._scan.plugins if spec.reason]
        idle += [(plugin.spec, plugin.error) for plugin in self._plugins if plugin.error]
        return [Unavailable(f"{spec.name}_*", spec.source, reason) for spec, reason in idle]

    @property
    def quiet(self) -> bool:
        """See `ToolSource.quiet`."""
        return self._is_fresh and not len(self._scan.files) and not self._plugins and self._round is None

    def is_fresh(self, tool_id: str | None = None) -> bool:
        """Return whether all plugins there are now were started; hooks concern any call, whichever tool it requests.

        A listing of all tools and a person's call check every folder; another call checks all files, and the folders
        if the last check is older than `MAX_AGE`.
        """
        if self._closed or _loading.get() is self:
            return True
        if not self._is_fresh or self._config is not self._workspace.config or self._import_path != sys.path:
            return False
        since = math.inf if tool_id is None else self._workspace.registry.invalidated_at
        return self._scan.files.matches() and self._scan.folders.unchanged(MAX_AGE, since)

    async def prepare(self, tool_id: str | None = None, call: Call | None = None) -> None:
        """Start new plugins, end those that were deleted or changed. Nobody is asked."""
        for _ in range(3):  # files that change all the time must not keep a call from running
            if self.is_fresh():
                return
            with self._lock:
                future = self._round
                if future is None:
                    future = self._round = Future()
                    future.set_running_or_notify_cancel()  # a cancelled waiter cancels no other
                    self._task = asyncio.create_task(self._run_round(future))
            await self._wait(future)

    async def _wait(self, future: Future[None]) -> None:
        """Wait for a round that may run on another loop; if that loop stands still, let a new round begin."""
        pending = asyncio.wrap_future(future)
        while not (await asyncio.wait({pending}, timeout=STALLED))[0]:
            task = self._task
            if task is None or not task.get_loop().is_running():
                with self._lock:
                    if self._round is future:
                        self._round = None
                return

    # ------------------------------------------------------------------ for people

    def untrusted(self) -> list[Subject]:
        """The plugins that need a person's trust. Blocks while it reads them."""
        specs = self._find(installed_plugins().result()).plugins
        return [spec.subject for spec in specs if spec.subject is not None and spec.needs_trust]

    def describe(self) -> list[dict[str, str]]:
        """A row for every known plugin: ``plugin``, ``source``, ``state``, ``gives``, ``advice``."""

        def row(name: str, source: str, state: str, gives: str = "", advice: str = "") -> dict[str, str]:
            return {"plugin": name, "source": source, "state": state, "gives": gives, "advice": advice}

        rows = []
        for plugin in self._plugins:
            gives = plugin.exports.summary() if plugin.exports else ""
            advice = plugin.error or "; ".join(plugin.exports.problems if plugin.exports else ())
            rows.append(row(plugin.name, plugin.spec.source, "failed" if plugin.error else "runs", gives, advice))
        for spec in self._scan.plugins:
            if spec.reason:
                state = "waits" if spec.needs_trust else "can't run"
                rows.append(row(spec.name, spec.source, state, advice=spec.reason))
        return rows + [row(name, source, "switched off") for name, source in self._scan.off]

    @property
    def without_effect(self) -> list[str]:
        """Lines of configs that have no effect, with the reason."""
        return list(self._scan.problems)

    # ------------------------------------------------------------------ one round

    async def _run_round(self, future: Future[None]) -> None:
        token = _loading.set(self)
        try:
            await self._update()
        except Exception:
            log.exception("looking for plugins failed")
        finally:
            _loading.reset(token)
            with self._lock:
                if self._round is future:
                    self._round = None
            future.set_result(None)

    async def _update(self) -> None:
        workspace = self._workspace
        import_path = list(sys.path)
        installed = await asyncio.shield(asyncio.wrap_future(installed_plugins()))
        scan = await asyncio.to_thread(self._find, installed)
        old = {plugin.spec: plugin for plugin in self._plugins}
        runnable = [spec for spec in scan.plugins if not spec.reason]
        new: dict[PluginSpec, Plugin] = {}
        if unknown := [spec for spec in runnable if spec not in old]:
            from .plugin_hooks import Plugin  # here: most projects have no plugins

            new = {spec: Plugin(spec) for spec in unknown}
            await self._start_all(list(new.values()))
        joined = self._joined
        self._replace(scan, [old.get(spec) or new[spec] for spec in runnable])
        if self._plugins or self._config_hooks is not None:
            from .plugin_hooks import ConfigHooks

            self._config_hooks = self._config_hooks or ConfigHooks(workspace)
            await self._config_hooks.apply(self._plugins, self.limit)
        if self._joined == joined:  # else a late one joined meanwhile, and needs another round
            self._is_fresh, self._config, self._import_path = True, workspace.config, import_path
        workspace.registry.changed()

    def _find(self, installed: Sequence[InstalledPlugin]) -> PluginScan:
        hooks = self._config_hooks
        config = self._workspace.config if hooks is None else hooks.base()
        return PluginScan(self._workspace, config, installed).find()

    async def _start_all(self, new: list[Plugin]) -> None:
        """Start plugins side by side. One that takes too long goes on by itself and joins when it has started."""
        from .plugin_input import PluginInput

        input = PluginInput.of(self._workspace)
        tasks = {asyncio.create_task(_start(plugin, input)): plugin for plugin in new}
        try:
            _, late = await asyncio.wait(tasks, timeout=self.limit)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            raise
        for task in late:
            plugin = tasks[task]
            plugin.error = f"it did not start within {self.limit:g} s; its tools and hooks join once it has"
            log.warning("plugin %s (%s): %s", plugin.name, plugin.spec.source, plugin.error)
            self._late.add(task)
            task.add_done_callback(self._join)

    def _join(self, task: asyncio.Task[None]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            self._joined += 1
            self._is_fresh = False  # the next call adds its tools and hooks

    def _replace(self, scan: PluginScan, plugins: list[Plugin]) -> None:
        """Replace the hooks of the plugins so far by those of these, in their order."""
        workspace = self._workspace
        for undo in self._undo:
            undo()
        self._undo.clear()
        kept_ids = {id(plugin) for plugin in plugins}
        for plugin in self._plugins:
            if id(plugin) not in kept_ids:
                for listener in plugin.listeners:
                    listener.end()
                _drop(plugin)
        loop = asyncio.get_running_loop()
        for plugin in plugins:
            if plugin.exports is None:
                continue
            for name, fn in plugin.exports.hooks:
                self._undo.append(workspace.hooks.add(name, plugin.hook(name, fn), plugin.name))
            if plugin.exports.events and not plugin.listeners:
                from .plugin_hooks import EventListener

                plugin.listeners = [EventListener(fn, plugin.name, loop) for fn in plugin.exports.events]
            self._undo += [workspace.bus.subscribe("*", listener) for listener in plugin.listeners]
        self._scan, self._plugins = scan, plugins

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """Start no more plugins. Hooks stay until the workspace is closed; listeners end at its last event."""
        self._closed = True
        loop = asyncio.get_running_loop()
        tasks = [*self._late, *([self._task] if self._task else [])]
        own_tasks = [task for task in tasks if not task.done() and task.get_loop() is loop]
        for task in own_tasks:
            task.cancel()
        await asyncio.gather(*own_tasks, return_exceptions=True)
        for plugin in self._plugins:
            _drop(plugin)


async def _start(plugin: Plugin, input: PluginInput) -> None:
    """Run a plugin's functions; sync ones on a thread. A failure is kept in `plugin`."""
    from .plugin_hooks import off_loop, run_in_daemon_thread
    from .plugin_input import PluginError, describe_error
    from .plugin_loader import PluginExports, import_plugin

    exports, error = PluginExports(), ""
    try:
        functions, plugin.module = await run_in_daemon_thread(import_plugin, plugin.spec)
        for fn in functions:
            exports.add(await off_loop(fn)(input), fn, plugin.name)
    except PluginError as raised:
        error = str(raised)
    except Exception as raised:
        error = f"starting it failed: {describe_error(raised)}"
    if error:
        log.warning("plugin %s (%s): %s", plugin.name, plugin.spec.source, error)
    else:
        plugin.exports = exports
    plugin.error = error


def _drop(plugin: Plugin) -> None:
    if plugin.module:
        from .python_modules import drop_module

        drop_module(plugin.module)
