"""One change of a notebook: which cell, what it becomes, the diff a person sees; and made in a file's text."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...core.errors import ToolError, rephrase
from ...text.diff import diff
from ...text.encoding import printable, to_newline
from ...text.replace import SameTextError
from ...text.replace import replace as replace_text
from .cells import Cell, CellType, NotebookFile, find_cell

Operation = Literal["replace", "insert", "delete", "move"]
AROUND = 3
"""Cells listed before and after the changed one."""


@dataclass(frozen=True, slots=True)
class CellEdit:
    """The requested edit of a cell, as the arguments have it."""

    operation: Operation
    cell: str | int | None = None
    index: int | None = None
    new_source: str | None = None
    cell_type: CellType | None = None
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class CellChange:
    """A change, worked out against the cells as they are.

    Attributes:
        operation: what is done.
        before: the cell as it is; None for a new one.
        after: the cell as it will be; None for one that is deleted.
        cells: all cells as they will be.
        follows: the cell before the one that is placed (insert, move); None at the start.
        patch: what a person sees.
        additions: lines of source added.
        deletions: lines of source removed.
    """

    operation: Operation
    before: Cell | None
    after: Cell | None
    cells: list[Cell]
    follows: Cell | None
    patch: str
    additions: int
    deletions: int

    @property
    def cell(self) -> Cell:
        """The cell that is changed, as it will be; as it was, if it is deleted."""
        cell = self.after or self.before
        assert cell is not None
        return cell


def plan(cells: Sequence[Cell], edit: CellEdit, *, with_ids: bool) -> CellChange:
    """Work a change out.

    Args:
        cells: as they are.
        edit: what is to be done.
        with_ids: the notebook's format has ids of cells.

    Raises:
        ToolError: it can't be done, or changes nothing.
    """
    if edit.operation == "insert":
        return _insert(cells, edit, with_ids)
    if edit.cell is None:
        raise ToolError(f"cell is required to {edit.operation} a cell: its id or its index.")
    before = cells[find_cell(cells, edit.cell)]
    if edit.operation == "delete":
        _check_metadata(before, "deletable", "deleted")
        after = None
        others = _numbered(cell for cell in cells if cell is not before)
        return _cell_change("delete", before, after, others, None, cells)
    if edit.operation == "move":
        return _move(cells, before, edit)
    return _replace(cells, before, edit)


def _replace(cells: Sequence[Cell], before: Cell, edit: CellEdit) -> CellChange:
    _check_metadata(before, "editable", "edited")
    source = before.source
    if edit.old_string is not None or edit.new_string is not None:
        if edit.new_source is not None:
            raise ToolError("Give newSource (the whole cell) or oldString and newString (a part of it), not both.")
        if not edit.old_string or edit.new_string is None:
            raise ToolError("To replace a part of a cell give both oldString, which is not empty, and newString.")
        old, new = _line_ends(edit.old_string, source), _line_ends(edit.new_string, source)
        if old == new:
            raise SameTextError
        try:
            source = replace_text(source, old, new, edit.replace_all)
        except ToolError as error:
            raise rephrase(error, lambda text: f"In {before.name}: {text}") from error
    elif edit.new_source is not None:
        source = _line_ends(edit.new_source, source)
    elif edit.cell_type is None:
        raise ToolError("newSource is required to replace a cell (or oldString and newString, or cellType).")
    kind = edit.cell_type or before.type
    if source == before.source and kind == before.type:
        raise ToolError(f"No changes to apply: {before.name} is like this already.")
    after = replace(before, source=source, type=kind)
    if kind != before.type:
        after = replace(after, execution_count=None, outputs=0)
    return _cell_change("replace", before, after, [after if cell is before else cell for cell in cells], None, cells)


def _insert(cells: Sequence[Cell], edit: CellEdit, with_ids: bool) -> CellChange:
    if edit.new_source is None:
        raise ToolError("newSource is required to insert a cell; it may be empty.")
    if edit.cell is not None and edit.index is not None:
        raise ToolError("Give cell (the new one goes after it) or index (the new one's position), not both.")
    after = find_cell(cells, edit.cell) + 1 if edit.cell is not None else len(cells)
    at = _place(edit.index, len(cells), after)
    cell = Cell(at, new_id(cells) if with_ids else "", edit.cell_type or "code", _line_ends(edit.new_source, ""))
    placed = _numbered([*cells[:at], cell, *cells[at:]])
    return _cell_change("insert", None, cell, placed, cells[at - 1] if at else None, cells)


def _move(cells: Sequence[Cell], before: Cell, edit: CellEdit) -> CellChange:
    if edit.index is None:
        raise ToolError("index is required to move a cell: its new position, from 0 (-1: at the end).")
    at = _place(edit.index, len(cells) - 1, None)
    if at == before.index:
        raise ToolError(f"No changes to apply: {before.name} is already there.")
    others = [cell for cell in cells if cell is not before]
    after = _numbered([*others[:at], before, *others[at:]])
    return _cell_change("move", before, after[at], after, others[at - 1] if at else None, cells)


def _place(index: int | None, last: int, default: int | None) -> int:
    """The index that a cell gets; below 0 counts from the end."""
    if index is None:
        assert default is not None
        return default
    at = index + last + 1 if index < 0 else index
    if not 0 <= at <= last:
        raise ToolError(f"index {index} is out of range: a cell can go to 0 to {last}, or to -1, the end.")
    return at


def _check_metadata(cell: Cell, key: str, done: str) -> None:
    if cell.metadata.get(key) is False:
        raise ToolError(f"{cell.name} can't be {done}: its metadata says {key}=false, which its author set on purpose.")


def _line_ends(text: str, source: str) -> str:
    """Cells have LF; one that has CRLF already keeps it."""
    return text if "\r\n" in source else to_newline(text, "\n")


def _numbered(cells: Iterable[Cell]) -> list[Cell]:
    return [cell if cell.index == index else replace(cell, index=index) for index, cell in enumerate(cells)]


def new_id(cells: Sequence[Cell]) -> str:
    """An id that no cell has, of the form that nbformat makes."""
    used = {cell.id for cell in cells}
    while (id := uuid.uuid4().hex[:8]) in used:
        pass
    return id


# ---------------------------------------------------------------------- what a person sees


def _cell_change(
    operation: Operation,
    before: Cell | None,
    after: Cell | None,
    cells: list[Cell],
    follows: Cell | None,
    old: Sequence[Cell],
) -> CellChange:
    heading = _heading(operation, before, after)
    sources = diff(_label(before, after), _text(before), _text(after))
    moved = operation == "move"
    parts = [heading]
    if moved or not sources.additions + sources.deletions:  # the order, the type or an empty cell: a line for each cell
        new = after if before is None else None
        parts.append(diff("cells", _outline(old), _outline(cells, new)).patch)
    else:
        parts.append(sources.patch)
    return CellChange(
        operation,
        before,
        after,
        cells,
        follows,
        printable("".join(parts)),
        0 if moved else sources.additions,
        0 if moved else sources.deletions,
    )


def _heading(operation: Operation, before: Cell | None, after: Cell | None) -> str:
    """The first line of the diff: in which cell, and what. It must not look like a diff's own header."""
    cell = before or after
    assert cell is not None
    identity = f", id {cell.id}" if cell.id and operation != "insert" else ""
    kind = cell.type
    if before and after and before.type != after.type:
        kind = f"{before.type} → {after.type}"
    action: str = operation
    if operation == "move" and after is not None:
        action = f"move to {after.index}"
    if before and before.outputs and (after is None or after.type != "code"):
        action += f"; its {before.outputs} output{'s' if before.outputs > 1 else ''} will be removed"
    return f"Cell {cell.index} ({kind}{identity}): {action}\n"


def _label(before: Cell | None, after: Cell | None) -> str:
    cell = before or after
    assert cell is not None
    return f"cell {cell.index}" + (f" {cell.id}" if cell.id and before else "")


def _text(cell: Cell | None) -> str:
    """A source as lines, so that a last line without its end is no difference of its own."""
    if cell is None or not cell.source:
        return ""
    return cell.source + "\n"


def _outline(cells: Sequence[Cell], new: Cell | None = None) -> str:
    """A line for each cell; the id that was just made up for a new one is left out."""
    return "".join(
        f"[{cell.type}]{f' {cell.id}' if cell.id and cell is not new else ''} {cell.first_line}\n" for cell in cells
    )


def list_around(change: CellChange) -> str:
    """The cells around the changed one, a line each."""
    at = change.cell.index
    lines = []
    for cell in change.cells[max(0, at - AROUND) : at + AROUND + 1]:
        mark = ">" if change.after is not None and cell.index == at else " "
        identity = f" id={cell.id}" if cell.id else ""
        lines.append(f"{mark} [{cell.index}] {cell.type}{identity}: {cell.first_line}")
    if at - AROUND > 0:
        lines.insert(0, f"  … {at - AROUND} before")
    rest = len(change.cells) - (at + AROUND + 1)
    if rest > 0:
        lines.append(f"  … {rest} after")
    return "\n".join(lines) if change.cells else "  (no cells left)"


# ---------------------------------------------------------------------- made in a file


def changed_text(change: CellChange, file: NotebookFile) -> str:
    """The text of `file` with the change made."""
    source = file.source
    assert source is not None
    before, after = change.before, change.after
    if after is None:
        assert before is not None
        return source.delete_cell(before.index)
    if before is None:
        return source.insert_cell(after.index, _json(after))
    if change.operation == "move":
        return source.move_cell(before.index, after.index)
    if after.type == before.type:
        return source.with_source(before.index, after.source)
    return source.with_cell(before.index, _convert_type(source.cells[before.index], after))


def _json(cell: Cell) -> dict[str, Any]:
    """A new cell, its keys in nbformat's order."""
    out: dict[str, Any] = {"cell_type": cell.type}
    if cell.type == "code":
        out["execution_count"] = None
    if cell.id:
        out["id"] = cell.id
    out["metadata"] = {}
    if cell.type == "code":
        out["outputs"] = []
    out["source"] = cell.source
    return out


def _convert_type(raw: dict[str, Any], cell: Cell) -> dict[str, Any]:
    """A cell as one of another type: what only its old type has goes, what the new one needs comes."""
    as_list = isinstance(raw.get("source"), list)
    source = cell.source.splitlines(keepends=True) if as_list else cell.source
    out = {**raw, "cell_type": cell.type, "source": source}
    if cell.type == "code":
        out.pop("attachments", None)
        out = {**out, "execution_count": None, "outputs": []}
    else:
        out.pop("outputs", None)
        out.pop("execution_count", None)
    alphabetical = list(raw) == sorted(raw)
    return {key: out[key] for key in sorted(out)} if alphabetical else out
