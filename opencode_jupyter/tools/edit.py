"""edit: replace text in a file, or make one. Reference: tools.md 6 (line ends as in OpenCode 1.18)."""

from __future__ import annotations

import anyio.to_thread
from pydantic import Field

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..text.encoding import decode, encode, printable
from . import _paths, _replacing, _writing
from ._builtin import builtin
from ._diagnostics import diagnostics_after
from ._external import assert_external


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
        old, new = await anyio.to_thread.run_sync(_replacing.changed, path, before, args)
        filediff = await anyio.to_thread.run_sync(_replacing.filediff, path, old, new)
        await _writing.ask(ctx, path, filediff["patch"])
        after = encode(new.text, bom=new.bom)
        written = await _writing.put(ctx, path, place, before, after, "edit")
        if written != after:
            filediff = await anyio.to_thread.run_sync(_replacing.filediff, path, old, decode(written))

    metadata = {"diagnostics": {}, "diff": filediff["patch"], "filediff": filediff}
    ctx.metadata(metadata=metadata)
    found = await diagnostics_after(ctx, [path])
    output = "Edit applied successfully." + found.this_file(path)
    return ToolResult(printable(ctx.workspace.relative(path)), output, {**metadata, "diagnostics": found.metadata})
