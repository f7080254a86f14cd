"""Running a Python tool file as a module, from the bytes that were read, for a limited time.

Each loading of a file gets a package of its own, under a name that no real module has and that is never used again:
the file's folder is the package, so ``from . import helper`` finds a file beside it, which is loaded once for each tool
file. Nothing is written (no ``__pycache__``) and `sys.path` is left alone.

A file runs on a thread of its own. One that does not come to an end has an exception put into its thread and is given
up in any case, so that an endless loop hangs neither a cell nor the engine.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import ctypes
import importlib
import importlib.machinery
import importlib.util
import itertools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Generic, TypeVar

from .content import Content
from .find import PYTHON
from .output import kept

T = TypeVar("T")

LIMIT = 10.0
"""Seconds that a file's own code may take while it is loaded."""
LIBRARY_LIMIT = 60.0
"""Seconds that the libraries it imports may take: a large one takes its time at the first import, and one whose import
was broken off could not be imported again in this process."""
PREFIX = "_opencode_tool_file_"
_TICK = 0.1
_TRIES = 20

_numbers = itertools.count(1)


class LoadingStopped(BaseException):
    """Put into the thread of a file that takes too long."""


class TooLongError(Exception):
    """A file was given up.

    Attributes:
        line: where its own code stood, from 1; None if it was in none.
        library: it was importing something else.
    """

    def __init__(self, line: int | None, library: bool) -> None:
        super().__init__("took too long")
        self.line = line
        self.library = library


@dataclass(slots=True)
class _Package:
    folder: Path
    main: str
    content: Content
    closed: bool
    """Only what `content` holds may be imported: the rest is not trusted."""


class _Bytes(importlib.machinery.SourceFileLoader):
    """A module of bytes that are at hand."""

    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self._data = data

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self._data, self.path)
        return code

    def get_data(self, path: str) -> bytes:
        if path != self.path:
            raise OSError(path)
        return self._data


class _Finder:
    """Finds the modules of our packages, and nothing else."""

    def __init__(self) -> None:
        self.packages: dict[str, _Package] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(PREFIX):
            return None
        head, _, rest = fullname.partition(".")
        package = self.packages.get(head)
        if package is None or not rest:
            return None
        if rest == package.main:
            return self._spec(fullname, package, package.content.main, None)
        place = package.folder.joinpath(*rest.split("."))
        for file, inside in ((place / "__init__.py", place), (place.with_name(place.name + PYTHON), None)):
            if file in package.content.files or (not package.closed and file.is_file()):
                return self._spec(fullname, package, file, inside)
            if file.is_file():
                raise ImportError(
                    f"{file.name} is not part of the trusted code; import it by its name: from . import {file.stem}",
                    name=fullname,
                    path=str(file),
                )
        if place.is_dir():
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return None

    @staticmethod
    def _spec(name: str, package: _Package, file: Path, inside: Path | None) -> importlib.machinery.ModuleSpec | None:
        data = package.content.files.get(file)
        if data is None:
            data = file.read_bytes()
        return importlib.util.spec_from_file_location(
            name,
            file,
            loader=_Bytes(name, str(file), data),
            submodule_search_locations=[str(inside)] if inside is not None else None,
        )


_finder = _Finder()


def run_module(content: Content, name: str, *, closed: bool) -> ModuleType:
    """Run a file as a module. What it raises passes through.

    Args:
        content: the file and what it imports from beside it.
        name: the module's name inside its package; without dots.
        closed: let it import nothing else relatively.
    """
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    head = f"{PREFIX}{next(_numbers)}"
    folder = content.main.parent
    package = ModuleType(head)
    package.__path__ = [str(folder)]
    package.__spec__ = importlib.machinery.ModuleSpec(head, None, is_package=True)
    _finder.packages[head] = _Package(folder, name, content, closed)
    sys.modules[head] = package
    try:
        return importlib.import_module(f"{head}.{name}")
    except BaseException:
        drop(head)
        raise


def drop(module: str) -> None:
    """Forget a module that `run_module` made, with all that it imported relatively."""
    head = module.partition(".")[0]
    _finder.packages.pop(head, None)
    for name in [name for name in list(sys.modules) if name == head or name.startswith(head + ".")]:
        sys.modules.pop(name, None)


@dataclass(slots=True)
class Outcome(Generic[T]):
    """How the work on a file ended."""

    value: T | None = None
    error: BaseException | None = None
    """The exception it raised; `SystemExit` and `KeyboardInterrupt` too."""
    printed: str = ""


async def limited(work: Callable[[], T], files: Sequence[Path]) -> Outcome[T]:
    """Run `work` on a thread of its own, for `LIMIT` seconds of its own code.

    Args:
        work: what is to be done.
        files: those whose code counts as its own.

    Raises:
        TooLongError: it was given up.
    """
    future: concurrent.futures.Future[Outcome[T]] = concurrent.futures.Future()
    ended = threading.Event()
    thread = threading.Thread(target=_run, args=(work, future, ended), name="opencode-tool-file", daemon=True)
    thread.start()
    waiting = asyncio.wrap_future(future)
    own, library, before = 0.0, 0.0, time.monotonic()
    names = frozenset(map(str, files))
    try:
        while True:
            done, _ = await asyncio.wait({waiting}, timeout=_TICK)
            if done:
                return waiting.result()
            now = time.monotonic()
            line, importing = _place(thread, names)
            if importing:
                library += now - before
            else:
                own += now - before
            before = now
            if own >= LIMIT or library >= LIBRARY_LIMIT:
                raise TooLongError(line, importing)
    finally:
        if not waiting.done():
            waiting.cancel()
            if not _place(thread, names)[1]:  # a library's import is let come to its end
                _stop(thread, ended)


def _run(work: Callable[[], T], future: concurrent.futures.Future[Outcome[T]], ended: threading.Event) -> None:
    outcome: Outcome[T] = Outcome()
    try:
        with kept() as pieces:
            try:
                outcome.value = work()
            except BaseException as error:
                outcome.error = error
            outcome.printed = "".join(pieces)
    except BaseException as error:  # what `_stop` puts in may come at any place
        outcome.error = error
    ended.set()
    with contextlib.suppress(concurrent.futures.InvalidStateError):  # given up
        future.set_result(outcome)


def _place(thread: threading.Thread, names: frozenset[str]) -> tuple[int | None, bool]:
    """The line of the file's code in which a thread stands, and whether it is importing something else there."""
    frame = sys._current_frames().get(thread.ident or 0)
    importing = False
    while frame is not None:
        if frame.f_code.co_filename in names:
            return frame.f_lineno, importing
        importing = importing or frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return None, False


def _stop(thread: threading.Thread, ended: threading.Event) -> None:
    """Have a thread end, if it lets itself be ended; does not wait for that."""

    def reap() -> None:
        for _ in range(_TRIES):
            if ended.is_set() or not thread.is_alive():
                return
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(LoadingStopped)
            )
            ended.wait(_TICK)

    threading.Thread(target=reap, name="opencode-tool-file-end", daemon=True).start()
