"""From a found tool file to its tools: reading it, running it in its language, keeping what went wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio.to_thread

from ..tool_files import Loader, ToolFileError
from .content import Content, ContentError, read_content
from .entry import Entry, Problem
from .exports import Exports, named
from .find import ToolFile
from .glance import glance
from .python_files import PythonFiles

log = logging.getLogger(__name__)


class MissingError(ToolFileError):
    """The program that runs the file is missing; the file can be loaded once it is installed."""


class Loading:
    """Loads the files of one workspace, one at a time.

    Args:
        scripts: gives what loads JavaScript and TypeScript files.
    """

    def __init__(self, scripts: Callable[[], Loader] | None) -> None:
        self._scripts = scripts
        self._python = PythonFiles()

    async def read(self, entry: Entry) -> bool:
        """`read_now`, on a worker thread."""
        return await anyio.to_thread.run_sync(self.read_now, entry)

    def read_now(self, entry: Entry) -> bool:
        """Read a file and what it imports from beside it; False if that fails. Nothing of it runs."""
        try:
            entry.guess, entry.content = _read(entry.file)
        except ContentError as error:
            _failed(entry, ToolFileError(str(error), error.path))
            return False
        return True

    async def load(self, entry: Entry) -> None:
        """Run a file that was read; the entry holds its tools or why there are none."""
        file, content = entry.file, entry.content
        assert content is not None
        try:
            if file.python:
                exports = await self._python.load_content(content, file.namespace, entry.label, closed=not file.own)
            else:
                exports = await self._load_script(entry)
        except ToolFileError as error:
            _failed(entry, error)
            return
        except Exception as error:
            log.exception("%s could not be loaded", entry.label)
            _failed(entry, ToolFileError(f"{type(error).__name__}: {error}", file.path))
            return
        entry.tools, entry.module = exports.tools, exports.module
        entry.problems = [Problem(file.path, line, said) for line, said in exports.problems]
        entry.failure = ""
        entry.state = "loaded"

    async def forget(self, entry: Entry) -> None:
        """A file was changed or is gone: what it made goes too."""
        if entry.file.python:
            self._python.drop(entry.module)
        elif self._scripts is not None and entry.state == "loaded":
            await self._scripts().forget(entry.file.path)

    def close(self) -> None:
        """Take the modules of all files out of this process."""
        self._python.close()

    async def _load_script(self, entry: Entry) -> Exports:
        path = entry.file.path
        if self._scripts is None:
            raise ToolFileError("JavaScript and TypeScript files can't be loaded here", path)
        loader = self._scripts()
        missing = loader.why_not()
        if missing:
            raise MissingError(missing, path)
        tools = await loader.load(path, entry.file.namespace or path.stem)
        if not entry.file.namespace:  # a single file's exports go by their own names
            head = f"{path.stem}_"
            return Exports([named(one, one.id.removeprefix(head), entry.label) for one in tools])
        return Exports([named(one, one.id, entry.label) for one in tools])


def _failed(entry: Entry, error: ToolFileError) -> None:
    problem = Problem(error.path, error.line, str(error))
    entry.state = "missing" if isinstance(error, MissingError) else "failed"
    entry.problems, entry.tools = [problem], []
    place = f"line {error.line}" if error.line and f":{error.line}" not in str(error) else ""
    place += f" of {error.path.name}" if error.path != entry.file.path else ""
    entry.failure = f"{error} ({place.strip()})" if place else str(error)
    log.info("tool file %s", problem)


def _read(file: ToolFile) -> tuple[list[str], Content]:
    content = read_content(file.path)
    return glance(file, content.files[file.path]), content
