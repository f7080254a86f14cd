"""bash: run a shell command. See docs/opencode/tools.md 2 and 18.5; docs/opencode/agents.md 6.2 and 6.3."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import stat
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..core.spill import Spill
from ..core.truncation import cut_units
from ._path_checks import file_status
from .builtin import builtin
from .process.child import Child, Exit, ProcessHandle, spawn
from .process.environment import clean_environment

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from ._command_sandbox import CommandSandbox

DEFAULT_TIMEOUT = 120_000.0
"""Milliseconds a command may run if nothing else is said."""
SLACK = 100.0
"""Milliseconds beyond its limit before a command is ended."""
PREVIEW = 30_000
"""UTF-16 units of output in the metadata."""
INTERVAL = 0.05
"""Seconds between two updates of the live output."""
NOT_POSIX = ("fish", "nu")
"""Shells that read another language."""
_background: WeakKeyDictionary[ToolHost, list[ProcessHandle]] = WeakKeyDictionary()
"""What commands left running: it keeps running until the workspace closes or the kernel ends."""


class Parameters(Arguments):
    """What to run, where, and how long."""

    command: str = Field(description="The command to execute")
    timeout: float | None = Field(default=None, description="Optional timeout in milliseconds")
    workdir: Annotated[str | None, ForPerson("The folder to run the command in; the project's folder if left out")] = (
        Field(
            default=None,
            description="The working directory to run the command in. Defaults to the project directory. "
            "Use this instead of 'cd' commands.",
        )
    )
    description: Annotated[str, ForPerson("What the command does, in a few words")] = Field(
        description="Clear, concise description of what this command does in 5-10 words. "
        "Example: ls -> Lists files in current directory"
    )


@builtin(
    "bash",
    Parameters,
    group="run",
    body="command",
    effect="acts",
    example="%tool bash ls -la | head",
    card=CardSpec(question="Run this command?"),
)
async def bash(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Run a shell command."""
    limit = _time_limit(args.timeout)
    if "\0" in args.command:
        raise ToolError(
            "The command has a NUL character, which cannot be passed to a program; write $'\\0' or use a file."
        )
    cwd = ctx.directory
    if args.workdir:
        cwd = _folder(ctx, args.workdir)
    # here: reading commands takes a twentieth of a kernel's first call, whatever its tool
    from ._bash_approval import request_approval
    from ._command_sandbox import CommandSandbox

    asks = await request_approval(ctx, args.command, cwd, os.path.basename(shell()))
    ctx.proceed()

    sandbox = CommandSandbox(ctx, asks)
    run = _Run(ctx, args, cwd, limit)
    outcome = await run.start(sandbox)
    startup_note = await sandbox.keep_startup_files(args.command)
    run.notes += [startup_note] if startup_note else []
    if sandbox.policy is not None and not startup_note and outcome.code != 0 and not run.ended:
        blocked = sandbox.blocked(run.output, cwd)
        answer = await sandbox.may_run_without(args.command, blocked) if blocked else ""
        if answer is True:
            run = _Run(ctx, args, cwd, limit)
            sandbox.policy, sandbox.startup, sandbox.shown = None, None, "off, approved for this command"
            outcome = await run.start(sandbox)
        elif answer:
            run.notes.append(answer)
    return run.result(outcome, sandbox.shown)


class _Run:
    """One run of the command, to be started once."""

    def __init__(self, ctx: ToolContext, args: Parameters, cwd: Path, limit: float) -> None:
        from ..sandbox.service import Sandbox

        self._ctx, self._args, self._cwd, self._limit = ctx, args, cwd, limit
        self._live = _LiveOutput(ctx, args.description, ctx.workspace.service(Sandbox).settings.output)
        self._background: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.ended = False
        """Whether it was ended for its time or its output."""

    @property
    def output(self) -> str:
        """The end of what it wrote."""
        return self._live.text

    async def start(self, sandbox: CommandSandbox) -> Exit:
        """Run it to its end.

        Raises:
            ToolError: it can't be started.
        """
        ctx, live = self._ctx, self._live
        argv, env = [shell(), "-c", self._args.command], await environment(ctx, self._cwd)
        try:
            child = spawn(argv, cwd=str(self._cwd), env=env, on_output=live.feed, sandbox=sandbox.policy)
        except OSError as error:
            raise _not_started(error, self._cwd) from error
        try:
            outcome, why = await _wait(child, self._limit, live.full)
        except OSError as error:
            raise _not_started(error, self._cwd) from error
        except BaseException:
            await child.stop()
            live.abandon()
            raise
        else:
            if not sandbox.leaves_nothing:
                self._background = keep_running(ctx.workspace, child, outcome)
        finally:
            child.close()
            live.close()
            if sandbox.startup is not None:
                sandbox.startup.move()
        self.ended = why is not None
        self.notes += [why] if why else []
        return outcome

    def result(self, outcome: Exit, sandbox: str) -> ToolResult:
        """What the command gives back."""
        more: dict[str, Any] = {"background": self._background} if self._background else {}
        if outcome.signal is not None and not self.ended:
            more["signal"] = _signal_name(outcome.signal)
            self.notes.insert(0, f"bash tool command was ended by signal {more['signal']}")
        if sandbox:
            more["sandbox"] = sandbox
        return self._live.result(outcome, self.notes, more)


class _LiveOutput:
    """The output as it grows: shown at most 20 times a second, and made into the result in the end."""

    def __init__(self, ctx: ToolContext, description: str, most: int) -> None:
        self._ctx = ctx
        self._most = most
        self._description = description
        self._sink = Spill(ctx.workspace.truncation)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0
        self.full: asyncio.Future[int] = self._loop.create_future()
        """Done when there is more output than is kept."""
        self._show("")

    @property
    def text(self) -> str:
        """The end of the output."""
        return self._sink.live(PREVIEW)

    def feed(self, data: bytes) -> None:
        if self.full.done():
            return
        self._sink.feed(data)
        if self._sink.bytes >= self._most:
            self.full.set_result(self._most)
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
        self._show(_with_notes(self._sink.live(PREVIEW), ["User aborted the command"]))

    def result(self, outcome: Exit, notes: list[str], more: dict[str, Any]) -> ToolResult:
        """What the command gives back."""
        whole = self._sink.finish(self._ctx.workspace.agents.get(self._ctx.agent))
        output = _with_notes(whole.text or "(no output)", notes)
        metadata: dict[str, Any] = {
            "output": _preview(output),
            "exit": outcome.code,
            "description": self._description,
            **whole.metadata(),
        }
        return ToolResult(self._description, output, metadata | more)


def _folder(ctx: ToolContext, workdir: str) -> Path:
    """The folder a command runs in.

    Raises:
        ToolError: there is none, or it can't be entered.
    """
    if "\0" in workdir:
        raise ToolError(f"workdir can't have a NUL character: {workdir!r}")
    folder = Path(os.path.normpath(ctx.resolve(workdir)))
    folder_status = file_status(folder)
    if folder_status is None:
        error = ToolError(
            f"NotFound: FileSystem.access ({folder})",  # OpenCode's text
            for_person=f"The command cannot run in {folder}.",
        )
        error.add_note("This folder does not exist. Pass an existing folder as workdir, or create it first.")
        raise error
    if not stat.S_ISDIR(folder_status.st_mode):
        raise ToolError(f"workdir is not a folder: '{folder}'")
    if not os.access(folder, os.X_OK):
        raise _no_permission(folder)
    return folder


@cache
def shell() -> str:
    """``$SHELL`` unless it is fish or nu, which read another language; else zsh on macOS, bash, sh."""
    chosen = os.environ.get("SHELL", "")
    if os.path.isabs(chosen) and os.access(chosen, os.X_OK) and Path(chosen).name not in NOT_POSIX:
        return chosen
    if sys.platform == "darwin":
        return "/bin/zsh"
    return shutil.which("bash") or "/bin/sh"


async def environment(ctx: ToolContext, cwd: Path) -> dict[str, str]:
    """The environment of a command, with what the hook ``shell.env`` adds.

    A person's own command gets the kernel's, as with ``!``; a model's only what programs need, and what the config's
    ``experimental.shell_env_keep`` (names with wildcards, or true) names.
    """
    config: Mapping[str, Any] = ctx.workspace.config.data.get("experimental") or {}
    added: dict[str, str] = {}
    if ctx.workspace.hooks.has_hooks("shell.env"):
        request = {"cwd": str(cwd), "sessionID": ctx.session_id, "callID": ctx.call_id}
        added = (await ctx.workspace.hooks.trigger("shell.env", request, {"env": {}}))["env"]
    keep = config.get("shell_env_keep", ()) if ctx._current_call._by == "model" else True
    tags = {"PWD": str(cwd), "OPENCODE_CALL_ID": ctx.call_id}
    extra = {**tags, **{str(name): str(value) for name, value in added.items()}}
    variables = clean_environment(os.environ, keep=keep, extra=extra)
    # A folder of the project that is a repository by itself could name programs in its settings.
    count = int(variables["GIT_CONFIG_COUNT"]) if variables.get("GIT_CONFIG_COUNT", "").isdigit() else 0
    setting = {f"GIT_CONFIG_KEY_{count}": "safe.bareRepository", f"GIT_CONFIG_VALUE_{count}": "explicit"}
    return {**variables, **setting, "GIT_CONFIG_COUNT": str(count + 1)}


def keep_running(workspace: ToolHost, child: Child, outcome: Exit) -> list[dict[str, Any]]:
    """Let the processes that a command left run on, under their supervisor.

    Returns:
        ``{"pid", "command"}`` of each; empty when nothing is left.
    """
    left = [(pid, _command_line(pid)) for pid in outcome.left]
    running = [{"pid": pid, "command": command} for pid, command in left if command]
    if not running:
        return []
    handle = child.leave()
    handles = _background.get(workspace)
    if handles is None:
        handles = _background[workspace] = []

        def end(_: dict[str, Any], handles: list[ProcessHandle] = handles) -> None:
            for handle in handles:
                handle.end()
            handles.clear()

        workspace.bus.subscribe("server.instance.disposed", end)
    handles[:] = [h for h in handles if not h.gone.done()]
    handles.append(handle)
    return running


def _command_line(pid: int) -> str:
    """The command line of a process; empty if it is gone (or a zombie)."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


async def _wait(child: Child, limit: float, full: asyncio.Future[int]) -> tuple[Exit, str | None]:
    """The command's end, and why not all of it is there; None if it ended by itself.

    Raises:
        OSError: it could not be started.
    """
    ends: list[asyncio.Future[Any]] = [child.exited, full]
    await asyncio.wait(ends, timeout=(limit + SLACK) / 1000, return_when=asyncio.FIRST_COMPLETED)
    outcome = await child.wait() if child.exited.done() else None
    if full.done():
        why = f"bash tool terminated command after {full.result():,} bytes of output; redirect what is longer to a file"
    elif outcome is None:
        why = f"bash tool terminated command after exceeding timeout {limit:.15g} ms"
    else:
        return outcome, None
    return outcome or await child.stop(), why


def _time_limit(timeout: float | None) -> float:
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


def _with_notes(text: str, notes: list[str]) -> str:
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
        return _no_permission(cwd)
    return ToolError(f"The command could not be started: {error.strerror or error}")


def _no_permission(cwd: Path) -> ToolError:
    return ToolError(f"No permission to run anything in {cwd}. Change its permissions, or give another workdir.")
