"""bash: run a shell command. Reference: tools.md 2; agents.md 6.2 and 6.3."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from pathlib import Path
from typing import Any

from pydantic import Field

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..core.spill import Spill
from ..core.truncation import cut_units
from . import _background, _shell
from ._builtin import builtin
from .process import Child, Exit, spawn

DEFAULT_TIMEOUT = 120_000.0
"""Milliseconds a command may run if nothing else is said."""
SLACK = 100.0
"""Milliseconds beyond its limit before a command is ended."""
PREVIEW = 30_000
"""UTF-16 units of output in the metadata."""
INTERVAL = 0.05
"""Seconds between two updates of the live output."""


class Parameters(Arguments):
    """What to run, where, and how long."""

    command: str = Field(description="The command to execute")
    timeout: float | None = Field(default=None, description="Optional timeout in milliseconds")
    workdir: str | None = Field(
        default=None,
        description="The working directory to run the command in. Defaults to the project directory. "
        "Use this instead of 'cd' commands.",
    )
    description: str = Field(
        description="Clear, concise description of what this command does in 5-10 words. "
        "Example: ls -> Lists files in current directory"
    )


@builtin("bash", Parameters, group="run", body="command")
async def bash(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Run a shell command."""
    limit = _limit(args.timeout)
    if "\0" in args.command:
        raise ToolError(
            "The command has a NUL character, which cannot be passed to a program; write $'\\0' or use a file."
        )
    cwd = ctx.directory
    if args.workdir:
        cwd = _folder(ctx, args.workdir)
    from . import _shell_asks  # reading commands takes a twentieth of a kernel's first call, whatever its tool

    await _shell_asks.ask(ctx, args.command, cwd)
    ctx.proceed()

    live = _Live(ctx, args.description)
    argv = [_shell.shell(), "-c", args.command]
    try:
        child = await spawn(argv, cwd=str(cwd), env=await _shell.environment(ctx, cwd), on_output=live.feed)
    except OSError as error:
        raise _not_started(error, cwd) from error
    try:
        outcome, timed_out = await _wait(child, limit)
    except BaseException:
        await child.stop()
        live.abandon()
        raise
    else:
        background = _background.keep(ctx.workspace, child, outcome)
    finally:
        child.close()
        live.close()

    notes: list[str] = []
    more: dict[str, Any] = {"background": background} if background else {}
    if timed_out:
        notes.append(f"bash tool terminated command after exceeding timeout {limit:.15g} ms")
    elif outcome.signal is not None:
        more["signal"] = _signal_name(outcome.signal)
        notes.append(f"bash tool command was ended by signal {more['signal']}")
    return live.result(outcome, notes, more)


class _Live:
    """The output as it grows: shown at most 20 times a second, and made into the result in the end."""

    def __init__(self, ctx: ToolContext, description: str) -> None:
        self._ctx = ctx
        self._description = description
        self._sink = Spill(ctx.workspace.truncation)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0
        self._show("")

    def feed(self, data: bytes) -> None:
        self._sink.feed(data)
        if self._timer is None:
            self._timer = self._loop.call_at(max(self._next, self._loop.time()), self._update)

    def _update(self) -> None:
        self._timer = None
        self._next = self._loop.time() + INTERVAL
        self._show(self._sink.live(PREVIEW))

    def _show(self, output: str) -> None:
        metadata: dict[str, Any] = {"output": output, "description": self._description}
        if self._sink.path is not None:
            metadata["outputPath"] = self._sink.path
        self._ctx.metadata(metadata=metadata)

    def close(self) -> None:
        """No more updates."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abandon(self) -> None:
        """The call was stopped: what came so far stays on the running part."""
        self.close()
        self._sink.close()
        self._show(_noted(self._sink.live(PREVIEW), ["User aborted the command"]))

    def result(self, outcome: Exit, notes: list[str], more: dict[str, Any]) -> ToolResult:
        """What the command gives back."""
        whole = self._sink.finish(self._ctx.workspace.agents.get(self._ctx.agent))
        output = _noted(whole.text or "(no output)", notes)
        metadata: dict[str, Any] = {
            "output": _preview(output),
            "exit": outcome.code,
            "description": self._description,
            "truncated": whole.truncated,
        }
        if whole.truncated:
            metadata |= {"lines": whole.text_lines, "bytes": whole.bytes, "cutLine": whole.cut_line}
            if whole.output_path is not None:
                metadata["outputPath"] = whole.output_path
        return ToolResult(self._description, output, metadata | more)


def _folder(ctx: ToolContext, workdir: str) -> Path:
    """The folder a command runs in.

    Raises:
        ToolError: there is none.
    """
    if "\0" in workdir:
        raise ToolError(f"workdir can't have a NUL character: {workdir!r}")
    folder = Path(os.path.normpath(ctx.resolve(workdir)))
    if not folder.is_dir():
        if folder.exists():
            raise ToolError(f"workdir is not a folder: '{folder}'")
        error = ToolError(f"NotFound: FileSystem.access ({folder})")  # OpenCode's words
        error.add_note("This folder does not exist. Pass an existing folder as workdir, or create it first.")
        raise error
    return folder


async def _wait(child: Child, limit: float) -> tuple[Exit, bool]:
    """The command's end, and whether it had to be ended for its time."""
    waiting = asyncio.ensure_future(child.wait())
    try:
        done, _ = await asyncio.wait([waiting], timeout=(limit + SLACK) / 1000)
        if done:
            return waiting.result(), False
        if child.exited:
            return await waiting, False
    finally:
        waiting.cancel()
    return await child.stop(), True


def _limit(timeout: float | None) -> float:
    """The time limit in milliseconds.

    Raises:
        ToolError: it is negative or no number.
    """
    if timeout is None:
        try:
            default = float(os.environ.get("OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS", ""))
        except ValueError:
            return DEFAULT_TIMEOUT
        return default if default > 0 else DEFAULT_TIMEOUT
    if not timeout >= 0:
        raise ToolError(f"Invalid timeout value: {timeout:.15g}. Timeout must be a positive number.")
    return min(timeout, 1e11)


def _noted(text: str, notes: list[str]) -> str:
    return "\n".join([text + "\n", "<bash_metadata>", *notes, "</bash_metadata>"]) if notes else text


def _preview(text: str) -> str:
    """At most `PREVIEW` units: the beginning and the end."""
    start = cut_units(text, PREVIEW)
    if len(start) == len(text):
        return text
    half = PREVIEW // 2
    return cut_units(text, half) + "\n\n...\n\n" + text[-half:]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _not_started(error: OSError, cwd: Path) -> ToolError:
    if error.errno == errno.E2BIG:
        return ToolError(
            "The command is too long for the system (about 128 kB). Write it to a file and run that, "
            "or pass its data in files."
        )
    if error.errno == errno.EACCES and not os.access(cwd, os.X_OK):
        return ToolError(f"No permission to run anything in {cwd}. Change its permissions, or give another workdir.")
    return ToolError(f"The command could not be started: {error.strerror or error}")
