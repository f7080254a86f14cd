"""A notebook as cells: what of a file is kept in memory, whether it is valid, and which cell an argument means."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ...core.errors import ToolError
from ...text.encoding import decode
from .notebook_json import NotebookSource

CellType = Literal["code", "markdown", "raw"]
FORMAT = 4
"""The format whose cells are read and changed; older ones are brought up to it in memory."""
IDS_SINCE = 5
"""Minor version of format 4 from which on cells have ids."""


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
            join_lines(cell.get("source", "")),
            count if isinstance(count, int) else None,
            len(outputs) if isinstance(outputs, list) else 0,
            metadata if isinstance(metadata, dict) else {},
        )

    @property
    def name(self) -> str:
        """Its name in messages: ``cell 3 (id ab12)``."""
        return f"cell {self.index} (id {self.id})" if self.id else f"cell {self.index}"

    @property
    def first_line(self) -> str:
        """The first line that says something, at most 80 characters."""
        line = next((line.strip() for line in self.source.splitlines() if line.strip()), "(empty)")
        return line if len(line) <= 80 else line[:79] + "…"


@dataclass(slots=True)
class NotebookFile:
    """A notebook file.

    Attributes:
        source: its text; None if it is of an older format and was brought up in memory.
        head: the notebook without its cells.
        raw: its cells as JSON.
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
        """The outputs of a cell."""
        outputs = self.raw[index].get("outputs")
        return [output for output in outputs if isinstance(output, dict)] if isinstance(outputs, list) else []


def parse(data: bytes, path: str) -> NotebookFile:
    """The notebook in `data`.

    Args:
        data: the file's bytes.
        path: for errors.

    Raises:
        ToolError: it is no notebook, or of a format that is not known.
    """
    text = decode(data)
    del data  # a large file need not be in memory twice
    if not text.exact:
        raise ToolError(f"{path} is not a notebook: it is not UTF-8 text.")
    try:
        return _parse(text.text)
    except ToolError as error:
        raise ToolError(f"{path} can't be used as a notebook: {error}.") from error


def _parse(text: str) -> NotebookFile:
    source = NotebookSource(text)
    major = source.head.get("nbformat")
    if type(major) is not int:
        raise ToolError("it is not a notebook: it has no nbformat number")
    if major > FORMAT:
        raise ToolError(f"its nbformat is {major}, which is newer than what is known here ({FORMAT})")
    if major < FORMAT:
        return _upgraded(text, source.head)
    if not source.has_cells:
        raise ToolError("it is not a notebook: it has no list of cells")
    if not all(isinstance(cell, dict) for cell in source.cells):
        raise ToolError("it is not a notebook: not every cell is an object")
    version = f"{major}.{source.head.get('nbformat_minor', 0)}"
    return NotebookFile(source, source.head, source.cells, version, problem(source.head, source.cells))


def _upgraded(text: str, head: dict[str, Any]) -> NotebookFile:
    """A notebook of format 1 to 3 as one of format 4."""
    import nbformat

    version = f"{head.get('nbformat')}.{head.get('nbformat_minor', 0)}"
    try:
        upgraded = json.loads(json.dumps(nbformat.reads(text, as_version=FORMAT)))  # type: ignore[no-untyped-call]
        cells = upgraded.pop("cells")
    except Exception as error:  # its converters raise anything on what is no notebook
        raise ToolError(f"it says it has nbformat {version}, but can't be read as that: {error}") from error
    return NotebookFile(None, upgraded, cells, version, problem(upgraded, cells))


def join_lines(text: Any) -> str:
    """A text as notebooks have it: a string, or a list of its lines."""
    if isinstance(text, list):
        return "".join(line for line in text if isinstance(line, str))
    return text if isinstance(text, str) else ""


def find_cell(cells: Sequence[Cell], argument: str | int) -> int:
    """The index of the cell that an argument means: an id, or an index from 0 (below 0: from the end).

    Raises:
        ToolError: there is none, or several have the id.
    """
    by_id = [cell.index for cell in cells if cell.id and cell.id == str(argument)]
    index = _number(argument)
    if by_id and (isinstance(argument, str) or index is None or not -len(cells) <= index < len(cells)):
        if len(by_id) > 1:
            places = ", ".join(map(str, by_id))
            raise ToolError(
                f"The id {argument} belongs to several cells ({places}); use the index of the one you mean."
            )
        return by_id[0]
    if index is not None and -len(cells) <= index < len(cells):
        return index % len(cells)
    count = len(cells)
    hint = "The notebook has no cells." if not count else f"It has {count} (0 to {count - 1})." if count > 1 else ""
    hint = hint or "It has one, cell 0."
    raise ToolError(
        f"There is no cell {argument!r}. {hint} Read the notebook with notebook_read to see indexes and ids."
    )


def _number(argument: str | int) -> int | None:
    if isinstance(argument, int):
        return argument
    try:
        return int(argument.strip()) if len(argument) < 10 else None
    except ValueError:
        return None


WORDS = 300
"""Characters of what is said of a notebook that is not valid."""


def problem(head: dict[str, Any], cells: Sequence[dict[str, Any]]) -> str:
    """The reason why a notebook of format 4 is not valid, in one line; empty if it is.

    nbformat imports jsonschema, which in an environment with a Jupyter server takes two seconds. Its schemas are files,
    and fastjsonschema, which nbformat depends on, checks them as fast. Only to say what is wrong nbformat is asked.
    """
    notebook = {**head, "cells": list(cells)}
    minor = head.get("nbformat_minor", 0)
    try:
        _validator(minor if isinstance(minor, int) else -1)(notebook)
    except Exception:  # not valid, or nothing that the schema's own code expects
        return _explain(notebook)
    ids = [cell["id"] for cell in cells if "id" in cell]
    double = next((id for id in ids if ids.count(id) > 1), None) if len(set(ids)) != len(ids) else None
    return f"several cells have the id {double}" if double else ""


@cache
def _validator(minor: int) -> Callable[[Any], Any]:
    import fastjsonschema

    spec = find_spec("nbformat")
    if spec is None or spec.origin is None:
        raise ToolError("nbformat is not installed: pip install nbformat")
    folder = Path(spec.origin).parent / "v4"
    exact = folder / f"nbformat.v4.{minor}.schema.json"
    schema = json.loads((exact if exact.exists() else folder / "nbformat.v4.schema.json").read_bytes())
    if not exact.exists():  # a minor version to come may have more than is known here
        schema = _tolerant(schema)
    validate: Callable[[Any], Any] = fastjsonschema.compile(schema)
    return validate


def _tolerant(schema: Any) -> Any:
    """A schema that lets other properties pass."""
    if isinstance(schema, dict):
        return {k: True if k == "additionalProperties" and v is False else _tolerant(v) for k, v in schema.items()}
    return [_tolerant(item) for item in schema] if isinstance(schema, list) else schema


def _explain(notebook: dict[str, Any]) -> str:
    import nbformat.validator

    try:
        # not `validate`, which in older releases changes what it is given
        error = next(iter(nbformat.validator.iter_validate(notebook)), None)  # type: ignore[no-untyped-call]
    except Exception as unexpected:  # a version or metadata of a kind its own code does not expect
        error = unexpected
    line = " ".join(str(error or "").partition("\n\n")[0].split())
    return line if len(line) <= WORDS else line[: WORDS - 1] + "…"
