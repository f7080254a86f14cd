"""multiedit: several replacements in one file, all or none. Reference: tools.md 7."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.to_thread
from pydantic import Field, field_validator

from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments
from ..text.encoding import Text, decode, encode, printable
from . import _paths, _replacing, _writing
from ._builtin import builtin
from ._diagnostics import diagnostics_after
from ._external import assert_external


class Edit(Arguments):
    """One replacement."""

    file_path: str | None = Field(None, description="Not used: all edits are made in the file of the call")
    old_string: str = Field(description="The text to replace")
    new_string: str = Field(description="The text to replace it with (must be different from oldString)")
    replace_all: bool | None = Field(None, description="Replace all occurrences of oldString (default false)")


class Parameters(Arguments):
    """What to replace by what, and where."""

    file_path: str = Field(description="The absolute path to the file to modify")
    edits: list[Edit] = Field(description="The edits to make in the file, one after another")

    @field_validator("edits", mode="before")
    @classmethod
    def _from_json(cls, given: Any) -> Any:
        """A ``%%tool`` cell's body is text, and models send lists as text too."""
        if isinstance(given, str):
            try:
                return json.loads(given)
            except ValueError as error:
                raise ValueError(f"edits is no list: as JSON it is wrong ({error})") from error
        return given


@builtin("multiedit", Parameters, body="edits")
async def multiedit(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Make several replacements in one file."""
    if not args.file_path:
        raise ToolError("filePath is required")
    if not args.edits:
        raise ToolError("edits is empty. Give at least one edit with oldString and newString.")
    path = _paths.target(ctx, args.file_path)
    await assert_external(ctx, path)

    files = ctx.workspace.files
    async with files.lock(path):
        place = _paths.real(path)
        before = await anyio.to_thread.run_sync(_writing.load, path)
        if before is not None and args.edits[0].old_string:
            await anyio.to_thread.run_sync(files.check, ctx.session_id, path)
        old, new, results = await anyio.to_thread.run_sync(_all, ctx, path, before, args.edits)
        filediff = await anyio.to_thread.run_sync(_replacing.filediff, path, old, new)
        await _writing.ask(ctx, path, filediff["patch"])
        after = encode(new.text, bom=new.bom)
        written = await _writing.put(ctx, path, place, before, after, "multiedit")
        if written != after:
            filediff = await anyio.to_thread.run_sync(_replacing.filediff, path, old, decode(written))

    metadata = {"diff": filediff["patch"], "filediff": filediff, "diagnostics": {}, "results": results}
    ctx.metadata(metadata=metadata)
    found = await diagnostics_after(ctx, [path])
    output = "Edit applied successfully." + found.this_file(path)
    return ToolResult(printable(ctx.workspace.relative(path)), output, {**metadata, "diagnostics": found.metadata})


def _all(
    ctx: ToolContext, path: Path, before: bytes | None, edits: list[Edit]
) -> tuple[Text, Text, list[dict[str, Any]]]:
    """The file's text before and after all edits, and what each edit alone has done.

    Raises:
        ToolError: an edit can't be made; it says which.
    """
    content = before
    first = new = decode(before or b"")
    results: list[dict[str, Any]] = []
    left = _replacing.WHOLE
    for number, edit in enumerate(edits, 1):
        ctx.abort.raise_if_aborted()
        try:
            old, new = _replacing.changed(path, content, edit)
        except ToolError as error:
            if len(edits) == 1:
                raise
            raise ToolError(f"{error} (Edit {number} of {len(edits)}; none of them is made.)") from error
        content = encode(new.text, bom=new.bom)
        result: dict[str, Any] = {"diagnostics": {}}
        if left > 0:  # a diff of each of a thousand edits would take longer than the edits
            filediff = _replacing.filediff(path, old, new)
            left -= len(old.text) + len(new.text)
            result |= {"diff": filediff["patch"], "filediff": filediff}
        results.append(result)
    return first, new, results
