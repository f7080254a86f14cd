"""write: make or overwrite a file. See docs/opencode/tools.md 8."""

from __future__ import annotations

from typing import Annotated

import anyio.to_thread
from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..text.diff import Diff, diff, trim_diff
from ..text.encoding import decode, encode, printable
from . import _file_edits, _path_checks
from ._file_edits import diagnostics_after
from ._path_checks import assert_external
from .builtin import builtin


class Parameters(Arguments):
    """What to write where."""

    content: str = Field(description="The content to write to the file")
    file_path: Annotated[str, ForPerson("The file to write")] = Field(
        description="The absolute path to the file to write (must be absolute, not relative)"
    )


@builtin(
    "write",
    Parameters,
    group="files",
    body="content",
    effect="writes",
    permission="edit",
    example="%tool write notes.txt 'a first line'",
    card=CardSpec(path="file"),
)
async def write(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Create or overwrite a file."""
    if not args.file_path:
        raise _path_checks.missing_argument("filePath", "the file to write")
    path = _path_checks.resolve_file(ctx, args.file_path)
    started = await _file_edits.snapshot_at_start(ctx, path)
    await assert_external(ctx, path)

    async with ctx.hold(path):
        real = _path_checks.real_path(path)
        before = await anyio.to_thread.run_sync(_file_edits.read_content, path)
        old = decode(before or b"")
        after = encode(args.content, bom=old.bom)
        if before is not None and after != before:  # what the file holds already can be lost by nobody
            await anyio.to_thread.run_sync(_file_edits.check_unchanged, ctx, path, started)
        await anyio.to_thread.run_sync(_file_edits.check_notebook, path, before, after)
        changed: Diff = await anyio.to_thread.run_sync(diff, str(path), old.text, args.content)
        patch = trim_diff(changed.patch)
        await _file_edits.request_edit(ctx, path, patch)
        await _file_edits.write_file(ctx, path, real, before, after, "write")

    title = printable(ctx.workspace.relative(path))
    diagnostics = await diagnostics_after(ctx, [path])
    output = "Wrote file successfully." + diagnostics.this_file(path) + diagnostics.other_files(path)
    metadata = {"diagnostics": diagnostics.metadata, "filepath": printable(str(path)), "exists": before is not None}
    return ToolResult(title, output, metadata)
