"""Run a Python file as a private module, from the bytes that were read, for a limited time.

Each run gets a package of its own under a name that no real module has and that is never reused: the file's folder is
the package, so ``from . import helper`` finds a file beside it. Nothing is written (no ``__pycache__``) and `sys.path`
is left alone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import ctypes
import importlib
import importlib.machinery
import importlib.util
import itertools
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeVar

from .source_code import SourceCode
from .tool_file_discovery import PYTHON

T = TypeVar("T")

TIME_LIMIT = 30.0
"""Seconds that a file may take to load, the libraries it imports included."""
PREFIX = "_opencode_tool_file_"
_INTERVAL = 0.1
_ATTEMPTS = 20

_numbers = itertools.count(1)


class LoadingStopped(BaseException):
    """Raised in the thread of a file that takes too long."""


class LoadingTimeoutError(Exception):
    """A file took too long to load.

    Attributes:
        line: the line that was running, from 1; None if it was in no file of ours.
        importing: it was importing a library there.
    """

    def __init__(self, line: int | None, importing: bool) -> None:
        super().__init__("took too long")
        self.line = line
        self.importing = importing


@dataclass(slots=True)
class _Package:
    folder: Path
    main: str
    code: SourceCode
    trusted_only: bool
    """Only the files of `code` may be imported relatively."""


class _BytesLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from bytes in memory."""

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


class _PackageFinder:
    """Finds the modules of our packages and nothing else."""

    def __init__(self) -> None:
        self.packages: dict[str, _Package] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(PREFIX):
            return None
        head, _, submodule = fullname.partition(".")
        package = self.packages.get(head)
        if package is None or not submodule:
            return None
        if submodule == package.main:
            return self._spec(fullname, package, package.code.main, None)
        base = package.folder.joinpath(*submodule.split("."))
        for file, subfolder in ((base / "__init__.py", base), (base.with_name(base.name + PYTHON), None)):
            if file in package.code.files or (not package.trusted_only and file.is_file()):
                return self._spec(fullname, package, file, subfolder)
            if file.is_file():
                raise ImportError(
                    f"{file.name} is not part of the trusted code; import it by its name: from . import {file.stem}",
                    name=fullname,
                    path=str(file),
                )
        if base.is_dir():
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(base)]
            return spec
        return None

    @staticmethod
    def _spec(
        name: str, package: _Package, file: Path, subfolder: Path | None
    ) -> importlib.machinery.ModuleSpec | None:
        data = package.code.files.get(file)
        if data is None:
            data = file.read_bytes()
        return importlib.util.spec_from_file_location(
            name,
            file,
            loader=_BytesLoader(name, str(file), data),
            submodule_search_locations=[str(subfolder)] if subfolder is not None else None,
        )


_finder = _PackageFinder()


def run_module(code: SourceCode, name: str, *, trusted_only: bool) -> ModuleType:
    """Run a file as a module. Its exceptions pass through.

    Args:
        code: the file and what it imports from beside it.
        name: the module's name inside its package; without dots.
        trusted_only: let it import no other file relatively.
    """
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    head = f"{PREFIX}{next(_numbers)}"
    folder = code.main.parent
    package = ModuleType(head)
    package.__path__ = [str(folder)]
    package.__spec__ = importlib.machinery.ModuleSpec(head, None, is_package=True)
    _finder.packages[head] = _Package(folder, name, code, trusted_only)
    sys.modules[head] = package
    try:
        return importlib.import_module(f"{head}.{name}")
    except BaseException:
        drop_module(head)
        raise


def drop_module(module: str) -> None:
    """Remove a module that `run_module` made from this process, with all that it imported relatively."""
    head = module.partition(".")[0]
    if not head.startswith(PREFIX):
        return
    _finder.packages.pop(head, None)
    for name in [name for name in list(sys.modules) if name == head or name.startswith(head + ".")]:
        sys.modules.pop(name, None)


Outcome = tuple[T | None, BaseException | None]
"""A value, and an exception; one of them is None."""


def start_thread(work: Callable[[], T], name: str) -> tuple[threading.Thread, asyncio.Future[Outcome[T]]]:
    """Call `work` on a daemon thread, so that code that never returns blocks neither the loop nor the process's end.

    Returns:
        The thread, and a future of the running loop.
    """
    future: concurrent.futures.Future[Outcome[T]] = concurrent.futures.Future()
    context = contextvars.copy_context()

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(work)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # nobody waits any more
            future.set_result((value, error))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread, asyncio.wrap_future(future)


async def run_limited(work: Callable[[], T], files: Sequence[Path]) -> Outcome[T]:
    """Run `work` on a daemon thread, for `TIME_LIMIT` seconds.

    A thread that takes longer gets an exception raised in it, unless it is importing a library: one whose import was
    broken off could not be imported again in this process.

    Args:
        work: what to run.
        files: the files whose code it runs, to report the line.

    Raises:
        LoadingTimeoutError: it took too long.
    """
    thread, future = start_thread(work, "opencode-tool-file")
    names = frozenset(map(str, files))
    try:
        async with asyncio.timeout(TIME_LIMIT):
            return await future
    except (TimeoutError, asyncio.CancelledError) as stopped:
        line, importing = _position(thread, names)
        if not importing:
            threading.Thread(target=_stop, args=(thread,), name="opencode-tool-file-end", daemon=True).start()
        if isinstance(stopped, TimeoutError):
            raise LoadingTimeoutError(line, importing) from None
        raise


def _position(thread: threading.Thread, names: frozenset[str]) -> tuple[int | None, bool]:
    """The line of the files' code that a thread runs, and whether it is importing something else there."""
    frame = sys._current_frames().get(thread.ident or 0)
    importing = False
    while frame is not None:
        if frame.f_code.co_filename in names:
            return frame.f_lineno, importing
        importing = importing or frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return None, False


def _stop(thread: threading.Thread) -> None:
    """End a thread if its code lets itself be ended."""
    for _ in range(_ATTEMPTS):
        if not thread.is_alive():
            return
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(LoadingStopped))
        thread.join(_INTERVAL)
