"""notebook_edit: replace, insert, delete or move a cell; in JupyterLab where the notebook is open, else in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field, model_validator

from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.result import ToolResult
from ..core.schema import Arguments, ForPerson
from ..text.diff import shorten
from ..text.encoding import decode, encode, printable
from . import _file_edits, _path_checks
from ._path_checks import assert_external
from .builtin import Number, builtin
from .notebook.cell_edits import CellChange, CellEdit, Operation, changed_text, list_around, plan
from .notebook.cells import FORMAT, Cell, CellType, NotebookFile, parse
from .notebook.open_documents import Notebooks, OpenDocument, OpenNotebooks
from .notebook_read import label

SYNONYMS = {"editMode": "operation", "cellId": "cell", "notebookPath": "filePath", "position": "index"}
"""Names that models know from other notebook tools."""
DONE = {"replace": "replaced", "insert": "inserted", "delete": "deleted", "move": "moved"}


class Parameters(Arguments):
    """Which cell of which notebook, and what becomes of it."""

    file_path: Annotated[str, ForPerson("The .ipynb file to change")] = Field(
        description="The absolute path to the .ipynb file"
    )
    new_source: str | None = Field(None, description="The whole new source of the cell (replace, insert)")
    operation: Operation = Field("replace", description="What to do with the cell (default replace)")
    cell: str | int | None = Field(
        None, description="The cell: its id, or its index counted from 0. For insert: the cell to insert after"
    )
    index: Number | None = Field(None, description="The cell's new position, from 0 (move, insert); -1 is the end")
    cell_type: CellType | None = Field(None, description="The type of a new cell, or a new type for a replaced one")
    old_string: str | None = Field(None, description="Instead of newSource: the text to replace within the cell")
    new_string: str | None = Field(None, description="Instead of newSource: the text to replace oldString with")
    replace_all: bool | None = Field(None, description="Replace all occurrences of oldString (default false)")

    @model_validator(mode="before")
    @classmethod
    def _synonyms(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        by_name = {**SYNONYMS, **{_snake(name): key for name, key in SYNONYMS.items()}}
        wire_names = {key for key in value if key not in by_name}
        return {by_name[k] if k in by_name and by_name[k] not in wire_names else k: v for k, v in value.items()}


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


@dataclass(slots=True)
class _Location:
    """The place of the change: an open document, or the file."""

    cells: list[Cell]
    with_ids: bool
    document: OpenDocument | None = None
    front_end: OpenNotebooks | None = None
    file: NotebookFile | None = None
    before: bytes | None = None


@builtin(
    "notebook_edit",
    Parameters,
    group="notebook",
    body="newSource",
    effect="writes",
    permission="edit",
    example="%tool notebook_edit analysis.ipynb cell=2 newSource='x = 1'",
    card=CardSpec(path="file", label=label),
)
async def notebook_edit(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Change one cell of a notebook."""
    if not args.file_path:
        raise _path_checks.missing_argument("filePath", "the notebook to change")
    path = _path_checks.resolve_file(ctx, args.file_path)
    await assert_external(ctx, path)
    edit = CellEdit(
        args.operation,
        args.cell,
        args.index,
        args.new_source,
        args.cell_type,
        args.old_string,
        args.new_string,
        bool(args.replace_all),
    )
    async with ctx.hold(path):
        real = _path_checks.real_path(path)
        location, change = await _plan(ctx, path, edit)
        await _file_edits.request_edit(ctx, path, change.patch)
        # While a person was asked, the notebook may have been opened or closed.
        approved = change
        if await _document(ctx, path) != location.document:
            location, change = await _plan(ctx, path, edit)
            if change.patch != approved.patch:
                raise ToolError(
                    f"Conflict: {path} was opened or closed in JupyterLab while the call waited for approval, and the "
                    "cell is another one there. Nothing was changed. Read it with notebook_read and try again."
                )
        if location.document is not None:
            cells, notes = await _change_document(ctx, path, location, change)
            change = _with_current_cells(change, cells)
        else:
            notes = await _change_file(ctx, path, real, location, change)
    return _result(ctx, path, change, location.document is not None, notes)


async def _document(ctx: ToolContext, path: Path) -> OpenDocument | None:
    """The open document to change; None if there is none.

    Raises:
        ToolError: there are several that do not share their content, or it is open as text with unsaved changes.
    """
    documents = await ctx.workspace.service(Notebooks).find(path)
    notebooks = [document for document in documents if not document.text]
    if len(notebooks) > 1 and not all(document.shared for document in notebooks):
        raise ToolError(
            f"Conflict: {path} is open in {len(notebooks)} windows that do not share one document, so a change in one "
            "would be lost when another one is saved. Nothing was changed. Close it in all but one, then try again."
        )
    if any(document.text and document.dirty for document in documents):
        raise ToolError(
            f"Conflict: {path} is open in JupyterLab's text editor with unsaved changes. Nothing was changed. "
            "Save or close it there, then try again."
        )
    # Dirty or not, it is the same document: people work in it while they are asked.
    return next((OpenDocument(d.id, d.page, d.via, shared=d.shared) for d in notebooks), None)


async def _plan(ctx: ToolContext, path: Path, edit: CellEdit) -> tuple[_Location, CellChange]:
    """Plan the change and find its place; an error if the session has not read what it changes."""
    notebooks = ctx.workspace.service(Notebooks)
    document = await _document(ctx, path)
    if document is None:
        location = await anyio.to_thread.run_sync(_load, ctx, path, edit)
        change = await anyio.to_thread.run_sync(partial(plan, location.cells, edit, with_ids=location.with_ids))
        return location, change
    assert notebooks.front_end is not None
    content = await notebooks.front_end.read(document)
    cells = [Cell.of(index, cell) for index, cell in enumerate(content.cells)]
    location = _Location(cells, True, document, notebooks.front_end)
    if not notebooks.has_seen(ctx.session_id, path) and ctx.workspace.files.get(ctx.session_id, path) is not None:
        # It was read as a file, before it was opened: what the file holds is what the session has seen.
        read = await anyio.to_thread.run_sync(_load, ctx, path, edit)
        notebooks.note_cells(ctx.session_id, path, _with_ids(read.cells, cells))
    change = await anyio.to_thread.run_sync(partial(plan, cells, edit, with_ids=True))
    cell = change.before or (change.follows if edit.cell is not None else None)
    by_index = cell is not None and str(edit.cell) != cell.id
    whole = change.operation in ("replace", "delete")
    if ctx.by != "user":  # a person sees the notebook
        notebooks.check(ctx.session_id, path, cell, by_index=by_index, content=whole)
    return location, change


def _with_ids(read: Sequence[Cell], opened: Sequence[Cell]) -> list[Cell]:
    """Cells of a file without ids, with those that the front end made for them when it opened it."""
    if any(cell.id for cell in read) or len(read) != len(opened):
        return list(read)
    return [Cell(cell.index, other.id, cell.type, cell.source) for cell, other in zip(read, opened, strict=True)]


def _load(ctx: ToolContext, path: Path, edit: CellEdit) -> _Location:
    """The notebook's file; an empty new notebook for a cell to be inserted where there is none."""
    before = _file_edits.read_content(path)
    if before is None:
        if edit.operation != "insert":
            raise _path_checks.not_found_error(path)
        if path.suffix.lower() != ".ipynb":
            raise ToolError(f"File not found: {path}. A new notebook is made only with the extension .ipynb.")
        file = parse(NEW, str(path))
        return _Location([], True, file=file)
    if ctx.by != "user":
        ctx.workspace.service(Notebooks).check_file(ctx.session_id, path)
    file = parse(before, str(path))
    if file.source is None:
        raise ToolError(
            f"{path} has nbformat {file.format}; only format {FORMAT} is changed. Bring it up first, for instance with "
            f"`jupyter nbconvert --to notebook --nbformat {FORMAT} --inplace`, or open and save it in JupyterLab."
        )
    return _Location(file.cells, file.has_ids, file=file, before=before)


async def _change_file(ctx: ToolContext, path: Path, real: Path, location: _Location, change: CellChange) -> list[str]:
    """Make the change in the file; gives what a reader must know."""
    file = location.file
    assert file is not None

    def build() -> bytes:
        text = changed_text(change, file)
        bom = location.before is not None and decode(location.before[:3]).bom
        after = encode(text, bom=bom)
        changed = parse(after, str(path))
        if changed.problem and not file.problem:
            raise ToolError(f"Nothing was changed: the notebook would not be valid any more ({changed.problem}).")
        return after

    after = await anyio.to_thread.run_sync(build)
    await _file_edits.write_file(ctx, path, real, location.before, after, "notebook_edit")
    notebooks = ctx.workspace.service(Notebooks)
    notebooks.forget(ctx.session_id, path)
    notes = []
    if file.problem:
        notes.append(f"The notebook was not valid before by nbformat and may still not be: {file.problem}")
    if notebooks.front_end is not None and notebooks.front_end.runs(real):
        notes.append(
            "This is the notebook of the running kernel, and its editor could not be reached: if it is open there, "
            "reload it from disk (saving it from the editor would undo this change)."
        )
    return notes


async def _change_document(
    ctx: ToolContext, path: Path, location: _Location, plan: CellChange
) -> tuple[list[dict[str, Any]], list[str]]:
    """Make the change in the open document; gives its cells, and what a reader must know."""
    assert location.front_end is not None
    assert location.document is not None
    before, after = plan.before, plan.after
    change: dict[str, Any] = {"operation": plan.operation}
    if before is not None:
        change["id"] = before.id
    if before is not None and plan.operation != "move":
        change["expect"] = {"type": before.type, "source": before.source}
    if plan.operation in ("insert", "move"):
        change["after"] = plan.follows.id if plan.follows is not None else None
    if after is not None and plan.operation in ("insert", "replace"):
        change |= {"type": after.type, "source": after.source}
        if before is None:
            change["id"] = after.id
    cells = await location.front_end.change(location.document, change)
    notebooks = ctx.workspace.service(Notebooks)
    now = [Cell.of(index, cell) for index, cell in enumerate(cells)]
    notebooks.changed(ctx.session_id, path, now, plan.cell.id)
    note = (
        "It is open in JupyterLab and was changed there: the change shows at once and is not saved to the file yet. "
        "Undo in the notebook takes it back."
    )
    return cells, [note]


def _with_current_cells(change: CellChange, cells: Sequence[dict[str, Any]]) -> CellChange:
    """The plan with the cells as the document has them now: a person may have added others meanwhile."""
    now = [Cell.of(index, cell) for index, cell in enumerate(cells)]
    identity = change.cell.id
    after = next((cell for cell in now if cell.id == identity), None) if change.after is not None else None
    return CellChange(
        change.operation, change.before, after, now, change.follows, change.patch, change.additions, change.deletions
    )


def _result(ctx: ToolContext, path: Path, change: CellChange, opened: bool, notes: list[str]) -> ToolResult:
    relative = printable(ctx.workspace.relative(path))
    cell = change.cell
    number = change.before.index if change.before is not None else cell.index
    title = f"{relative} cell {number} {DONE[change.operation]}"
    if change.operation == "move":
        title += f" to {cell.index}"
    sentences = [f"{title}."]
    if change.operation == "replace" and change.before is not None and cell.outputs:
        sentences.append(
            "It keeps the outputs of its last run, which might not match the new source until it is run again."
        )
    sentences += notes
    output = " ".join(sentences) + f"\n\n<cells>\n{list_around(change)}\n</cells>"
    filediff = {
        "file": printable(str(path)),
        "patch": shorten(change.patch),
        "additions": change.additions,
        "deletions": change.deletions,
    }
    metadata = {
        "diff": shorten(change.patch),
        "filediff": filediff,
        "filepath": printable(str(path)),
        "operation": change.operation,
        "cell": {"index": cell.index, "id": printable(cell.id), "type": cell.type},
        "open": opened,
    }
    ctx.metadata(metadata=metadata)
    row = {"index": cell.index, "id": printable(cell.id) or None, "type": cell.type, "operation": change.operation}
    return ToolResult(title, printable(output), metadata, records=[row])


NEW = b"""{
 "cells": [],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3 (ipykernel)",
   "language": "python",
   "name": "python3"
  },
  "language_info": {
   "name": "python"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"""
"""A notebook without cells, as JupyterLab would make it."""
