"""edit: replace text in a file, or make one. See docs/opencode/tools.md 6 (line ends as in OpenCode 1.18)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..text.replace import SameTextError
from . import _paths
from ._edit_file import Made, changed, edit_file
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
        raise _paths.missing_argument("filePath", "the file to change")
    if args.old_string == args.new_string:
        raise SameTextError

    def make(path: Path, before: bytes | None) -> Made:
        return *changed(path, before, args), {}

    return await edit_file(ctx, args.file_path, "edit", args, make)
