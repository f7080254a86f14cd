"""The snapshots of a workspace, for the loop; a failure here never ends a run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import anyio

from ...core.errors import ToolError
from ...text import diff as text_diff
from .git import Git, GitError, StoppedError, TooSlowError
from .shadow import CLEAN_EVERY, Shadow, TreeEntries

if TYPE_CHECKING:
    from ...core.host import ToolHost

T = TypeVar("T")
log = logging.getLogger(__name__)

MAX_SECONDS = 60.0
"""Which one piece of work may take; a project that needs more gets no snapshots."""
STOP_SECONDS = 1.0
"""Seconds a stopped git has to end."""
CLEAN_AFTER = 5.0
"""Seconds after a snapshot at which old ones are cleared away, once a day."""
SHOWN_BYTES = 1 << 20
"""Of a file before and after together, up to which its difference is worked out line by line."""


class Snapshots:
    """Records the files of the project, and puts them back; a service of the workspace (`Workspace.service`).

    Everything is in a git repository of its own in the data folder. Without git, outside a git worktree, with
    ``snapshot: false`` in the config, or when the disk will not take it, `track` gives None and the rest nothing.

    Attributes:
        problem: why there are no snapshots, for people; None while all is well.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self.shadows: dict[Path, Shadow] = {}
        self._running: set[Git] = set()
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._logged: set[str] = set()
        self._too_slow: set[Path] = set()
        self._cleaning: asyncio.Task[None] | None = None
        self._closed = False
        self.problem: str | None = None

    # ------------------------------------------------------------------ for the loop

    async def track(self) -> str | None:
        """Record the files as they are now.

        Returns:
            The hash of their tree; None if that can't be done here (logged once).
        """
        tree = await self._run_or_default(Shadow.track, None)
        if tree is not None:
            self._clean_later()
        return tree

    async def changed(self, before: str, after: str) -> list[str]:
        """Absolute paths of the files that differ between two snapshots; the files as they are now do not count."""
        return await self._run_or_default(lambda shadow: _absolute(shadow, shadow.compare(before, after)), [])

    async def diffs(self, before: str, after: str) -> list[dict[str, Any]]:
        """The files that differ between two snapshots.

        Returns:
            For each ``file`` (relative to the worktree), ``patch`` (unified; "" for what is no text or very large),
            ``additions``, ``deletions`` (lines) and ``status`` (``added``, ``deleted``, ``modified``).
        """
        return await self._run_or_default(lambda shadow: _diffs(shadow, before, after), [])

    # ------------------------------------------------------------------ putting back

    async def run_exclusive(self, work: Callable[[Shadow], T]) -> T:
        """Run several steps with the snapshots locked; `work` runs on a thread.

        Raises:
            ToolError: it can't be done; the message has the reason.
        """
        problem = self.why_not()
        if problem is not None:
            raise ToolError(f"There are no snapshots of the files: {problem}.")
        try:
            return await self._run(work)
        except (GitError, OSError) as error:
            raise ToolError(f"The snapshots of the files can't be used: {error}") from error

    # ------------------------------------------------------------------ how it runs

    def why_not(self) -> str | None:
        """The reason why there are no snapshots here, for people; None if there are."""
        worktree = self._workspace.worktree
        if self._workspace.config.data.get("snapshot") is False:
            return "snapshots are switched off (snapshot: false in the configuration)"
        if str(worktree) == worktree.anchor:
            return f"{self._workspace.directory} is in no git repository (git init makes one)"
        if shutil.which("git") is None:
            return "git is not installed"
        if worktree in self._too_slow:
            return f"{worktree} is too large: recording its files took more than {MAX_SECONDS:g} s"
        return None

    async def _run_or_default(self, work: Callable[[Shadow], T], otherwise: T) -> T:
        if self.why_not() is not None:
            return otherwise
        try:
            result = await self._run(work)
        except StoppedError:
            return otherwise  # the workspace closes
        except TooSlowError as error:
            self._too_slow.add(self._workspace.worktree)
            self._log_problem(
                f"no snapshots of {self._workspace.worktree}: {error}. Ignore folders that need none (.gitignore)."
            )
        except (GitError, ToolError, OSError) as error:
            self._log_problem(f"no snapshot of {self._workspace.worktree}: {error}")
        else:
            self.problem = None
            return result
        return otherwise

    def _log_problem(self, problem: str) -> None:
        self.problem = problem
        if problem not in self._logged:
            self._logged.add(problem)
            log.warning("%s", problem)

    async def _run(self, work: Callable[[Shadow], T]) -> T:
        """Run `work` on a thread with the shadow held; a cancel ends its git first."""
        worktree = self._workspace.worktree
        program = shutil.which("git")
        if program is None:
            raise GitError("git is not installed")
        shadow = self.shadows.get(worktree)
        if shadow is None:
            shadow = self.shadows[worktree] = Shadow(program, self._workspace.data_dir, worktree, self._workspace.files)

        def work_locked() -> T:
            with shadow.lock(git):
                return work(shadow)

        loop = asyncio.get_running_loop()
        async with self._locks.setdefault(loop, asyncio.Lock()):  # so that many sessions do not take all the threads
            if self._closed:
                raise StoppedError("the workspace is closed")
            git = Git(program, shadow.folder, worktree, MAX_SECONDS)
            self._running.add(git)
            future = loop.run_in_executor(None, work_locked)
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                git.stop()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([future], timeout=STOP_SECONDS)
                future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                raise
            finally:
                self._running.discard(git)

    def _clean_later(self) -> None:
        shadow = self.shadows.get(self._workspace.worktree)
        if shadow is None or self._cleaning is not None or time.time() - shadow.cleaned < CLEAN_EVERY:
            return

        async def clean() -> None:
            await asyncio.sleep(CLEAN_AFTER)
            with contextlib.suppress(GitError, OSError):
                await self._run(Shadow.clean)
            self._cleaning = None

        self._cleaning = asyncio.create_task(clean())

    async def close(self) -> None:
        """End what runs, and let nothing more run."""
        self._closed = True
        for git in list(self._running):
            git.stop()
        if self._cleaning is not None and self._cleaning.get_loop() is asyncio.get_running_loop():
            self._cleaning.cancel()
            await asyncio.gather(self._cleaning, return_exceptions=True)


def first_entries(shadow: Shadow, patches: Iterable[tuple[str, Collection[str]]]) -> TreeEntries:
    """The entry of each file in the first patch that names it; paths outside the worktree are omitted.

    Raises:
        ToolError: a snapshot is not kept any more.
    """
    entries: TreeEntries = {}
    for hash, names in patches:
        inside = (os.path.relpath(name, shadow.worktree) for name in names)
        paths = [path for path in inside if not path.startswith(os.pardir) and path not in entries]
        if paths:
            _require_snapshot(shadow, hash)
            entries |= shadow.entries(hash, paths)
    return entries


def _require_snapshot(shadow: Shadow, hash: str) -> None:
    if not shadow.has_tree(hash):
        raise ToolError(
            f"The snapshot {hash[:12]} no longer exists (snapshots are kept for 7 days). Nothing was changed."
        )


def _absolute(shadow: Shadow, paths: Iterable[str]) -> list[str]:
    return [str(shadow.worktree / path) for path in paths]


def _diffs(shadow: Shadow, before: str, after: str) -> list[dict[str, Any]]:
    changes = shadow.compare(before, after)
    contents = shadow.blobs(entry.blob for pair in changes.values() for entry in pair if entry is not None)
    rows = []
    for path, (old, new) in changes.items():
        status = "added" if old is None else "deleted" if new is None else "modified"
        was = b"" if old is None else contents[old.blob]
        now = b"" if new is None else contents[new.blob]
        patch, added, removed = "", 0, 0
        if len(was) + len(now) > SHOWN_BYTES:
            added, removed = shadow.count_lines(before, after, path)
        elif b"\0" not in was and b"\0" not in now:
            difference = text_diff.diff(path, was.decode("utf-8", "replace"), now.decode("utf-8", "replace"))
            patch, added, removed = difference.patch, difference.additions, difference.deletions
        rows.append({"file": path, "patch": patch, "additions": added, "deletions": removed, "status": status})
    return rows
