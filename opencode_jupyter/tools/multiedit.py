"""multiedit: several replacements in one file, all or none. See docs/opencode/tools.md 7."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError, rephrase
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..text.encoding import DecodedText, decode, encode
from . import _path_checks
from .builtin import builtin
from .edit import WHOLE, EditOutcome, apply_replacement, edit_file, filediff


class Edit(Arguments):
    """One replacement."""

    file_path: str | None = Field(None, description="Not used: all edits are made in the file of the call")
    old_string: str = Field(description="The text to replace")
    new_string: str = Field(description="The text to replace it with (must be different from oldString)")
    replace_all: bool | None = Field(None, description="Replace all occurrences of oldString (default false)")


class Parameters(Arguments):
    """What to replace by what, and where."""

    file_path: Annotated[str, ForPerson("The file to change")] = Field(
        description="The absolute path to the file to modify"
    )
    edits: list[Edit] = Field(description="The edits to make in the file, one after another")

    @field_validator("edits", mode="before")
    @classmethod
    def _from_json(cls, value: Any) -> Any:
        """A ``%%tool`` cell's body is text, and models send lists as text too."""
        if isinstance(value, str):
            try:
                return json.loads(value)
            except ValueError as error:
                raise ValueError(f"edits is not a list: it is invalid JSON ({error})") from error
        return value


@builtin(
    "multiedit",
    Parameters,
    group="files",
    body="edits",
    effect="writes",
    permission="edit",
    example='%tool multiedit notes.txt edits:=[{"oldString": "first", "newString": "second"}]',
    card=CardSpec(path="file"),
)
async def multiedit(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Make several edits to a file."""
    if not args.file_path:
        raise _path_checks.missing_argument("filePath", "the file to change")
    if not args.edits:
        raise ToolError("edits is empty. Give at least one edit with oldString and newString.")

    def make(path: Path, before: bytes | None) -> EditOutcome:
        old, new, results = _all(ctx, path, before, args.edits)
        return old, new, {"results": results}

    return await edit_file(ctx, args.file_path, "multiedit", args.edits[0], make)


def _all(
    ctx: ToolContext, path: Path, before: bytes | None, edits: list[Edit]
) -> tuple[DecodedText, DecodedText, list[dict[str, Any]]]:
    """The file's text before and after all edits, and what each edit alone has done.

    Raises:
        ToolError: an edit can't be made; it says which.
    """
    content = before
    first = new = decode(before or b"")
    results: list[dict[str, Any]] = []
    left = WHOLE
    for number, edit in enumerate(edits, 1):
        ctx.abort.raise_if_aborted()
        try:
            old, new = apply_replacement(path, content, edit)
        except ToolError as error:
            if len(edits) == 1:
                raise
            note = f" (Edit {number} of {len(edits)}; none of them is made.)"
            raise rephrase(error, lambda text, note=note: text + note) from error  # type: ignore[misc]
        content = encode(new.text, bom=new.bom)
        result: dict[str, Any] = {"diagnostics": {}}
        if left > 0:  # a diff of each of a thousand edits would take longer than the edits
            file_diff = filediff(path, old, new)
            left -= len(old.text) + len(new.text)
            result |= {"diff": file_diff["patch"], "filediff": file_diff}
        results.append(result)
    return first, new, results
