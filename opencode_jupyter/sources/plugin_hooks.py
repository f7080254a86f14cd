"""Run a plugin's functions so that they block no event loop: hooks, ``event`` hooks and ``config`` hooks."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.hooks import DEFINITION, Hook
from ..core.threads import call_soon
from .plugin_discovery import PluginSpec
from .plugin_input import PluginError, describe_error
from .plugin_loader import PluginExports
from .python_modules import start_thread

if TYPE_CHECKING:
    from ..core.config import Config
    from ..core.host import ToolHost

log = logging.getLogger(__name__)

LAST_EVENT = "server.instance.disposed"
MAX_PENDING = 10_000
"""Events that wait for a slow sync listener; further ones are dropped, and the log says so."""


async def run_in_daemon_thread(fn: Callable[..., Any], *args: Any) -> Any:
    """Call `fn` on a thread of its own.

    Raises:
        PluginError: it tried to end the process. Its other exceptions pass through.
    """
    value, error = await start_thread(partial(fn, *args), "opencode-plugin")[1]
    if isinstance(error, (SystemExit, KeyboardInterrupt, StopIteration)):
        raise _harmless(error) from error
    if error is not None:
        raise error
    return value


def off_loop(fn: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """An async form of a plugin's function: an async one runs as it is, a sync one on a thread."""
    direct = _is_async(fn)

    async def run(*args: Any) -> Any:
        try:
            value = fn(*args) if direct else await run_in_daemon_thread(fn, *args)
            return await value if inspect.isawaitable(value) else value
        except (SystemExit, KeyboardInterrupt) as error:
            raise _harmless(error) from error

    return run


def _is_async(fn: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _harmless(error: BaseException) -> PluginError:
    """What must not reach an event loop, as an error that may."""
    return PluginError(f"it raised {describe_error(error)}")


@dataclass(slots=True)
class Plugin:
    """A plugin that was started, or could not be.

    Attributes:
        spec: where it was found.
        exports: its tools and hooks; None if it failed, or has not started yet.
        error: why there are no exports.
        listeners: its ``event`` hooks.
        module: the module of its file; "" for a package's.
    """

    spec: PluginSpec
    exports: PluginExports | None = None
    error: str = ""
    listeners: list[EventListener] = field(default_factory=list)
    module: str = ""

    @property
    def name(self) -> str:
        """As a person reads it."""
        return self.spec.name

    def add_problem(self, message: str) -> None:
        """Keep and log a problem that does not end the plugin."""
        log.warning("plugin %s: %s", self.name, message)
        if self.exports is not None and message not in self.exports.problems:
            self.exports.problems.append(message)

    def hook(self, name: str, fn: Callable[..., Any]) -> Hook:
        """A hook as the call pipeline runs it; one that changes tool definitions never fails: it would end them all."""
        run = off_loop(fn)
        if name != DEFINITION:
            return run

        async def reword(input: dict[str, Any], output: dict[str, Any]) -> None:
            try:
                await run(input, output)
            except Exception as error:
                self.add_problem(f"its hook {name} failed: {describe_error(error)}")

        return reword


class EventListener:
    """One ``event`` hook, to be subscribed to ``*``. Nothing waits for it; its exceptions are logged.

    An async hook runs on the loop that publishes, else on `loop`; a sync one on a thread of its own, in order.

    Args:
        fn: called with ``{"event": {"type", "properties"}}``.
        plugin: its name, for the log.
        loop: where async hooks run for events that are published outside a loop.
    """

    def __init__(self, fn: Callable[..., Any], plugin: str, loop: asyncio.AbstractEventLoop) -> None:
        self._fn = fn
        self._plugin = plugin
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_async = _is_async(fn)
        self._pending: queue.Queue[dict[str, Any] | None] = queue.Queue(MAX_PENDING)
        self._thread: threading.Thread | None = None

    def __call__(self, event: dict[str, Any]) -> None:
        """Take an event. It never raises and never blocks."""
        if self._is_async:
            self._start_task(event)
            return
        try:
            self._pending.put_nowait(event)
        except queue.Full:
            log.warning("the event hook of the plugin %s is too slow: %s is lost", self._plugin, event["type"])
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"plugin {self._plugin}", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """End after the pending events."""
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._pending.put_nowait(None)

    def _start_task(self, event: dict[str, Any]) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            if self._loop.is_running():
                call_soon(self._loop, self._start_task, event)
            return
        task = loop.create_task(self._await(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await(self, event: dict[str, Any]) -> None:
        try:
            await self._fn({"event": event})
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            self._log(event, error)

    def _run(self) -> None:
        while (event := self._pending.get()) is not None:
            try:
                self._fn({"event": event})
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                self._log(event, error)
            if event["type"] == LAST_EVENT:
                return

    def _log(self, event: dict[str, Any], error: BaseException) -> None:
        log.error("the event hook of the plugin %s failed at %s", self._plugin, event["type"], exc_info=error)


class ConfigHooks:
    """Applies the ``config`` hooks to the configuration of the files, again whenever hooks or files change."""

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._base: Config | None = None
        self._changed: Config | None = None
        """The configuration with the hooks' changes; None if they changed nothing."""
        self._applied: tuple[Config | None, list[Callable[..., Any]]] = (None, [])

    def base(self) -> Config:
        """The configuration without the changes of plugins."""
        config = self._workspace.config
        if self._base is None or config is not self._changed:
            self._base = config
        return self._base

    async def apply(self, plugins: Sequence[Plugin], limit: float) -> None:
        """Run the hooks in order, unless the same ones ran on the same configuration.

        Args:
            plugins: all that run.
            limit: seconds that each hook may take. One that fails or takes longer changes nothing.
        """
        base = self.base()
        hooks = [(plugin, fn) for plugin in plugins if plugin.exports for fn in plugin.exports.configs]
        functions = [fn for _, fn in hooks]
        applied_base, applied = self._applied
        if (base is applied_base and functions == applied) or not (hooks or self._changed):
            return
        from ..core.config.load import amended

        config = base
        for plugin, fn in hooks:
            data = copy.deepcopy(config.data)
            try:
                async with asyncio.timeout(limit):
                    await off_loop(fn)(data)
                if data != config.data:
                    config = amended(config, data, f"plugin {plugin.name}")
            except Exception as error:
                plugin.add_problem(f"its config hook failed: {describe_error(error)}")
        now = self._workspace.config
        if now is base or now is self._changed:  # else it was read again meanwhile: the next round applies them
            self._applied = (base, functions)
            self._changed = config if config is not base else None
            self._workspace.use_config(config)
