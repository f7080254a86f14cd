"""Change files for tools: read the content before, request approval with the diff, write, publish, find errors.

The errors are those that language servers report about the changed files (docs/opencode/tools.md 6.7, 8, 9.6).
"""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio.to_thread

from ..core.atomic import Write, write_all
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.file_changes import Author, Change
from ..core.file_tracker import FileChangedError, Snapshot
from ..text.diff import shorten
from ..text.encoding import printable
from ..text.patch import FileChange, Result
from . import _path_checks

log = logging.getLogger(__name__)

MAX_BYTES = 256 << 20
"""A file to edit or overwrite is held in memory several times over (text, diff, the content for undo)."""
PROGRESS_FROM = 50
"""Files from which on the card counts them."""
PER_FILE = 20
"""Errors shown of one file."""
OTHER_FILES = 5
"""Other files whose errors are shown after a write."""
KEPT = 100
"""Diagnostics of one file, and files, that ``metadata.diagnostics`` carries: it is saved with the notebook."""
SEVERITIES = {1: "ERROR", 2: "WARN", 3: "INFO", 4: "HINT"}


def read_content(path: Path) -> bytes | None:
    """The file's content, or None if there is none.

    Raises:
        ToolError: it is a directory, no regular file, too large, or can't be read.
    """
    status = _path_checks.file_status(path)
    if status is None:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise _path_checks.folder_error(path)
    _path_checks.check_regular(path, status)
    if status.st_size > MAX_BYTES:
        raise ToolError(
            f"{path} has {status.st_size >> 20} MiB, too much to change in memory (the limit is {MAX_BYTES >> 20} "
            "MiB). Use the bash tool, for instance with sed or python."
        )
    with open(_path_checks.open_regular(path, _path_checks.real_path(path)), "rb") as file:
        return file.read()


async def snapshot_at_start(ctx: ToolContext, path: Path) -> Snapshot | None:
    """The file as a person's call begins, for `check_unchanged`; None if it is missing, or no person calls."""
    if ctx.by != "user":
        return None
    try:
        return await anyio.to_thread.run_sync(Snapshot.of, path)
    except OSError:  # missing, or the tool reports soon why it cannot be read
        return None


def check_unchanged(ctx: ToolContext, path: Path, started: Snapshot | None) -> None:
    """Go on only if the caller may replace what an existing file holds now.

    Code and models must have read it in their session. For a person what counts is the file as the call began, or as
    another call of the same session left it (one of a batch).

    Args:
        ctx: the call.
        path: the file.
        started: from `snapshot_at_start`.

    Raises:
        NotReadError: the session has not read it.
        FileChangedError: somebody else has changed it since.
    """
    files = ctx.workspace.files
    if ctx.by != "user":
        files.check(ctx.session_id, path)
        return
    now = Snapshot.of(path)
    last_read = files.get(ctx.session_id, path)
    if not any(snapshot is not None and snapshot.same_content(now) for snapshot in (started, last_read)):
        raise FileChangedError(str(path), now.modified_ns, started.taken_ns if started else 0)


async def request_edit(ctx: ToolContext, path: Path, patch: str) -> None:
    """Ask to change `path` by `patch`; a dry run ends here.

    Raises:
        PermissionDeniedError: and the other errors of `ToolContext.ask`.
    """
    metadata = {"filepath": printable(str(path)), "diff": shorten(printable(patch))}
    await ctx.ask("edit", _path_checks.rule_patterns(ctx, path), ["*"], metadata)
    ctx.proceed()


async def _publish_edited(ctx: ToolContext, path: Path) -> None:
    """Publish that a file was edited; what subscribers (formatters) make of it counts as our own change."""
    with ctx.workspace.files.own_change([path]):
        await ctx.workspace.bus.publish_and_wait("file.edited", {"file": printable(str(path))})


async def write_file(ctx: ToolContext, path: Path, real: Path, before: bytes | None, after: bytes, tool: str) -> bytes:
    """Write `after`, unless the file holds it already, and return what the file holds in the end.

    Args:
        ctx: the call.
        path: the file as it was named.
        real: the file it led to when permission was requested.
        before: its content when the change was computed; None if it was missing.
        after: its new content.
        tool: the tool's id, for the record of changes.

    Raises:
        ToolError: it can't be written, or has changed while permission was requested. The old file is whole.
    """
    change = FileChange("add" if before is None else "update", path, "", "")
    results = [Result(real, path, before, after)]
    if before != after:
        return (await write_files(ctx, [change], results, tool)).get(path, after)
    await anyio.to_thread.run_sync(_check, ctx, results[0])
    ctx.workspace.files.read(ctx.session_id, path)
    return after


async def lock_files(ctx: ToolContext, stack: AsyncExitStack, paths: Sequence[Path]) -> None:
    """Hold the lock of every file until `stack` ends; always in the same order, so that two calls can't block."""
    for path in await anyio.to_thread.run_sync(_targets, paths):
        await stack.enter_async_context(ctx.hold(path))


def _targets(paths: Sequence[Path]) -> list[Path]:
    return sorted({_path_checks.real_path(path) for path in paths})


async def write_files(
    ctx: ToolContext, changes: Sequence[FileChange], results: Sequence[Result], tool: str
) -> dict[Path, bytes]:
    """Bring the files to what they are to be, if they still are what they were.

    Args:
        ctx: the call.
        changes: for the events.
        results: one for each file.
        tool: the tool's id, for the record of changes.

    Returns:
        The content of the files that a formatter has changed since, by their path in `changes`.

    Raises:
        ToolError: something can't be written, or has changed while permission was asked for. Nothing is changed.
    """
    from .formatters import Formatters

    # All in one step of one thread: a cancelled call has written and recorded everything, or nothing.
    changes_made = await anyio.to_thread.run_sync(_write, ctx, results, tool)
    ctx.workspace.service(Formatters)
    bus = ctx.workspace.bus
    remaining = await anyio.to_thread.run_sync(existing_targets, changes)
    for path in remaining:
        await _publish_edited(ctx, path)
    for change in changes:
        for path, event in _events(change):
            await bus.publish_and_wait("file.watcher.updated", {"file": printable(str(path)), "event": event})
    if not bus.has_subscribers("file.edited"):
        return {}
    return await anyio.to_thread.run_sync(_formatted, ctx, remaining, results, changes_made)


def existing_targets(changes: Sequence[FileChange]) -> list[Path]:
    """The files that are there after `changes`, each once (one that was added may have been moved on)."""
    return [path for path in {change.target: 0 for change in changes if change.type != "delete"} if path.exists()]


def _events(change: FileChange) -> list[tuple[Path, str]]:
    match change.type:
        case "add":
            return [(change.path, "add")]
        case "update":
            return [(change.path, "change")]
        case "delete":
            return [(change.path, "unlink")]
        case "move":
            return [(change.path, "unlink"), (change.target, "add")]


def _write(ctx: ToolContext, results: Sequence[Result], tool: str) -> dict[Path, Change]:
    modes: dict[Path, int] = {}
    for result in results:
        ctx.abort.raise_if_aborted()
        _check(ctx, result)
        status = _path_checks.file_status(result.path)
        if result.after is None and result.link is None and status is not None:
            modes[result.path] = stat.S_IMODE(status.st_mode)

    def step(done: int) -> None:
        ctx.abort.raise_if_aborted()
        if done and done % PROGRESS_FROM == 0:
            progress = {"value": done, "total": len(results), "message": f"{done} of {len(results)} files"}
            ctx.metadata(metadata={"progress": progress})

    workspace = ctx.workspace
    folders = write_all([Write(result.path, result.after, result.before, result.mode) for result in results], step)
    number = workspace.changes.next_step()
    author = Author(ctx.session_id, ctx.call_id, tool)
    recorded: dict[Path, Change] = {}
    for result in results:
        recorded[result.path] = workspace.changes.record(
            result.path,
            result.before,
            result.after,
            author,
            step=number,
            mode=modes.get(result.path),
            link=result.link,
            folders=() if recorded else folders,  # the first one's: taken back last
        )
        if result.after is not None:
            workspace.files.read(ctx.session_id, result.path)
    return recorded


def _check(ctx: ToolContext, result: Result) -> None:
    """Go on only if the file is still what the ask showed.

    Raises:
        ToolError: it is not.
    """
    if result.link is not None:
        if not result.path.is_symlink() or str(result.path.readlink()) != result.link:
            raise ToolError(f"{result.named} points to another file than when permission was requested. Try again.")
        return
    if _path_checks.real_path(result.named) != result.path:
        raise ToolError(f"{result.named} points to another file than when permission was requested. Try again.")
    status = _path_checks.file_status(result.path)
    if (status is None) != (result.before is None) or (
        status is not None and read_content(result.path) != result.before
    ):
        last_read = ctx.workspace.files.get(ctx.session_id, result.path)
        modified = status.st_mtime_ns if status is not None else 0
        raise FileChangedError(str(result.named), modified, last_read.taken_ns if last_read is not None else 0)


def _formatted(
    ctx: ToolContext, remaining: Sequence[Path], results: Sequence[Result], recorded: dict[Path, Change]
) -> dict[Path, bytes]:
    by_place = {result.path: result for result in results}
    out = {}
    for path in remaining:
        real = _path_checks.real_path(path)
        result = by_place.get(real)
        now = read_content(real)
        if result is None or now is None or now == result.after:
            continue
        ctx.workspace.changes.amend(recorded[real], now)
        out[path] = now
    return out


def check_notebook(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Refuse a change after which a notebook could not be opened any more; one that is damaged already may be repaired.

    Raises:
        ToolError: `path` is an ``.ipynb`` and `after` is no JSON object.
    """
    if path.suffix != ".ipynb" or after is None or before == after:
        return
    problem = _json_problem(after)
    if problem is not None and (before is None or _json_problem(before) is None):
        raise ToolError(
            f"{path} would not be a valid notebook: {problem}. Nothing was changed. Use notebook_edit to change cells, "
            "or write the whole notebook as JSON."
        )


def _json_problem(data: bytes) -> str | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        return f"invalid JSON ({error})"
    return None if isinstance(document, dict) else "not a JSON object"


@dataclass(slots=True)
class Diagnostics:
    """The diagnostics of all files the servers know.

    Attributes:
        by_file: path to the protocol's Diagnostic objects.
    """

    by_file: dict[Path, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, list[dict[str, Any]]]:
        """For ``metadata.diagnostics``."""
        files = sorted(self.by_file.items(), key=lambda pair: not _errors(pair[1]))[:KEPT]
        return {printable(str(path)): items[:KEPT] for path, items in files}

    def this_file(self, path: Path) -> str:
        """The text that edit and write append about the file they changed; empty if it has no errors."""
        return self._about(path, "LSP errors detected in this file, please fix:")

    def named_file(self, path: Path, name: str) -> str:
        """The text that apply_patch appends about one of its files, named by its path from the worktree."""
        return self._about(path, f"LSP errors detected in {name}, please fix:")

    def other_files(self, path: Path) -> str:
        """The text that write appends about other files: the first five with errors."""
        blocks = [
            self._about(other, "LSP errors detected in other files:")
            for other, items in self.by_file.items()
            if other != path and _errors(items)
        ]
        return "".join(blocks[:OTHER_FILES])

    def _about(self, path: Path, heading: str) -> str:
        faults = _errors(self.by_file.get(path, ()))
        if not faults:
            return ""
        lines = [describe_diagnostic(item) for item in faults[:PER_FILE]]
        if len(faults) > PER_FILE:
            lines.append(f"... and {len(faults) - PER_FILE} more")
        body = "\n".join(lines)
        return printable(f'\n\n{heading}\n<diagnostics file="{path}">\n{body}\n</diagnostics>')


async def diagnostics_after(ctx: ToolContext, paths: Sequence[Path]) -> Diagnostics:
    """Show changed files to the language servers that serve them and collect what is wrong. Waits at most 3 s.

    Empty if no server is there: see `LanguageServers.diagnose` for which are started. Never fails: the change is made.
    """
    from .language_servers.service import LanguageServers

    try:
        return Diagnostics(await ctx.workspace.service(LanguageServers).diagnose(paths))
    except Exception:
        log.exception("no diagnostics")
        return Diagnostics()


def _errors(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of severity 1."""
    return [item for item in items if item.get("severity") == 1]


def describe_diagnostic(item: dict[str, Any]) -> str:
    """One diagnostic as a line: ``ERROR [line:column] message``, counted from 1; no severity counts as an error's.

    Of a message that goes on after a blank line (ty adds where it has searched) only the first part; the metadata has
    the whole.
    """
    start = (item.get("range") or {}).get("start") or {}
    severity = SEVERITIES.get(item.get("severity") or 1, "ERROR")
    message = str(item.get("message", "")).split("\n\n", 1)[0]
    return f"{severity} [{start.get('line', 0) + 1}:{start.get('character', 0) + 1}] {message}"
