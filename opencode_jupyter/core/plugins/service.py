"""The plugins of one workspace: loaded before the first call, side by side, each within a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..config import Config
from ..config.amend import amended
from ..hooks import DEFINITION, Hook
from ..sources import Rank, Unavailable
from ..tool import Tool
from ..trust import Subject
from . import installed
from .contents import PluginError, described, functions_of
from .context import PluginInput
from .found import NOT_TRUSTED, Finder, Findings, Found
from .listeners import Listener
from .offer import Offer, take
from .threads import apart, off_loop

if TYPE_CHECKING:
    from ..call import Call
    from ..workspace import Workspace

log = logging.getLogger(__name__)

LOAD_SECONDS = 10.0
"""A plugin may take this long to start, and as long again for its ``config`` hook."""

_loading: ContextVar[PluginTools | None] = ContextVar("opencode_plugins_loading", default=None)
"""Whose plugins this code is part of loading: a call that a starting plugin makes must not wait for it."""


@dataclass(slots=True)
class Plugin:
    """A plugin that was started, or could not be.

    Attributes:
        found: where it was.
        offer: what it gives; None if it failed.
        error: why it failed.
        listeners: its ``event`` hooks.
    """

    found: Found
    offer: Offer | None = None
    error: str = ""
    listeners: list[Listener] = field(default_factory=list)


@dataclass(slots=True)
class _Seen:
    """What the plugins were looked for in, to notice that it changed."""

    config: Config
    path: list[str]
    stamps: list[tuple[str, tuple[int, int] | None]]


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
        self._seen: _Seen | None = None
        self._round: Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._base: Config | None = None
        self._own_config: Config | None = None
        self._config_hooks: tuple[Config | None, list[Callable[..., Any]]] = (None, [])
        self._closed = False
        installed.installed()  # begun now, it is mostly done when the first call comes

    # ------------------------------------------------------------------ ToolSource

    def tools(self) -> Sequence[Tool]:
        """The tools of the plugins that run, in order; of equal ids the later one counts."""
        return [one for plugin in self._plugins if plugin.offer for one in plugin.offer.tools]

    def unavailable(self) -> Sequence[Unavailable]:
        """Plugins that do not run."""
        return [Unavailable(f"{found.name}_*", found.source, reason) for found, reason in self._idle()]

    def settled(self, wanted: str | None = None) -> bool:
        """Whether every plugin there is now was dealt with: hooks may concern any call, so `wanted` does not matter."""
        if self._closed or _loading.get() is self:
            return True
        seen = self._seen
        return (
            seen is not None
            and seen.config is self._workspace.config
            and seen.path == sys.path
            and all(_stamp(path) == stamp for path, stamp in seen.stamps)
        )

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
            await asyncio.shield(asyncio.wrap_future(future))

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
                self._round = None
            future.set_result(None)

    async def _round_of_changes(self) -> None:
        workspace = self._workspace
        config, import_path = workspace.config, list(sys.path)
        if config is not self._own_config:
            self._base = config
        packages = await asyncio.shield(asyncio.wrap_future(installed.installed()))
        findings = await apart(self._look, packages)
        watched = [os.fspath(path) for path in findings.watched]
        if any(found.reason == NOT_TRUSTED for found in findings.plugins):
            watched.append(os.fspath(workspace.data_dir / "trust.json"))
        stamps = [(path, _stamp(path)) for path in dict.fromkeys(watched)]
        old = {plugin.found: plugin for plugin in self._plugins}
        wanted = [found for found in findings.plugins if not found.reason]
        new = [Plugin(found) for found in wanted if found not in old]
        if new:
            given = PluginInput.of(workspace)
            await asyncio.gather(*(self._start(plugin, given) for plugin in new))
        started = {plugin.found: plugin for plugin in new}
        self._take_over(findings, [old.get(found) or started[found] for found in wanted])
        await self._let_change_config()
        self._seen = _Seen(workspace.config, import_path, stamps)
        workspace.registry.changed()

    def _look(self, packages: Sequence[installed.Installed]) -> Findings:
        workspace = self._workspace
        config = workspace.config if workspace.config is not self._own_config else self._base or workspace.config
        finder = Finder(
            config,
            workspace.directory,
            workspace.worktree,
            workspace.trust,
            defaults=workspace.flags.default_plugins,
        )
        return finder.look(packages)

    async def _start(self, plugin: Plugin, given: PluginInput) -> None:
        """Run a plugin's functions. What goes wrong is kept in `plugin`."""
        offer = Offer()
        name = plugin.found.name
        try:
            async with asyncio.timeout(self.limit) as limit:
                for fn in await apart(functions_of, plugin.found):
                    returned = await _called(fn, given)
                    take(returned, fn, name, offer)
        except PluginError as error:
            plugin.error = str(error)
        except Exception as error:
            plugin.error = f"starting it failed: {described(error)}"
            if limit.expired():
                plugin.error = f"it did not start within {self.limit:g} s, so its tools and hooks are left out"
        if plugin.error:
            log.warning("plugin %s (%s): %s", name, plugin.found.source, plugin.error)
            return
        plugin.offer = offer

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
        loop = asyncio.get_running_loop()
        for plugin in plugins:
            if plugin.offer is None:
                continue
            for name, fn in plugin.offer.hooks:
                self._undo.append(workspace.hooks.add(name, _guarded(name, fn, plugin), plugin.found.name))
            if not plugin.listeners:
                plugin.listeners = [Listener(fn, plugin.found.name, loop) for fn in plugin.offer.events]
            self._undo += [workspace.bus.subscribe("*", listener) for listener in plugin.listeners]
        self._findings, self._plugins = findings, plugins

    # ------------------------------------------------------------------ config hooks

    async def _let_change_config(self) -> None:
        """Run the ``config`` hooks, if there are others than before or another config."""
        hooks = [(p, fn) for p in self._plugins if p.offer for fn in p.offer.configs]
        base = self._base
        functions = [fn for _, fn in hooks]
        done_for, done = self._config_hooks
        if base is None or (base is done_for and functions == done) or not (hooks or self._own_config):
            return
        config = base
        for plugin, fn in hooks:
            data = copy.deepcopy(config.data)
            try:
                async with asyncio.timeout(self.limit):
                    await off_loop(fn)(data)
                if data != config.data:
                    config = amended(config, data, f"plugin {plugin.found.name}")
            except Exception as error:
                said = f"its config hook failed: {described(error)}"
                log.warning("plugin %s: %s", plugin.found.name, said)
                if plugin.offer is not None and said not in plugin.offer.problems:
                    plugin.offer.problems.append(said)
        now = self._workspace.config
        if now is base or now is self._own_config:  # else it was read again meanwhile, and comes with the next round
            self._config_hooks = (base, functions)
            self._own_config = config if config is not base else None
            self._workspace.use_config(config)

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """Load nothing any more. Hooks stay until the workspace is closed; listeners end at its last event."""
        self._closed = True
        task = self._task
        if task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _called(fn: Callable[..., Any], given: PluginInput) -> Any:
    """A plugin function's hooks: sync ones run apart, async ones on this loop."""
    returned = await apart(fn, given)
    if asyncio.iscoroutine(returned) or isinstance(returned, asyncio.Future):
        try:
            return await returned
        except (SystemExit, KeyboardInterrupt) as error:
            raise PluginError(f"it raised {described(error)}") from error
    return returned


def _guarded(name: str, fn: Callable[..., Any], plugin: Plugin) -> Hook:
    run = off_loop(fn)
    if name != DEFINITION:
        return run

    async def describe(input: dict[str, Any], output: dict[str, Any]) -> None:
        # One plugin's mistake must not take every tool from the model.
        try:
            await run(input, output)
        except Exception as error:
            said = f"its hook {name} failed: {described(error)}"
            log.warning("plugin %s: %s", plugin.found.name, said)
            if plugin.offer is not None and said not in plugin.offer.problems:
                plugin.offer.problems.append(said)

    return describe


def _row(found: Found, state: str, gives: str, advice: str) -> dict[str, str]:
    return {"plugin": found.name, "source": found.source, "state": state, "gives": gives, "advice": advice}


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
