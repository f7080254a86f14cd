"""A notebook as cells: what of a file is kept in memory, whether it is valid, and which cell an argument means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.errors import ToolError
from ...text.encoding import decode
from .source import NotebookSource
from .validity import problem

CellType = Literal["code", "markdown", "raw"]
FORMAT = 4
"""The format whose cells are read and changed; older ones are brought up to it in memory."""
IDS_SINCE = 5
"""Minor version of format 4 from which on cells have ids."""
KEPT = 200
"""Characters kept of a text in an output that is only looked at for its form."""
KEPT_ITEMS = 50


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell, without its outputs.

    Attributes:
        index: its place, from 0.
        id: empty in files before format 4.5.
        type: ``code``, ``markdown``, ``raw``.
        source: its text.
        execution_count: of its last run; None for one that was not run.
        outputs: how many.
        metadata: its metadata.
    """

    index: int
    id: str
    type: str
    source: str
    execution_count: int | None = None
    outputs: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, index: int, cell: dict[str, Any]) -> Cell:
        """A cell of a notebook's JSON."""
        outputs, count, metadata = cell.get("outputs"), cell.get("execution_count"), cell.get("metadata")
        return cls(
            index,
            text_id if isinstance(text_id := cell.get("id"), str) else "",
            str(cell.get("cell_type", "")),
            joined(cell.get("source", "")),
            count if isinstance(count, int) else None,
            len(outputs) if isinstance(outputs, list) else 0,
            metadata if isinstance(metadata, dict) else {},
        )

    @property
    def name(self) -> str:
        """How it is called in messages: ``cell 3 (id ab12)``."""
        return f"cell {self.index} (id {self.id})" if self.id else f"cell {self.index}"

    @property
    def first_line(self) -> str:
        """The first line that says something, at most 80 characters."""
        line = next((line.strip() for line in self.source.splitlines() if line.strip()), "(empty)")
        return line if len(line) <= 80 else line[:79] + "…"


@dataclass(slots=True)
class NotebookFile:
    """A notebook file, its outputs cut to their form.

    Attributes:
        source: its text; None if it is of an older format and was brought up in memory.
        head: the notebook without its cells.
        raw: its cells as JSON, long texts of outputs cut; whole if `source` is None.
        format: as in the file, such as ``4.5``.
        problem: why it is not valid; empty if it is.
    """

    source: NotebookSource | None
    head: dict[str, Any]
    raw: list[dict[str, Any]]
    format: str
    problem: str = ""

    @property
    def cells(self) -> list[Cell]:
        """Its cells."""
        return [Cell.of(index, cell) for index, cell in enumerate(self.raw)]

    @property
    def has_ids(self) -> bool:
        """True if its cells must have ids."""
        return int(self.head.get("nbformat_minor") or 0) >= IDS_SINCE

    def outputs(self, index: int) -> list[dict[str, Any]]:
        """The outputs of a cell, whole."""
        cell = self.raw[index] if self.source is None else self.source.cell(index)
        found = cell.get("outputs")
        return [output for output in found if isinstance(output, dict)] if isinstance(found, list) else []


def parse(data: bytes, path: str) -> NotebookFile:
    """The notebook in `data`.

    Args:
        data: the file's bytes.
        path: for errors.

    Raises:
        ToolError: it is no notebook, or of a format that is not known.
    """
    text = decode(data)
    if not text.exact:
        raise ToolError(f"{path} is not a notebook: it is not UTF-8 text.")
    try:
        return _parse(text.text)
    except ToolError as error:
        raise ToolError(f"{path} can't be used as a notebook: {error}.") from error


def _parse(text: str) -> NotebookFile:
    source = NotebookSource(text, outline)
    major = source.head.get("nbformat")
    if type(major) is not int:
        raise ToolError("it is not a notebook: it has no nbformat number")
    if major > FORMAT:
        raise ToolError(f"its nbformat is {major}, which is newer than what is known here ({FORMAT})")
    if major < FORMAT:
        return _upgraded(text, source.head)
    if not source.has_cells:
        raise ToolError("it is not a notebook: it has no list of cells")
    if not all(isinstance(cell, dict) for cell in source.kept):
        raise ToolError("it is not a notebook: not every cell is an object")
    shown = f"{major}.{source.head.get('nbformat_minor', 0)}"
    return NotebookFile(source, source.head, source.kept, shown, problem(source.head, source.kept))


def _upgraded(text: str, head: dict[str, Any]) -> NotebookFile:
    """A notebook of format 1 to 3 as one of format 4."""
    import nbformat

    shown = f"{head.get('nbformat')}.{head.get('nbformat_minor', 0)}"
    try:
        made = json.loads(json.dumps(nbformat.reads(text, as_version=FORMAT)))  # type: ignore[no-untyped-call]
        cells = made.pop("cells")
    except Exception as error:  # its converters raise anything on what is no notebook
        raise ToolError(f"it says it has nbformat {shown}, but can't be read as that: {error}") from error
    return NotebookFile(None, made, cells, shown, problem(made, [outline(cell) for cell in cells]))


def outline(cell: Any) -> Any:
    """A cell with the long texts of its outputs and attachments cut: enough to see whether it is valid."""
    if not isinstance(cell, dict):
        return cell
    return {key: _cut(value) if key in ("outputs", "attachments") else value for key, value in cell.items()}


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:KEPT]
    if isinstance(value, list):
        # a list of lines may have millions; a list of outputs is kept, since it is counted
        items = value if value and isinstance(value[0], dict) else value[:KEPT_ITEMS]
        return [_cut(item) for item in items]
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return value


def joined(text: Any) -> str:
    """A text as notebooks have it: a string, or a list of its lines."""
    if isinstance(text, list):
        return "".join(line for line in text if isinstance(line, str))
    return text if isinstance(text, str) else ""


def find(cells: Sequence[Cell], wanted: str | int) -> int:
    """The index of the cell that an argument means: an id, or an index from 0 (below 0: from the end).

    Raises:
        ToolError: there is none, or several have the id.
    """
    by_id = [cell.index for cell in cells if cell.id and cell.id == str(wanted)]
    index = _number(wanted)
    if by_id and (isinstance(wanted, str) or index is None or not -len(cells) <= index < len(cells)):
        if len(by_id) > 1:
            places = ", ".join(map(str, by_id))
            raise ToolError(f"The id {wanted} belongs to several cells ({places}); use the index of the one you mean.")
        return by_id[0]
    if index is not None and -len(cells) <= index < len(cells):
        return index % len(cells)
    count = len(cells)
    there = "The notebook has no cells." if not count else f"It has {count} (0 to {count - 1})." if count > 1 else ""
    there = there or "It has one, cell 0."
    raise ToolError(
        f"There is no cell {wanted!r}. {there} Read the notebook with notebook_read to see indexes and ids."
    )


def _number(wanted: str | int) -> int | None:
    if isinstance(wanted, int):
        return wanted
    try:
        return int(wanted.strip()) if len(wanted) < 10 else None
    except ValueError:
        return None
