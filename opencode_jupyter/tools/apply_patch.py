"""apply_patch: change several files by one patch. See docs/opencode/tools.md 9 (line ends as in 1.18)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolAbortedError, ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..core.state import Completed, ToolPart
from ..text.encoding import printable
from ..text.patch import FileChange, Hunk, PatchError, Plan, UpdateFile, parse, plan
from . import _paths, _write_all, _writing
from ._diagnostics import diagnostics_after
from ._external import assert_external, outside
from ._notebook_json import check_notebook
from ._patch_shown import Shown, shown
from .builtin import builtin

TITLE_LINES = 20


class Parameters(Arguments):
    """The patch."""

    patch_text: str = Field(description="The full patch text that describes all changes to be made")


EMPTY = "The patch changes no file. It needs a line such as *** Update File: PATH between its Begin and End lines."


_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)


def _label(arguments: dict[str, Any], part: ToolPart) -> str:
    """The patch's only file, or how many there are; OpenCode's title is the whole output."""
    metadata = part.state.metadata if isinstance(part.state, Completed) else {}
    files = [file for file in metadata.get("files") or [] if isinstance(file, dict)]
    names = [str(file.get("relativePath") or file.get("filePath") or "") for file in files]
    patch = arguments.get("patchText", arguments.get("patch_text"))
    if not names and isinstance(patch, str):
        names = _FILE.findall(patch)
    return names[0] if len(names) == 1 else f"{len(names)} files" if names else ""


@builtin(
    "apply_patch",
    Parameters,
    group="files",
    body="patchText",
    effect="writes",
    permission="edit",
    card=CardSpec(label=_label),
)
async def apply_patch(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Edit files with a patch."""
    if not args.patch_text:
        raise _paths.missing_argument("patchText", "the patch")
    hunks = await anyio.to_thread.run_sync(_parsed, args.patch_text)
    paths = _paths_of(ctx, hunks)
    for path in await anyio.to_thread.run_sync(_external, ctx, paths):
        await assert_external(ctx, path)

    async with AsyncExitStack() as stack:
        await _write_all.hold(ctx, stack, paths)
        made = await anyio.to_thread.run_sync(_planned, ctx, hunks)
        diffs = await anyio.to_thread.run_sync(_shown, ctx, made.changes)
        patterns, moved = await anyio.to_thread.run_sync(_patterns, ctx, made.changes)
        names = printable(", ".join(dict.fromkeys(ctx.workspace.relative(change.path) for change in made.changes)))
        asked = {"filepath": names, "diff": diffs.diff, "files": diffs.files}
        await ctx.ask("edit", patterns, ["*"], asked, also=moved)
        ctx.proceed()
        formatted = await _write_all.put_all(ctx, made.changes, made.results, "apply_patch")
        if formatted:
            changes = [replace(one, after=formatted.get(one.target, one.after)) for one in made.changes]
            diffs = await anyio.to_thread.run_sync(_shown, ctx, changes)

    lines = [f"{_LETTER[change.type]} {_name(ctx, change.target)}" for change in made.changes]
    output = "\n".join(["Success. Updated the following files:", *lines])
    metadata = {"diff": diffs.diff, "files": diffs.files, "diagnostics": {}}
    ctx.metadata(metadata=metadata)
    targets = await anyio.to_thread.run_sync(_write_all.left, made.changes)
    found = await diagnostics_after(ctx, targets)
    output += "".join(found.named_file(target, _name(ctx, target)) for target in targets)
    return ToolResult(_title(output), output, {**metadata, "diagnostics": found.metadata})


_LETTER = {"add": "A", "update": "M", "move": "M", "delete": "D"}


def _parsed(text: str) -> list[Hunk]:
    """The hunks of a patch.

    Raises:
        ToolError: there are none.
    """
    try:
        hunks = parse(text)
    except PatchError as error:
        raise _refused(error) from error
    if hunks:
        return hunks
    if text.replace("\r\n", "\n").replace("\r", "\n").strip() == "*** Begin Patch\n*** End Patch":
        raise ToolError("patch rejected: empty patch", for_person=EMPTY)
    raise ToolError("apply_patch verification failed: no hunks found", for_person=EMPTY)


def _paths_of(ctx: ToolContext, hunks: Sequence[Hunk]) -> list[Path]:
    """Every path that the patch names, once, in its order."""
    out: dict[Path, None] = {}
    for hunk in hunks:
        out[_paths.target(ctx, hunk.path)] = None
        if isinstance(hunk, UpdateFile) and hunk.move_path is not None:
            out[_paths.target(ctx, hunk.move_path)] = None
    return list(out)


def _external(ctx: ToolContext, paths: Sequence[Path]) -> list[Path]:
    """Of the paths that lie or lead outside the project, one for each folder there."""
    looked: set[Path] = set()
    out: dict[tuple[Path, ...], Path] = {}
    for path in paths:
        ctx.abort.raise_if_aborted()
        # Where a path leads is said by its folder, unless it is itself a link or a folder.
        key = path if os.path.islink(path) or os.path.isdir(path) else path.parent / "*"
        if key in looked:
            continue
        looked.add(key)
        folders = tuple(place.parent for place in outside(ctx, path))
        if folders:
            out.setdefault(folders, path)
    return list(out.values())


def _planned(ctx: ToolContext, hunks: Sequence[Hunk]) -> Plan:
    """What the patch makes of the files; nothing is written.

    Raises:
        ToolError: it does not fit them.
    """
    try:
        made = plan(hunks, lambda path: _paths.target(ctx, path), _writing.load, step=ctx.abort.raise_if_aborted)
        for one in made.results:
            check_notebook(one.path, one.before, one.after)
    except ToolAbortedError:
        raise
    except ToolError as error:
        raise _refused(error) from error
    return made


def _refused(error: ToolError) -> ToolError:
    plain = isinstance(error, PatchError) and error.plain
    return ToolError(
        printable(f"apply_patch verification failed: {'' if plain else 'Error: '}{error}"),
        for_person=printable(f"{error.for_person} Nothing was changed."),
    )


def _shown(ctx: ToolContext, changes: Sequence[FileChange]) -> Shown:
    return shown(changes, lambda path: _name(ctx, path), ctx.abort.raise_if_aborted)


def _patterns(ctx: ToolContext, changes: Sequence[FileChange]) -> tuple[list[str], list[str]]:
    """What the ask names, as OpenCode's does: the files as they are called now; and, judged too, where they are moved.

    A link is named together with the file it leads to, which OpenCode does not look at.
    """
    sources = dict.fromkeys(p for change in changes for p in _paths.patterns(ctx, change.path))
    moved = (change.move_path for change in changes if change.move_path is not None)
    targets = dict.fromkeys(p for path in moved for p in _paths.patterns(ctx, path))
    return list(sources), [path for path in targets if path not in sources]


def _name(ctx: ToolContext, path: Path) -> str:
    return printable(ctx.workspace.relative(path))


def _title(output: str) -> str:
    lines = output.split("\n")
    more = len(lines) - TITLE_LINES
    return output if more <= 1 else "\n".join([*lines[:TITLE_LINES], f"... and {more} more"])
