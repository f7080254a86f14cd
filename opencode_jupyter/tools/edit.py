"""edit: replace text in a file, or make one. See docs/opencode/tools.md 6 (line ends as in OpenCode 1.18)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Protocol

import anyio.to_thread
from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError, rephrase
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..text.diff import diff, shorten, trim_diff
from ..text.encoding import DecodedText, decode, encode, printable, to_newline
from ..text.replace import SameTextError, replace
from . import _file_edits, _path_checks
from ._file_edits import diagnostics_after
from ._path_checks import assert_external
from .builtin import builtin


class Parameters(Arguments):
    """What to replace by what, and where."""

    file_path: Annotated[str, ForPerson("The file to change")] = Field(
        description="The absolute path to the file to modify"
    )
    old_string: str = Field(description="The text to replace")
    new_string: str = Field(description="The text to replace it with (must be different from oldString)")
    replace_all: bool | None = Field(None, description="Replace all occurrences of oldString (default false)")


@builtin(
    "edit",
    Parameters,
    group="files",
    body="newString",
    effect="writes",
    example="%tool edit notes.txt first second",
    card=CardSpec(path="file", question="Edit this file?"),
)
async def edit(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Replace text in a file."""
    if not args.file_path:
        raise _path_checks.missing_argument("filePath", "the file to change")
    if args.old_string == args.new_string:
        raise SameTextError

    def make(path: Path, before: bytes | None) -> EditOutcome:
        return *apply_replacement(path, before, args), {}

    return await edit_file(ctx, args.file_path, "edit", args, make)


EditOutcome = tuple[DecodedText, DecodedText, dict[str, Any]]
"""A file's text before and after, and what more the metadata says."""

WHOLE = 100_000
"""Characters of both texts together up to which the result carries them whole, beside the patch."""

MASKED = (
    "[secret NAME] stands for a value that is hidden from you; the file has the value. Leave it out of oldString, and "
    "use text before or after it."
)


class Replacement(Protocol):
    """One replacement: the old text and the new one."""

    old_string: str
    new_string: str
    replace_all: bool | None


async def edit_file(
    ctx: ToolContext, file_path: str, tool: str, first: Replacement, make: Callable[[Path, bytes | None], EditOutcome]
) -> ToolResult:
    """Change one file: ask with the diff, write, and say what language servers find in it.

    Args:
        ctx: the call.
        file_path: the file's path as it was given.
        tool: the tool's id, for the record of changes.
        first: the first replacement; one of a text wants the file to have been read.
        make: makes the change, on a thread, of the file's path and content (None if there is none).

    Raises:
        ToolError: and what `make`, the asks and the writing raise.
    """
    path = _path_checks.resolve_file(ctx, file_path)
    started = await _file_edits.snapshot_at_start(ctx, path)
    await assert_external(ctx, path)

    async with ctx.hold(path):
        real = _path_checks.real_path(path)
        before = await anyio.to_thread.run_sync(_file_edits.read_content, path)
        if before is not None and first.old_string:
            await anyio.to_thread.run_sync(_file_edits.check_unchanged, ctx, path, started)
        old, new, more = await anyio.to_thread.run_sync(make, path, before)
        after = encode(new.text, bom=new.bom)
        await anyio.to_thread.run_sync(_file_edits.check_notebook, path, before, after)
        file_diff = await anyio.to_thread.run_sync(filediff, path, old, new)
        await _file_edits.request_edit(ctx, path, file_diff["patch"])
        written = await _file_edits.write_file(ctx, path, real, before, after, tool)
        if written != after:
            file_diff = await anyio.to_thread.run_sync(filediff, path, old, decode(written))

    metadata = {"diagnostics": {}, "diff": file_diff["patch"], "filediff": file_diff, **more}
    ctx.metadata(metadata=metadata)
    diagnostics = await diagnostics_after(ctx, [path])
    output = "Edit applied successfully." + diagnostics.this_file(path)
    return ToolResult(
        printable(ctx.workspace.relative(path)), output, {**metadata, "diagnostics": diagnostics.metadata}
    )


def apply_replacement(path: Path, before: bytes | None, args: Replacement) -> tuple[DecodedText, DecodedText]:
    """The file's text before and after.

    Raises:
        ToolError: it can't be edited so.
    """
    if args.old_string == args.new_string:
        raise SameTextError
    if not args.old_string:
        if before is not None:
            raise ToolError(
                "oldString cannot be empty when editing an existing file. Provide the exact text to replace, or use "
                "write for an intentional full-file replacement.",
                for_person=f"{path} exists, so oldString must not be empty: give the text to replace. "
                "Use write to replace the whole file.",
            )
        return DecodedText(""), decode(encode(args.new_string))
    if before is None:
        raise _path_checks.not_found_error(path, f"File {path} not found")
    old = decode(before)
    text = old.text
    # In a file that ends every line with CRLF the search runs over plain line ends, so that they all stay CRLF,
    # however the match was found. In a mixed file they stay as they are and the arguments are fitted to CRLF.
    uniform = text.count("\n") == text.count("\r\n")
    newline = "\n" if uniform else old.newline
    old_string, new_string = to_newline(args.old_string, newline), to_newline(args.new_string, newline)
    try:
        changed = replace(to_newline(text, "\n") if uniform else text, old_string, new_string, bool(args.replace_all))
    except ToolError as error:
        if "[secret " not in args.old_string:
            raise
        raise rephrase(error, lambda text: f"{text}\n{MASKED}") from error
    if uniform:
        changed = to_newline(changed, old.newline)
    return old, DecodedText(changed, old.bom, old.exact)


def filediff(path: Path, old: DecodedText, new: DecodedText) -> dict[str, Any]:
    """OpenCode's ``filediff``: patch and counts, and the texts themselves where they are small."""
    before, after = to_newline(old.text, "\n"), to_newline(new.text, "\n")
    text_diff = diff(str(path), before, after)
    out: dict[str, Any] = {"file": printable(str(path)), "patch": shorten(printable(trim_diff(text_diff.patch)))}
    if len(before) + len(after) <= WHOLE:
        out["before"], out["after"] = printable(old.text), printable(new.text)
    return {**out, "additions": text_diff.additions, "deletions": text_diff.deletions}
