"""Write what a patch makes of several files: all or none, recorded as one step, told to who listens."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio.to_thread

from ..core.atomic_many import Write, write_all
from ..core.changes import Change
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.filetime import FileChangedError
from ..text.encoding import decode, printable
from ..text.patch import FileChange, Result
from . import _paths, _writing

PROGRESS_FROM = 50
"""Files from which on the card counts them."""


async def hold(ctx: ToolContext, stack: AsyncExitStack, paths: Sequence[Path]) -> None:
    """Hold the lock of every file until `stack` ends; always in the same order, so that two calls can't block."""
    for place in await anyio.to_thread.run_sync(_places, paths):
        await stack.enter_async_context(ctx.hold(place))


def _places(paths: Sequence[Path]) -> list[Path]:
    return sorted({_paths.real(path) for path in paths})


async def put_all(
    ctx: ToolContext, changes: Sequence[FileChange], results: Sequence[Result], tool: str
) -> dict[Path, str]:
    """Bring the files to what they are to be, if they still are what they were.

    Args:
        ctx: the call.
        changes: for the events.
        results: one for each file.
        tool: the tool's id, for the record of changes.

    Returns:
        The text of the files that a formatter has changed since, by their path in `changes`.

    Raises:
        ToolError: something can't be written, or has changed while permission was asked for. Nothing is changed.
    """
    from .formatting import Formatters

    # All in one step of one thread: a cancelled call has written and recorded everything, or nothing.
    made = await anyio.to_thread.run_sync(_write, ctx, results, tool)
    ctx.workspace.service(Formatters)
    bus = ctx.workspace.bus
    kept = await anyio.to_thread.run_sync(left, changes)
    for path in kept:
        await _writing.publish_edited(ctx, path)
    for change in changes:
        for path, event in _events(change):
            await bus.publish_and_wait("file.watcher.updated", {"file": printable(str(path)), "event": event})
    if not bus.has_subscribers("file.edited"):
        return {}
    return await anyio.to_thread.run_sync(_formatted, ctx, kept, results, made)


def left(changes: Sequence[FileChange]) -> list[Path]:
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
    for one in results:
        ctx.abort.raise_if_aborted()
        _check(ctx, one)
        found = _paths.status(one.path)
        if one.after is None and one.link is None and found is not None:
            modes[one.path] = stat.S_IMODE(found.st_mode)

    def step(done: int) -> None:
        ctx.abort.raise_if_aborted()
        if done and done % PROGRESS_FROM == 0:
            progress = {"value": done, "total": len(results), "message": f"{done} of {len(results)} files"}
            ctx.metadata(metadata={"progress": progress})

    workspace = ctx.workspace
    folders = write_all([Write(one.path, one.after, one.before, one.mode) for one in results], step)
    number = workspace.changes.next_step()
    made: dict[Path, Change] = {}
    for one in results:
        made[one.path] = workspace.changes.record(
            one.path,
            one.before,
            one.after,
            ctx.session_id,
            ctx.call_id,
            tool,
            step=number,
            mode=modes.get(one.path),
            link=one.link,
            folders=() if made else folders,  # the first one's: taken back last
        )
        if one.after is not None:
            workspace.files.read(ctx.session_id, one.path)
    return made


def _check(ctx: ToolContext, one: Result) -> None:
    """Go on only if the file is still what the ask showed.

    Raises:
        ToolError: it is not.
    """
    if one.link is not None:
        if not one.path.is_symlink() or str(one.path.readlink()) != one.link:
            raise ToolError(f"{one.named} points to another file than when permission was requested. Try again.")
        return
    if _paths.real(one.path) != one.path:
        raise ToolError(f"{one.named} points to another file than when permission was requested. Try again.")
    found = _paths.status(one.path)
    if (found is None) != (one.before is None) or (found is not None and _writing.load(one.path) != one.before):
        known = ctx.workspace.files.get(ctx.session_id, one.path)
        modified = found.st_mtime_ns if found is not None else 0
        raise FileChangedError(str(one.named), modified, known.taken_ns if known is not None else 0)


def _formatted(
    ctx: ToolContext, kept: Sequence[Path], results: Sequence[Result], made: dict[Path, Change]
) -> dict[Path, str]:
    by_place = {one.path: one for one in results}
    out = {}
    for path in kept:
        place = _paths.real(path)
        one = by_place.get(place)
        now = _writing.load(place)
        if one is None or now is None or now == one.after:
            continue
        ctx.workspace.changes.amend(made[place], now)
        out[path] = decode(now).text
    return out
