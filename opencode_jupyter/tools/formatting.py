"""Formatters: programs that put a file in order after a tool has changed it (docs/opencode/tools.md 17).

A service of the workspace that listens to ``file.edited``. The event's publisher waits for it, so a tool reads the file
again when it has been formatted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ..core import atomic
from ..runtime.sandbox.service import Sandbox
from .formatters import BUILTIN, Formatter, Place
from .process import clean_environment, spawn

if TYPE_CHECKING:
    from ..core.host import ToolHost

log = logging.getLogger(__name__)

LIMIT = 10.0
"""Seconds a formatter may take for a file; then it is ended and the file is as it was before."""


class Formatters:
    """The formatters of a workspace, and whether each is enabled: found out when its kind of file is first edited.

    Args:
        workspace: whose config, folder and bus count.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._config: Any = None
        self._formatters: list[Formatter] = []
        self._enabled: dict[str, bool] = {}
        self._unsubscribe = workspace.bus.subscribe("file.edited", self._edited)

    def close(self) -> None:
        """Listen no more."""
        self._unsubscribe()

    async def format(self, path: Path) -> list[str]:
        """Run every enabled formatter of a file, one after another.

        Returns:
            The names of those that ran without a fault. What goes wrong is logged only.
        """
        self._load()
        ran = []
        for formatter in self._formatters:
            if path.suffix in formatter.extensions and await self._is_enabled(formatter):
                try:
                    if await self._run(formatter, path):
                        ran.append(formatter.name)
                except Exception:
                    log.exception("the formatter %s failed", formatter.name)
        return ran

    async def _edited(self, event: dict[str, Any]) -> None:
        await self.format(Path(event["properties"]["file"]))

    def _load(self) -> None:
        config = self._workspace.config
        if config is not self._config:
            self._config = config
            self._formatters = configured(config.data.get("formatter"))
            self._enabled = {}

    async def _is_enabled(self, formatter: Formatter) -> bool:
        known = self._enabled.get(formatter.name)
        if known is None:
            place = Place(self._workspace.directory, self._workspace.worktree)
            known = await anyio.to_thread.run_sync(_check, formatter, place)
            self._enabled[formatter.name] = known
        return known

    async def _run(self, formatter: Formatter, path: Path) -> bool:
        program = find(formatter.command[0], self._workspace.directory)
        if program is None:
            log.info("the formatter %s is not installed: no %s", formatter.name, formatter.command[0])
            return False
        argv = [program, *(word.replace("$FILE", str(path)) for word in formatter.command[1:])]
        keep = self._workspace.config.get("experimental", "shell_env_keep", default=())
        env = clean_environment(os.environ, keep=[keep] if isinstance(keep, str) else keep, extra=formatter.environment)
        before = await anyio.to_thread.run_sync(path.read_bytes)
        sandbox = self._workspace.service(Sandbox).program("formatter", formatter.name)
        cwd = str(self._workspace.directory)
        child = await spawn(argv, cwd=cwd, env=env, on_output=_discard, sandbox=sandbox)
        try:
            outcome = await asyncio.wait_for(child.wait(), LIMIT)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await child.stop()
                await anyio.to_thread.run_sync(_restore, path, before)
            if not isinstance(error, TimeoutError):
                raise
            log.warning("the formatter %s took more than %g s for %s and was stopped", formatter.name, LIMIT, path)
            return False
        finally:
            child.close()
        if outcome.code != 0:
            log.warning("the formatter %s failed for %s: exit code %s", formatter.name, path, outcome.code)
        return outcome.code == 0


def configured(config: Any) -> list[Formatter]:
    """The formatters that a config's ``formatter`` leaves: ``false`` for none, or an object of entries by name.

    An entry has ``command`` (a list, with ``$FILE``), ``extensions``, ``environment``, ``disabled``. One that is not
    built in needs a command and is always enabled.
    """
    if config is False:
        return []
    found = {formatter.name: formatter for formatter in BUILTIN}
    for name, entry in config.items() if isinstance(config, Mapping) else ():
        if entry is False or (isinstance(entry, Mapping) and entry.get("disabled") is True):
            found.pop(name, None)
        elif isinstance(entry, Mapping):
            made = _merged(str(name), entry, found.get(name))
            if made is not None:
                found[name] = made
        elif entry is not True:
            log.warning("formatter.%s is %r; it should be an object with command and extensions", name, entry)
    return [*found.values()]


def _merged(name: str, entry: Mapping[str, Any], builtin: Formatter | None) -> Formatter | None:
    base = builtin or Formatter(name, (), (), _always)
    command = entry.get("command", base.command)
    extensions = entry.get("extensions", base.extensions)
    environment = entry.get("environment", base.environment)
    good = (
        all(
            isinstance(given, (list, tuple)) and all(isinstance(w, str) for w in given)
            for given in (command, extensions)
        )
        and bool(command)
        and isinstance(environment, Mapping)
    )
    if not good:
        log.warning(
            'formatter.%s is ignored: it needs "command" and "extensions", lists of texts such as ["black", "$FILE"] '
            'and [".py"]',
            name,
        )
        return builtin
    values = {str(key): str(value) for key, value in environment.items()}
    return Formatter(name, tuple(command), tuple(extensions), base.enabled, values)


def find(program: str, directory: Path) -> str | None:
    """A formatter's program: a path from the project's folder; a name beside this Python, else on the PATH."""
    if os.sep in program:
        path = os.path.normpath(os.path.join(directory, os.path.expanduser(program)))
        return path if os.access(path, os.X_OK) and os.path.isfile(path) else None
    places = dict.fromkeys((sysconfig.get_path("scripts"), str(Path(sys.executable).parent)))
    found = shutil.which(program, path=os.pathsep.join(places)) or shutil.which(program)
    return os.path.abspath(found) if found else None


def _check(formatter: Formatter, place: Place) -> bool:
    try:
        return find(formatter.command[0], place.directory) is not None and formatter.enabled(place)
    except Exception:
        log.exception("cannot tell whether the formatter %s is configured", formatter.name)
        return False


def _restore(path: Path, before: bytes) -> None:
    """A formatter that is ended may leave half a file."""
    with contextlib.suppress(OSError):
        if path.read_bytes() != before:
            atomic.write(path, before)


def _always(place: Place) -> bool:
    return True


def _discard(data: bytes) -> None:
    """What a formatter prints is of no use."""
