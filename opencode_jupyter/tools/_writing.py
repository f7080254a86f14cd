"""What edit and write share: the file before, the ask with its diff, the write itself."""

from __future__ import annotations

import stat
from pathlib import Path

import anyio.to_thread

from ..core import atomic
from ..core.changes import Change
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.filetime import FileChangedError, Snapshot
from ..text.diff import shorten
from ..text.encoding import printable
from . import _paths

MAX_BYTES = 256 << 20
"""A file to edit or overwrite is held in memory several times over (text, diff, the content for undo)."""


def load(path: Path) -> bytes | None:
    """The file's content, or None if there is none.

    Raises:
        ToolError: it is a directory, no regular file, too large, or can't be read.
    """
    found = _paths.status(path)
    if found is None:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise _paths.is_folder(path)
    _paths.regular(path, found)
    if found.st_size > MAX_BYTES:
        raise ToolError(
            f"{path} has {found.st_size >> 20} MiB, too much to change in memory (the limit is {MAX_BYTES >> 20} MiB). "
            "Use the bash tool, for instance with sed or python."
        )
    with open(_paths.open_regular(path, _paths.real(path)), "rb") as file:
        return file.read()


async def at_start(ctx: ToolContext, path: Path) -> Snapshot | None:
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
        started: from `at_start`.

    Raises:
        NotReadError: the session has not read it.
        FileChangedError: somebody else has changed it since.
    """
    files = ctx.workspace.files
    if ctx.by != "user":
        files.check(ctx.session_id, path)
        return
    now = Snapshot.of(path)
    known = files.get(ctx.session_id, path)
    if not any(snapshot is not None and snapshot.same_content(now) for snapshot in (started, known)):
        raise FileChangedError(str(path), now.modified_ns, started.taken_ns if started else 0)


async def ask(ctx: ToolContext, path: Path, patch: str) -> None:
    """Ask to change `path` by `patch`; a dry run ends here.

    Raises:
        PermissionDeniedError: and the other errors of `ToolContext.ask`.
    """
    metadata = {"filepath": printable(str(path)), "diff": shorten(printable(patch))}
    await ctx.ask("edit", _paths.patterns(ctx, path), ["*"], metadata)
    ctx.proceed()


async def publish_edited(ctx: ToolContext, path: Path) -> None:
    """Publish that a file was edited; what subscribers (formatters) make of it counts as our own change."""
    with ctx.workspace.files.own_change([path]):
        await ctx.workspace.bus.publish_and_wait("file.edited", {"file": printable(str(path))})


async def put(ctx: ToolContext, path: Path, place: Path, before: bytes | None, after: bytes, tool: str) -> bytes:
    """Write `after` and publish it (formatters subscribe), if the file still holds `before`.

    A file that holds `after` already is left as it is: nothing is written, recorded or published.

    Args:
        ctx: the call.
        path: the file as it was named.
        place: where it led when permission was asked for.
        before: its content when the change was computed; None if it was not there.
        after: its new content.
        tool: the tool's id, for the record of changes.

    Returns:
        What the file holds in the end.

    Raises:
        ToolError: it can't be written, or has changed while permission was asked for. The old file is whole.
    """
    from .formatting import Formatters  # here: with the table of formatters, only needed for a write

    workspace = ctx.workspace

    def work() -> Change | None:
        found = _paths.status(path)
        if _paths.real(path) != place:
            raise ToolError(f"{path} points to another file than when permission was requested. Try again.")
        if (found is None) != (before is None) or load(path) != before:
            known = workspace.files.get(ctx.session_id, path)
            modified = found.st_mtime_ns if found is not None else 0
            raise FileChangedError(str(path), modified, known.taken_ns if known is not None else 0)
        if before == after:
            workspace.files.read(ctx.session_id, path)
            return None
        atomic.write(place, after)
        workspace.files.read(ctx.session_id, path)
        return workspace.changes.record(path, before, after, ctx.session_id, ctx.call_id, tool)

    # All in one step of one thread: a cancelled call has written and recorded the change, or done neither.
    change = await anyio.to_thread.run_sync(work)
    if change is None:
        return after
    workspace.service(Formatters)  # they listen from now on
    await publish_edited(ctx, path)
    event = "add" if before is None else "change"
    await workspace.bus.publish_and_wait("file.watcher.updated", {"file": printable(str(path)), "event": event})
    if workspace.bus.has_subscribers("file.edited"):  # a formatter may have been at work
        formatted = await anyio.to_thread.run_sync(load, path)
        if formatted is not None and formatted != after:
            workspace.changes.amend(change, formatted)
            return formatted
    return after
