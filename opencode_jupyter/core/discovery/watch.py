"""Which tool files there are now: a look that costs little and is repeated only so often that it stays cheap.

A look compares the stamps of the config folders, their tool folders and the files. It is due again after a time that
grows with what it costs, so that calls made one after another do not pay for it; with no tool folder that is some
hundred microseconds, with hundreds of files some ten milliseconds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..config.reading import display
from .find import Stamp, config_folders, find, stamp

if TYPE_CHECKING:
    from ..config import Config
    from ..workspace import Workspace
    from .entry import Entry

PAUSE = 50
"""How many times as long as a look took the next one is not due."""
LONGEST = 0.2
"""Seconds; the longest such time."""


class Watch:
    """The tool files of a workspace. Any thread may `look`.

    Args:
        workspace: whose config folders.
        keep: whether an entry that was not changed may stay as it is (it may not be trusted any more).
        gone: told of each entry that was changed or vanished.

    Attributes:
        entries: one for each file, in the order in which later ones override earlier ones.
    """

    def __init__(
        self, workspace: Workspace, keep: Callable[[Entry], bool], gone: Callable[[Entry], None], also: Path
    ) -> None:
        self._workspace = workspace
        self._keep = keep
        self._gone = gone
        self._also = also
        self._lock = threading.RLock()
        self._config: Config | None = None
        self._due = 0.0
        self._watched: dict[Path, Stamp | None] = {}
        self._folders: list[tuple[Path, bool]] = []
        self.entries: tuple[Entry, ...] = ()

    def due(self) -> bool:
        """Return whether it is time to look again."""
        return time.monotonic() >= self._due or self._workspace.config is not self._config

    def look(self) -> bool:
        """Take in what has changed.

        Returns:
            Whether anything has changed.
        """
        with self._lock:
            began = time.monotonic()
            config = self._workspace.config
            other = config is not self._config
            if other:
                self._config = config
                self._folders = config_folders(self._workspace)
            changed = other or self._changed()
            now = time.monotonic()
            self._due = now + min(LONGEST, (now - began) * PAUSE)
            if changed:
                self._scan()
                self._due = 0.0
        return changed

    def _changed(self) -> bool:
        if any(stamp(path) != seen for path, seen in self._watched.items()):
            return True
        return any(one.content is not None and one.content.until and not one.same() for one in self.entries)

    def _scan(self) -> None:
        watched: dict[Path, Stamp | None] = {self._also: stamp(self._also)}
        files = [file for folder, own in self._folders for file in find(folder, own, watched)]
        before = {(one.file.path, one.file.own): one for one in self.entries}
        entries = []
        heads: dict[str, str] = {}
        for file in files:
            entry = before.get((file.path, file.own))
            if entry is not None and entry.same() and self._keep(entry):
                del before[file.path, file.own]
            else:
                from .entry import Entry  # here: most projects have no tool files

                entry = Entry(file, self._label(file.path, heads))
            entries.append(entry)
            watched[file.path] = file.stamp
            if entry.content is not None:
                watched.update(entry.content.stamps)
        self._watched = watched
        self.entries = tuple(entries)
        for entry in before.values():
            self._gone(entry)

    def _label(self, path: Path, heads: dict[str, str]) -> str:
        """`label_of`, which resolves links: once for a folder, since hundreds of files may stand in one."""
        folder, name = os.path.split(path)
        head = heads.get(folder)
        if head is None:
            head = heads[folder] = label_of(path, self._workspace).removesuffix(name)
        return head + name

    def add(self, entry: Entry) -> None:
        """Watch what an entry was found to import, too."""
        with self._lock:
            if entry.content is not None and entry in self.entries:
                self._watched.update(entry.content.stamps)


def label_of(path: Path, workspace: Workspace) -> str:
    """A file as a person reads it: relative to the project, else with ``~``, else whole."""
    top = workspace.worktree
    project = workspace.directory if top == Path(top.anchor) else top
    return display(path, Path(os.path.realpath(project)), workspace.config.home)
