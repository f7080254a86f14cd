"""The code index of a workspace: kept up to date, asked. One for each project folder, made at the first search."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from ...core.errors import ToolError
from ...core.threads import run_in_thread
from .build_child import send
from .extract import index_file
from .project_files import FolderWatch, Listing, file_states
from .ranking import Hit, allow_all, rank
from .store import CorruptIndexError, IndexStore, remove

if TYPE_CHECKING:
    from ...core.host import ToolHost

T = TypeVar("T")
Progress = Callable[[int, int, str], None]
"""Receives files done, files in all, and what is going on."""
MAX_HERE = 24
"""Changed files that are read here; a child is started for more."""
MAX_HERE_BYTES = 2 << 20
WORKERS = 4
"""Children that take files apart, at most."""
_BUILDER = Path(__file__).with_name("build_child.py")


class CodeIndex:
    """The indexes of a workspace's project folders."""

    def __init__(self, workspace: ToolHost) -> None:
        self._folder = workspace.data_dir / "code-index"
        self._projects: dict[Path, Project] = {}

    def project(self, root: Path) -> Project:
        """The index of one folder."""
        project = self._projects.get(root)
        if project is None:
            name = hashlib.blake2b(os.fsencode(os.path.realpath(root)), digest_size=8).hexdigest()
            project = self._projects[root] = Project(root, self._folder / f"{name}.db")
        return project

    async def close(self) -> None:
        """Let go of the index files."""
        for project in self._projects.values():
            project.close()
        self._projects.clear()


class Project:
    """The index of one folder.

    Attributes:
        root: the folder.
        file: where the index is.
    """

    def __init__(self, root: Path, file: Path) -> None:
        self.root = root
        self.file = file
        self.listing = Listing(root)
        self._store: IndexStore | None = None
        self._files: dict[str, tuple[int, int]] = {}
        self._version = -1
        self._checked = False
        """True if the index was as the files are when the watch began."""
        self._watch = FolderWatch(root)
        self._lock = asyncio.Lock()
        self._use = threading.Lock()
        """Held by the thread that uses the connection; a cancelled search may leave one behind for a moment."""

    def close(self) -> None:
        """Let go of the index file."""
        self._checked = False
        self._watch.close()
        with self._use:
            if self._store is not None:
                self._store.close()
                self._store = None

    async def search(
        self,
        query: str,
        limit: int,
        progress: Progress = lambda *_: None,
        allowed: Callable[[str], bool] = allow_all,
    ) -> list[Hit]:
        """The pieces that fit a query best, best first, from an index that is brought up to date before.

        Args:
            query: words.
            limit: how many.
            progress: receives how far the indexing is.
            allowed: whether a file, by its path in the project, may be shown; called in a worker thread.

        Raises:
            ToolError: the project can't be listed or the index can't be written.
        """
        async with self._lock:
            for again in (True, False):
                try:
                    await self._refresh(progress)
                    return await self._with_store(lambda store: rank(store, query, limit, allowed))
                except (CorruptIndexError, sqlite3.DatabaseError) as error:
                    if not again or (isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error)):
                        raise ToolError(f"The code index {self.file} can't be used: {error}") from error
                    self.close()
                    await anyio.to_thread.run_sync(remove, self.file)
        raise AssertionError

    async def _refresh(self, progress: Progress) -> None:
        if self._checked and self._watch.is_quiet() and await self._with_store(self._is_current):
            return
        self._checked = False
        before = self.listing.paths
        await anyio.to_thread.run_sync(self._watch.start, before)
        if await self.listing.update():
            await anyio.to_thread.run_sync(self._watch.add, set(self.listing.paths).difference(before))
        for _ in range(3):  # while many are read others may change
            now = await run_in_thread(file_states, self.root, self.listing.paths)
            if await self._update_index(now, progress):
                return

    def _is_current(self, store: IndexStore) -> bool:
        """Return whether no other notebook has changed the index since it was found to be as the files are."""
        return store.data_version() == self._version

    async def _update_index(self, now: dict[str, tuple[int, int]], progress: Progress) -> bool:
        """Bring the index to where the files are; False if they are to be looked at again."""
        files = await self._with_store(self._indexed_files)
        changed = [(path, *state) for path, state in now.items() if files.get(path) != state]
        deleted = [path for path in files if path not in now]
        if not changed and not deleted:
            self._checked = True
        elif await self._with_store(lambda store: store.is_wasteful()):
            self.close()
            await anyio.to_thread.run_sync(remove, self.file)
            return False
        elif (
            len(changed) > MAX_HERE
            or sum(size for _, _, size in changed) > MAX_HERE_BYTES
            or len(deleted) > 50 * MAX_HERE
        ):
            await self._index_in_child(changed, deleted, progress)
            return False
        else:
            self._checked = await self._with_store(partial(self._index_here, changed, deleted))
        return True

    def _indexed_files(self, store: IndexStore) -> dict[str, tuple[int, int]]:
        version = store.data_version()
        if version != self._version:
            self._files = store.files()
            self._version = version
        return self._files

    def _index_here(self, changed: list[tuple[str, int, int]], deleted: list[str], store: IndexStore) -> bool:
        """Read these files; True if the index is now as they were when they were looked at."""
        updates = [index_file(str(self.root), path, store.digest(path)) for path, _, _ in changed]
        try:
            with store.transaction():
                alone = store.data_version() == self._version
                store.remove_files(deleted)
                for update in updates:
                    store.set_file(*update)
        except BaseException:
            self._version = -1
            raise
        for path in deleted:
            self._files.pop(path, None)
        self._files.update((path, (mtime, size)) for path, mtime, size, *_ in updates)
        return alone and changed == [update[:3] for update in updates]

    async def _index_in_child(
        self, changed: list[tuple[str, int, int]], deleted: list[str], progress: Progress
    ) -> None:
        """Have a child do it; a cancel ends the child, and what it has written is kept."""
        workers = min(WORKERS, os.cpu_count() or 1)
        total = len(changed)
        progress(0, total, "indexing")
        process = subprocess.Popen(  # noqa: ASYNC220 - takes a millisecond
            [sys.executable, "-I", "-S", str(_BUILDER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            job = (str(self.file), str(self.root), changed, deleted, workers)
            await run_in_thread(_send_job, process, job)
            finished = False
            while line := await run_in_thread(process.stdout.readline):
                word = line.strip()
                finished = word == b"done"
                if word.isdigit():
                    progress(int(word), total, "indexing")
            if not finished:
                raise ToolError(f"The project could not be indexed: {_last_error(process)}")
        finally:
            _end_child(process)
            self._version = -1

    async def _with_store(self, work: Callable[[IndexStore], T]) -> T:
        def run() -> T:
            with self._use:
                if self._store is not None and self._store.is_stale():
                    self._store.close()
                    self._store = None
                if self._store is None:
                    try:
                        self._store = IndexStore(self.file)
                    except CorruptIndexError:
                        remove(self.file)
                        self._store = IndexStore(self.file)
                    except OSError as error:
                        raise ToolError(f"The code index can't be kept in {self.file.parent}: {error}") from error
                    self._version = -1
                return work(self._store)

        return await run_in_thread(run)


def _send_job(process: subprocess.Popen[bytes], job: object) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it has ended; its complaint says why
        send(process.stdin, job)  # type: ignore[arg-type]


def _last_error(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    text = process.stderr.read(16_384).decode("utf-8", "replace").strip()
    return text.rsplit("\n", 1)[-1] or "its process was ended"


def _end_child(process: subprocess.Popen[bytes]) -> None:
    """End the child with its children; harmless if they have ended."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, 9)
            else:
                process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(2)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
