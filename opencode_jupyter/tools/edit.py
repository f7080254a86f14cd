"""edit: replace text in a file, or make one. Reference: tools.md 6 (line ends as in OpenCode 1.18)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import Field

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..text.diff import diff, shorten, trim_diff
from ..text.encoding import Text, decode, encode, printable, to_newline
from ..text.replace import replace
from . import _paths, _writing
from ._builtin import builtin
from ._external import assert_external

WHOLE = 100_000
"""Characters of both texts together up to which the result carries them whole, beside the patch."""


class Parameters(Arguments):
    """What to replace by what, and where."""

    file_path: str = Field(description="The absolute path to the file to modify")
    old_string: str = Field(description="The text to replace")
    new_string: str = Field(description="The text to replace it with (must be different from oldString)")
    replace_all: bool | None = Field(None, description="Replace all occurrences of oldString (default false)")


@builtin("edit", Parameters, body="newString")
async def edit(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Replace text in a file."""
    if not args.file_path:
        raise ToolError("filePath is required")
    if args.old_string == args.new_string:
        raise ToolError("No changes to apply: oldString and newString are identical.")
    path = _paths.target(ctx, args.file_path)
    await assert_external(ctx, path)

    files = ctx.workspace.files
    async with files.lock(path):
        place = _paths.real(path)
        before = await anyio.to_thread.run_sync(_writing.load, path)
        if before is not None and args.old_string:
            await anyio.to_thread.run_sync(files.check, ctx.session_id, path)
        old, new = await anyio.to_thread.run_sync(_changed, path, before, args)
        filediff = await anyio.to_thread.run_sync(_filediff, path, old, new)
        await _writing.ask(ctx, path, filediff["patch"])
        after = encode(new.text, bom=new.bom)
        written = await _writing.put(ctx, path, place, before, after, "edit")
        if written != after:
            filediff = await anyio.to_thread.run_sync(_filediff, path, old, decode(written))

    metadata = {"diagnostics": {}, "diff": filediff["patch"], "filediff": filediff}
    ctx.metadata(metadata=metadata)
    return ToolResult(printable(ctx.workspace.relative(path)), "Edit applied successfully.", metadata)


def _changed(path: Path, before: bytes | None, args: Parameters) -> tuple[Text, Text]:
    """The file's text before and after.

    Raises:
        ToolError: it can't be edited so.
    """
    if not args.old_string:
        if before is not None:
            raise ToolError(
                "oldString cannot be empty when editing an existing file. Provide the exact text to replace, or use "
                "write for an intentional full-file replacement."
            )
        return Text(""), decode(encode(args.new_string))
    if before is None:
        raise ToolError(f"File {path} not found")
    old = decode(before)
    text = old.text
    # In a file that ends every line with CRLF the search runs over plain line ends, so that they all stay CRLF,
    # however the match was found. In a mixed file they stay as they are and the arguments are fitted to CRLF.
    uniform = text.count("\n") == text.count("\r\n")
    newline = "\n" if uniform else old.newline
    wanted, given = to_newline(args.old_string, newline), to_newline(args.new_string, newline)
    changed = replace(to_newline(text, "\n") if uniform else text, wanted, given, bool(args.replace_all))
    if uniform:
        changed = to_newline(changed, old.newline)
    return old, Text(changed, old.bom, old.exact)


def _filediff(path: Path, old: Text, new: Text) -> dict[str, Any]:
    """OpenCode's ``filediff``: patch and counts, and the texts themselves where they are small."""
    before, after = to_newline(old.text, "\n"), to_newline(new.text, "\n")
    made = diff(str(path), before, after)
    out: dict[str, Any] = {"file": printable(str(path)), "patch": shorten(printable(trim_diff(made.patch)))}
    if len(before) + len(after) <= WHOLE:
        out["before"], out["after"] = printable(old.text), printable(new.text)
    return {**out, "additions": made.additions, "deletions": made.deletions}
