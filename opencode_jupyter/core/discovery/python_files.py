"""Loads Python tool files (`core.tool_files.Loader`)."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

from ..tool import Tool
from ..tool_files import ToolFileError
from .content import Content, ContentError, read_content
from .exports import Exports, exports_of
from .find import PYTHON
from .importing import LIBRARY_LIMIT, LIMIT, TooLongError, drop, limited, run_module
from .names import clean

log = logging.getLogger(__name__)


class PythonFiles:
    """Runs Python files in this process."""

    suffixes = (PYTHON,)

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._loaded: dict[Path, str] = {}
        """What `load` made."""

    def why_not(self) -> str:
        """Nothing: Python is here."""
        return ""

    async def load(self, path: Path, namespace: str) -> list[Tool]:
        """See `Loader.load`; the file may import from beside it what it likes.

        Raises:
            ToolFileError: it can't be loaded.
        """
        try:
            content = read_content(path)
        except ContentError as error:
            raise ToolFileError(str(error), error.path) from None
        exports = await self.load_content(content, namespace, str(path), closed=False)
        await self.forget(path)
        self._loaded[path] = exports.module
        return exports.tools

    async def load_content(self, content: Content, namespace: str, label: str, *, closed: bool) -> Exports:
        """Run what was read of a file.

        Args:
            content: the file and what it imports from beside it.
            namespace: see `names`.
            label: the file as a person reads it.
            closed: it may import nothing else from beside it.

        Raises:
            ToolFileError: it raised, or did not come to an end.
        """
        path, source = content.main, content.files[content.main]

        def work() -> Exports:
            module = run_module(content, clean(path.stem), closed=closed)
            return exports_of(module, source, namespace, path.stem, label)

        try:
            outcome = await limited(work, list(content.files))
        except TooLongError as error:
            seconds = LIBRARY_LIMIT if error.library else LIMIT
            what = "what it imports was not loaded" if error.library else "it did not come to an end"
            hint = "a tool file must define its tools and do nothing else while it is loaded"
            raise ToolFileError(f"{what} within {seconds:g} s; {hint}", path, error.line) from None
        if outcome.printed.strip():
            log.info("%s printed while it was loaded: %s", label, outcome.printed.strip())
        if outcome.error is not None or outcome.value is None:
            raise _wrong(outcome.error, content) from None
        self._modules.add(outcome.value.module)
        return outcome.value

    async def forget(self, path: Path) -> None:
        """Take its module out of this process; functions that still run go on."""
        self.drop(self._loaded.pop(path, ""))

    def drop(self, module: str) -> None:
        """Take a module out of this process; "" is none."""
        if module in self._modules:
            self._modules.discard(module)
            drop(module)

    def close(self) -> None:
        """Forget all files."""
        while self._modules:
            drop(self._modules.pop())


def _wrong(error: BaseException | None, content: Content) -> ToolFileError:
    """What a file raised, in one line, with the place in the file (or in one that it imports from beside it)."""
    path, line = content.main, None
    if isinstance(error, SyntaxError) and error.filename in [str(file) for file in content.files]:
        path, line = Path(str(error.filename)), error.lineno
        return ToolFileError(f"{type(error).__name__}: {error.msg}", path, line)
    for frame, number in traceback.walk_tb(error.__traceback__ if error is not None else None):
        file = Path(frame.f_code.co_filename)
        if file in content.files:
            path, line = file, number
    text = str(error).strip().partition("\n")[0]
    said = f"{type(error).__name__}: {text}".removesuffix(": ")
    if isinstance(error, ModuleNotFoundError) and error.name:
        first = error.name.partition(".")[0]
        beside = content.main.parent / first
        if beside.is_dir() or beside.with_name(first + PYTHON).is_file():
            said += f"; it is beside the file: from . import {first}"
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        said += "; a tool file must not end the process"
    return ToolFileError(said, path, line)
