"""notebook_read: an .ipynb as cells with trimmed outputs; the open document where it is open in JupyterLab."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from ..core.call_state import ToolPart
from ..core.card_spec import CardSpec
from ..core.context import ToolContext
from ..core.errors import ToolError
from ..core.file_tracker import Snapshot
from ..core.result import Attachment, ToolResult
from ..core.schema import Arguments, ForPerson
from ..core.threads import run_in_thread
from ..text.encoding import printable
from . import _path_checks
from ._path_checks import assert_external
from .builtin import Number, builtin
from .notebook.cells import Cell, NotebookFile, find_cell, parse, problem
from .notebook.open_documents import Notebooks, OpenContent, OpenDocument
from .notebook.outputs import PICTURES, Detail, RenderedOutputs, render_outputs

LIMIT = 100
"""Cells when no limit is given."""
PREVIEW = 500
"""Characters of a source in a record."""
LAID_OUT = 200
"""Cells whose lines a card receives."""
MAX_BYTES = 1 << 30
"""A larger file is not read: its text is held in memory, and no front end opens it."""


class Parameters(Arguments):
    """Which cells of which notebook."""

    file_path: Annotated[str, ForPerson("The .ipynb file to read")] = Field(
        description="The absolute path to the .ipynb file"
    )
    cell: str | int | None = Field(None, description="Only this cell: its id, or its index counted from 0")
    offset: Number | None = Field(None, description="The index of the first cell to read (counted from 0)")
    limit: Number | None = Field(None, description="The maximum number of cells to read (defaults to 100)")
    outputs: Detail = Field("short", description='How much of the outputs: "none", "short" (default) or "full"')


@dataclass(slots=True)
class _Notebook:
    """A notebook, wherever it was read."""

    head: dict[str, Any]
    cells: list[Cell]
    outputs: Callable[[int], list[dict[str, Any]]]
    format: str
    notes: list[str] = field(default_factory=list)
    snapshot: Snapshot | None = None


def label(arguments: dict[str, Any], part: ToolPart) -> str:
    """The notebook, and which of its cells."""
    title = getattr(part.state, "title", None)
    names = ("filePath", "file_path", "path", "notebook")
    path = next((arguments[name] for name in names if isinstance(arguments.get(name), str)), "")
    return str(title or (os.path.basename(path.rstrip("/")) if os.path.isabs(path) else path))


@builtin(
    "notebook_read",
    Parameters,
    group="notebook",
    effect="reads",
    permission="read",
    example="%tool notebook_read analysis.ipynb",
    card=CardSpec(path="file", body="cells", label=label),
)
async def notebook_read(args: Parameters, ctx: ToolContext) -> ToolResult:
    """Read a notebook as cells."""
    if not args.file_path:
        raise _path_checks.missing_argument("filePath", "the notebook to read")
    if args.offset is not None and args.offset < 0:
        raise ToolError("offset must be 0 or more: it is the index of a cell, counted from 0")
    if args.limit is not None and args.limit < 1:
        raise ToolError("limit must be greater than or equal to 1")
    if args.cell is not None and (args.offset is not None or args.limit is not None):
        raise ToolError("Give cell (one cell) or offset and limit (several), not both.")
    path = _path_checks.resolve_file(ctx, args.file_path)
    real = _path_checks.real_path(path)
    await assert_external(ctx, path)
    await ctx.ask("read", _path_checks.rule_patterns(ctx, path), ["*"], {})
    ctx.proceed()

    notebooks = ctx.workspace.service(Notebooks)
    documents = [document for document in await notebooks.find(path, quick=True) if not document.text]
    if documents:
        notebook = await _open(notebooks, documents, args)
        notebooks.note_cells(ctx.session_id, path, notebook.cells)
    else:
        notebook = await run_in_thread(_file, path, real)
        notebooks.forget(ctx.session_id, path)
    if notebook.snapshot is not None:
        ctx.workspace.files.read(ctx.session_id, path, notebook.snapshot)
    result: ToolResult = await run_in_thread(_result, notebook, args, path)
    result.title = printable(ctx.workspace.relative(path))
    if args.cell is not None:
        result.title += f" cell {result.metadata['cells'][0]}"
    return result


def _file(path: Path, real: Path) -> _Notebook:
    """The notebook as its file has it."""
    status = _path_checks.file_status(path)
    if status is None:
        raise _path_checks.not_found_error(path)
    _path_checks.check_regular(path, status)
    if status.st_size > MAX_BYTES:
        raise ToolError(f"{path} has {status.st_size >> 20} MiB; at most {MAX_BYTES >> 20} MiB are read as a notebook.")
    try:
        snapshot = Snapshot.of(real)
        with open(_path_checks.open_regular(path, real), "rb") as file:
            parsed = parse(file.read(status.st_size + 1), str(path))  # a file that grows meanwhile is not JSON so far
    except OSError as error:
        raise ToolError(_path_checks.explain_error(error, path)) from error
    return _Notebook(parsed.head, parsed.cells, parsed.outputs, parsed.format, _notes(parsed), snapshot)


def _notes(file: NotebookFile) -> list[str]:
    notes = []
    if file.source is None:
        notes.append(f"nbformat {file.format}, shown as format 4; the file is unchanged")
    if file.problem:
        notes.append(f"not valid by nbformat: {file.problem}")
    return notes


async def _open(notebooks: Notebooks, documents: Sequence[OpenDocument], args: Parameters) -> _Notebook:
    """The notebook as it is open; of several windows the one with unsaved changes."""
    assert notebooks.front_end is not None
    document = next((other for other in documents if other.dirty), documents[0])
    first, count = args.offset or 0, args.limit or LIMIT
    if args.outputs == "none":
        count = 0
    content: OpenContent = await notebooks.front_end.read(document, first, count)
    cells = [Cell.of(index, cell) for index, cell in enumerate(content.cells)]
    if args.cell is not None and count:  # which one it is only the document knows
        index = find_cell(cells, args.cell)
        content = await notebooks.front_end.read(document, index, 1)
        cells = [Cell.of(number, cell) for number, cell in enumerate(content.cells)]
    unsaved = "with unsaved changes" if content.dirty else "all saved"
    notes = [f"as open in JupyterLab, {unsaved}"]
    if len(documents) > 1 and not document.shared:
        notes.append(f"open in {len(documents)} windows that do not share one document; this is one of them")
    raw = content.cells
    version = f"{content.head.get('nbformat', 4)}.{content.head.get('nbformat_minor', 5)}"
    if fault := await anyio.to_thread.run_sync(problem, content.head, content.cells):
        notes.append(f"not valid by nbformat: {fault}")

    def outputs(index: int) -> list[dict[str, Any]]:
        return [output for output in raw[index].get("outputs") or () if isinstance(output, dict)]

    return _Notebook(content.head, cells, outputs, version, notes)


def _result(notebook: _Notebook, args: Parameters, path: Path) -> ToolResult:
    """The cells in words."""
    cells = notebook.cells
    total = len(cells)
    if args.cell is not None:
        first = find_cell(cells, args.cell)
        last = first + 1
    else:
        first, limit = args.offset or 0, args.limit or LIMIT
        last = min(total, first + limit)
        if first >= total and first > 0:
            raise ToolError(f"offset {first} is out of range: the notebook has {total} cells, counted from 0.")
    attachments: list[Attachment] = []
    pieces, records, cut = [], [], False
    # A look at a whole notebook must not send dozens of pictures to a model that did not ask for them.
    room = PICTURES if args.outputs == "full" or args.cell is not None else 0
    for cell in cells[first:last]:
        outputs = RenderedOutputs()
        if cell.outputs and args.outputs != "none":
            outputs = render_outputs(
                notebook.outputs(cell.index), args.outputs, f"cell-{cell.index}", room - len(attachments)
            )
        attachments += outputs.attachments
        cut = cut or outputs.cut
        pieces.append(_cell(cell, outputs))
        records.append(_record(cell, outputs))
    body = "\n".join(pieces)
    notes = "".join(f"\n({note})" for note in notebook.notes)
    head = f"<path>{path}</path>\n<type>notebook</type>\n{_head(notebook)}{notes}\n<cells>\n"
    output = f"{head}{body}\n\n{_footer(first, last, total, args, cut)}\n</cells>"
    metadata = {
        "preview": "\n".join(pieces[0].split("\n")[:20]) if pieces else "",
        "cells": [first, last],
        "total": total,
        "more": last < total and args.cell is None,
        "open": any(note.startswith("as open") for note in notebook.notes),
        "notes": notebook.notes,
        "language": _language(notebook),
        "layout": _layout(cells[first:last], pieces, head.count("\n")),
    }
    return ToolResult("", printable(output), metadata, attachments, records)


def _metadata(notebook: _Notebook) -> dict[str, Any]:
    metadata = notebook.head.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _language(notebook: _Notebook) -> str:
    language = _metadata(notebook).get("language_info")
    name = language.get("name") if isinstance(language, dict) else ""
    return name if isinstance(name, str) else ""


def _layout(cells: Sequence[Cell], pieces: Sequence[str], line: int) -> list[dict[str, Any]]:
    """The position of each cell in the output's lines, from 0, for a card that draws them as cells.

    Args:
        cells: those that are shown.
        pieces: the text of each (`_cell`).
        line: that of the first piece.
    """
    out = []
    for cell, piece in zip(cells[:LAID_OUT], pieces, strict=False):
        source = cell.source.removesuffix("\n").count("\n") + 1 if cell.source else 0
        lines = piece.count("\n") + 1
        output_lines = max(0, lines - source - 4)  # the marks around the cell and around its outputs
        position: dict[str, Any] = {"line": line + 1, "source": source, "output": output_lines, "outputs": cell.outputs}
        if cell.id:
            position["id"] = printable(cell.id)
        if cell.execution_count is not None:
            position["executed"] = cell.execution_count
        out.append({"index": cell.index, "type": printable(cell.type), **position})
        line += lines
    return out


def _head(notebook: _Notebook) -> str:
    kernel = _metadata(notebook).get("kernelspec")
    facts = [f"nbformat {notebook.format}", f"{len(notebook.cells)} cell{'' if len(notebook.cells) == 1 else 's'}"]
    if language := _language(notebook):
        facts.append(f"language {language}")
    if isinstance(kernel, dict) and isinstance(kernel.get("name"), str):
        facts.append(f"kernel {kernel['name']}")
    return ", ".join(facts)


def _cell(cell: Cell, outputs: RenderedOutputs) -> str:
    identity = f' id="{cell.id}"' if cell.id else ""
    run = f' executed="{cell.execution_count}"' if cell.execution_count is not None else ""
    lines = [f'<cell index="{cell.index}"{identity} type="{cell.type}"{run}>']
    if cell.source:
        lines.append(cell.source.removesuffix("\n"))
    if outputs.text:
        lines += ["<outputs>", outputs.text, "</outputs>"]
    return "\n".join([*lines, "</cell>"])


def _record(cell: Cell, outputs: RenderedOutputs) -> dict[str, Any]:
    """One row of the result's table."""
    return {
        "index": cell.index,
        "id": printable(cell.id) or None,
        "type": printable(cell.type),
        "execution_count": cell.execution_count,
        "lines": len(cell.source.splitlines()),
        "source": printable(cell.source[:PREVIEW]),
        "outputs": cell.outputs,
        "output": printable(outputs.text[:PREVIEW]),
    }


def _footer(first: int, last: int, total: int, args: Parameters, cut: bool) -> str:
    if args.cell is not None:
        note = f"Cell {first} of {total}."
    elif last < total:
        note = f"Showing cells {first}-{last - 1} of {total}. Use offset={last} to continue."
    elif first:
        note = f"Showing cells {first}-{last - 1} of {total}, up to the end."
    else:
        note = f"End of notebook - total {total} cell{'' if total == 1 else 's'}."
    if cut:
        more = "outputs=full" if args.cell is not None else "cell=<index> outputs=full"
        note += f" Outputs are shortened; use {more} to see more." if args.outputs == "short" else ""
    return f"({note.strip()})"
