"""apply_patch: change several files by one patch. See docs/opencode/tools.md 9 (line ends as in 1.18)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import Field

from ..core.call_state import Completed, ToolPart
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolAbortedError, ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..text.diff import diff, shorten, trim_diff
from ..text.encoding import decode, printable, to_newline
from ..text.patch import FileChange, Hunk, PatchError, Plan, UpdateFile, parse, plan
from . import _file_edits, _path_checks
from ._file_edits import diagnostics_after
from ._path_checks import assert_external, outside_locations
from .builtin import builtin
from .edit import WHOLE

TITLE_LINES = 20
NAMED = 3
"""Most files that a card names beside the tool."""


class Parameters(Arguments):
    """The patch."""

    patch_text: str = Field(description="The full patch text that describes all changes to be made")


EMPTY = "The patch changes no file. It needs a line such as *** Update File: PATH between its Begin and End lines."


_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)


def _label(arguments: dict[str, Any], part: ToolPart) -> str:
    """The patch's files; OpenCode's title is the whole output."""
    metadata = part.state.metadata if isinstance(part.state, Completed) else {}
    files = [file for file in metadata.get("files") or [] if isinstance(file, dict)]
    names = [str(file.get("relativePath") or file.get("filePath") or "") for file in files]
    patch = arguments.get("patchText", arguments.get("patch_text"))
    if not names and isinstance(patch, str):
        names = _FILE.findall(patch)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


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
        raise _path_checks.missing_argument("patchText", "the patch")
    hunks = await anyio.to_thread.run_sync(_parse, args.patch_text)
    paths = _paths_of(ctx, hunks)
    for path in await anyio.to_thread.run_sync(_external, ctx, paths):
        await assert_external(ctx, path)

    async with AsyncExitStack() as stack:
        await _file_edits.lock_files(ctx, stack, paths)
        planned = await anyio.to_thread.run_sync(_plan, ctx, hunks)
        diffs = await anyio.to_thread.run_sync(_diffs, ctx, planned.changes)
        patterns, moved = await anyio.to_thread.run_sync(_patterns, ctx, planned.changes)
        names = printable(", ".join(dict.fromkeys(ctx.workspace.relative(change.path) for change in planned.changes)))
        request = {"filepath": names, "diff": diffs.diff, "files": diffs.files}
        await ctx.ask("edit", patterns, ["*"], request, also=moved)
        ctx.proceed()
        formatted = await _file_edits.write_files(ctx, planned.changes, planned.results, "apply_patch")
        if formatted:
            changes = [
                replace(change, after=decode(formatted[change.target]).text) if change.target in formatted else change
                for change in planned.changes
            ]
            diffs = await anyio.to_thread.run_sync(_diffs, ctx, changes)

    lines = [f"{_LETTER[change.type]} {_name(ctx, change.target)}" for change in planned.changes]
    output = "\n".join(["Success. Updated the following files:", *lines])
    metadata = {"diff": diffs.diff, "files": diffs.files, "diagnostics": {}}
    ctx.metadata(metadata=metadata)
    targets = await anyio.to_thread.run_sync(_file_edits.existing_targets, planned.changes)
    diagnostics = await diagnostics_after(ctx, targets)
    output += "".join(diagnostics.named_file(target, _name(ctx, target)) for target in targets)
    return ToolResult(_title(output), output, {**metadata, "diagnostics": diagnostics.metadata})


_LETTER = {"add": "A", "update": "M", "move": "M", "delete": "D"}


def _parse(text: str) -> list[Hunk]:
    """The hunks of a patch.

    Raises:
        ToolError: there are none.
    """
    try:
        hunks = parse(text)
    except PatchError as error:
        raise _rejection(error) from error
    if hunks:
        return hunks
    if text.replace("\r\n", "\n").replace("\r", "\n").strip() == "*** Begin Patch\n*** End Patch":
        raise ToolError("patch rejected: empty patch", for_person=EMPTY)
    raise ToolError("apply_patch verification failed: no hunks found", for_person=EMPTY)


def _paths_of(ctx: ToolContext, hunks: Sequence[Hunk]) -> list[Path]:
    """Every path that the patch names, once, in its order."""
    out: dict[Path, None] = {}
    for hunk in hunks:
        out[_path_checks.resolve_file(ctx, hunk.path)] = None
        if isinstance(hunk, UpdateFile) and hunk.move_path is not None:
            out[_path_checks.resolve_file(ctx, hunk.move_path)] = None
    return list(out)


def _external(ctx: ToolContext, paths: Sequence[Path]) -> list[Path]:
    """Of the paths that lie or lead outside the project, one for each folder there."""
    checked: set[Path] = set()
    out: dict[tuple[Path, ...], Path] = {}
    for path in paths:
        ctx.abort.raise_if_aborted()
        # Where a path leads is said by its folder, unless it is itself a link or a folder.
        key = path if os.path.islink(path) or os.path.isdir(path) else path.parent / "*"
        if key in checked:
            continue
        checked.add(key)
        folders = tuple(location.parent for location in outside_locations(ctx, path))
        if folders:
            out.setdefault(folders, path)
    return list(out.values())


def _plan(ctx: ToolContext, hunks: Sequence[Hunk]) -> Plan:
    """Plan the patch; nothing is written.

    Raises:
        ToolError: it does not fit them.
    """
    try:
        planned = plan(
            hunks,
            lambda path: _path_checks.resolve_file(ctx, path),
            _file_edits.read_content,
            step=ctx.abort.raise_if_aborted,
        )
        for result in planned.results:
            _file_edits.check_notebook(result.path, result.before, result.after)
    except ToolAbortedError:
        raise
    except ToolError as error:
        raise _rejection(error) from error
    return planned


def _rejection(error: ToolError) -> ToolError:
    plain = isinstance(error, PatchError) and error.plain
    return ToolError(
        printable(f"apply_patch verification failed: {'' if plain else 'Error: '}{error}"),
        for_person=printable(f"{error.for_person} Nothing was changed."),
    )


def _diffs(ctx: ToolContext, changes: Sequence[FileChange]) -> PatchDiffs:
    return patch_diffs(changes, lambda path: _name(ctx, path), ctx.abort.raise_if_aborted)


def _patterns(ctx: ToolContext, changes: Sequence[FileChange]) -> tuple[list[str], list[str]]:
    """The patterns of the request, as OpenCode's: the files' present names, and those that they are moved to.

    A link is named together with the file it leads to, which OpenCode does not look at.
    """
    sources = dict.fromkeys(p for change in changes for p in _path_checks.rule_patterns(ctx, change.path))
    moved = (change.move_path for change in changes if change.move_path is not None)
    targets = dict.fromkeys(p for path in moved for p in _path_checks.rule_patterns(ctx, path))
    return list(sources), [path for path in targets if path not in sources]


def _name(ctx: ToolContext, path: Path) -> str:
    return printable(ctx.workspace.relative(path))


def _title(output: str) -> str:
    lines = output.split("\n")
    more = len(lines) - TITLE_LINES
    return output if more <= 1 else "\n".join([*lines[:TITLE_LINES], f"... and {more} more"])


DIFFS = 2_000_000
"""Characters of all files' diffs together; what goes beyond is cut."""


@dataclass(frozen=True, slots=True)
class PatchDiffs:
    """All changes as text and as OpenCode's list of files."""

    diff: str
    files: list[dict[str, Any]]


def patch_diffs(
    changes: Sequence[FileChange], name: Callable[[Path], str], step: Callable[[], None] = lambda: None
) -> PatchDiffs:
    """The diffs of `changes`.

    Args:
        changes: in order.
        name: a path as people see it.
        step: called before each file; may raise to end the work.
    """
    diffs: list[str] = []
    files: list[dict[str, Any]] = []
    left, whole = DIFFS, WHOLE
    for change in changes:
        step()
        before, after = to_newline(change.before, "\n"), to_newline(change.after, "\n")
        change_diff = diff(str(change.path), before, after)
        patch = _with_new_path(trim_diff(change_diff.patch), change)
        if change.replaced is not None:
            patch += trim_diff(diff(str(change.target), to_newline(change.replaced, "\n"), after).patch)
        patch = shorten(printable(patch), max(left, 200))
        left -= len(patch)
        diffs.append(patch)
        file: dict[str, Any] = {
            "filePath": printable(str(change.path)),
            "relativePath": name(change.target),
            "type": change.type,
            "diff": patch,
            "patch": patch,
        }
        whole -= len(before) + len(after)
        if whole >= 0:
            file["before"], file["after"] = printable(change.before), printable(change.after)
        file["additions"] = change_diff.additions
        # OpenCode counts the pieces between newlines
        file["deletions"] = change.before.count("\n") + 1 if change.type == "delete" else change_diff.deletions
        if change.move_path is not None:
            file["movePath"] = printable(str(change.move_path))
        files.append(file)
    return PatchDiffs(shorten("".join(text + "\n" for text in diffs)), files)


def _with_new_path(patch: str, change: FileChange) -> str:
    """`patch` with the new path in the head of its new side."""
    if change.move_path is None:
        return patch
    old = f"\n+++ {change.path}\n"
    return patch.replace(old, f"\n+++ {change.move_path}\n", 1)
