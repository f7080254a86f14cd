"""A notebook file's JSON text with the places of its cells, so that a change leaves every other byte as it was.

Parsing and writing the whole would change floats, escapes and layout all over the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...core.errors import ToolError

UNIT = " "
"""The indentation of nbformat and JupyterLab."""
_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_NOT_ASCII = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
"""An escape of a character that a writer of plain UTF-8 would not escape."""

Span = tuple[int, int]
"""Begin and end in the text."""


@dataclass(frozen=True, slots=True)
class Style:
    """The layout of a file's JSON.

    Attributes:
        unit: indentation of one level; None where all stands on one line.
        newline: LF or CRLF.
        colon: after a key.
        comma: between items on one line.
        ascii: other characters are escaped.
    """

    unit: str | None
    newline: str
    colon: str
    comma: str
    ascii: bool

    def dump(self, value: Any, base: str | None) -> str:
        """`value` as JSON; its lines after the first begin with `base`, all is on one line if that is None."""
        if base is None or self.unit is None:
            return json.dumps(value, ensure_ascii=self.ascii, separators=(self.comma, self.colon))
        text = json.dumps(value, ensure_ascii=self.ascii, indent=self.unit, separators=(",", self.colon))
        return text.replace("\n", self.newline + base)


class NotebookSource:
    """The text of one notebook file of format 4.

    Args:
        text: the file's text, without a byte order mark.

    Attributes:
        head: the notebook without its cells.
        cells: the decoded cells.
        spans: begin and end of each cell in `text`.

    Raises:
        ToolError: it is not JSON, or not an object.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.head: dict[str, Any] = {}
        self.cells: list[Any] = []
        self.spans: list[Span] = []
        self._array: Span = (0, 0)
        try:
            start = _skip(text, 0)
            if text[start : start + 1] != "{":
                _DECODER.decode(text)
                raise ToolError("it is not a notebook: its JSON is not an object")
            _expect(text, _skip(text, _walk(text, start, self._member)), "")
        except json.JSONDecodeError as error:
            empty = "it is empty" if not text.strip() else f"it is not JSON: {error.msg} at line {error.lineno}"
            raise ToolError(f"{empty} (a notebook is a JSON file)") from error
        except RecursionError as error:
            raise ToolError("it is not a notebook: its JSON is nested too deeply") from error

    def _member(self, key: str, position: int, start: int) -> int:
        if key == "cells" and self.text[start : start + 1] == "[":
            return self._read_cells(start)
        self.head[key], end = _decode(self.text, start)
        return end

    def _read_cells(self, start: int) -> int:
        text = self.text
        self.cells, self.spans = [], []
        at = _skip(text, start + 1)
        if text[at : at + 1] == "]":
            self._array = (start, at + 1)
            return at + 1
        while True:
            cell, end = _decode(text, at)
            self.cells.append(cell)
            self.spans.append((at, end))
            at = _skip(text, end)
            if text[at : at + 1] == "]":
                self._array = (start, at + 1)
                return at + 1
            at = _skip(text, _expect(text, at, ","))

    @property
    def has_cells(self) -> bool:
        """True if there is a list of cells, be it empty."""
        return self._array != (0, 0)

    def source_lines(self) -> set[int]:
        """The numbers, from 1, of the file's lines that hold the source of a cell."""
        numbers: set[int] = set()
        line, at = 1, 0

        def member(key: str, position: int, value: int) -> int:
            nonlocal line, at
            end = _decode(self.text, value)[1]
            if key == "source":
                line += self.text.count("\n", at, value)
                last = line + self.text.count("\n", value, end)
                # of a list over several lines, the brackets stand on lines of their own
                numbers.update(range(line + 1, last) if last > line else [line])
                line, at = last, end
            return end

        for start, _ in self.spans:
            if self.text[start] == "{":
                _walk(self.text, start, member)
        return numbers

    # ------------------------------------------------------------------ changes: each gives the whole new text

    def with_source(self, index: int, source: str) -> str:
        """The text with another source in one cell."""
        start = self.spans[index][0]
        members: dict[str, tuple[int, Span]] = {}

        def member(key: str, position: int, value: int) -> int:
            members[key] = (position, (value, _decode(self.text, value)[1]))
            return members[key][1][1]

        _walk(self.text, start, member)
        if "source" not in members:
            return self.with_cell(index, {**self.cells[index], "source": self._lines(source)})
        position, value = members["source"]
        old = self.text[slice(*value)]
        lines = self._lines(source, as_list=old.startswith("["))
        base = self._indentation(position)
        if "\n" not in old and old.startswith("[") and old.strip("[] \t") != "":
            base = None  # lists of lines stand on one line here
        return self._spliced(value, self.style.dump(lines, base))

    def with_cell(self, index: int, cell: dict[str, Any]) -> str:
        """The text with one cell replaced."""
        return self._spliced(self.spans[index], self._dumped(cell))

    def insert_cell(self, index: int, cell: dict[str, Any]) -> str:
        """The text with a new cell that will stand at `index`. Its source is a string."""
        return self._inserted(index, self._dumped({**cell, "source": self._lines(cell["source"])}))

    def delete_cell(self, index: int) -> str:
        """The text without one cell."""
        start, end = self.spans[index]
        if len(self.spans) == 1:
            return self._spliced(self._array, "[]")
        if index + 1 < len(self.spans):
            return self._spliced((start, self.spans[index + 1][0]), "")
        return self._spliced((self.spans[index - 1][1], end), "")

    def move_cell(self, index: int, to: int) -> str:
        """The text with one cell, byte for byte, at another place."""
        body = self.text[slice(*self.spans[index])]
        rest = NotebookSource(self.delete_cell(index))
        return rest._inserted(to, body)

    def _inserted(self, index: int, body: str) -> str:
        if not self.spans:
            base = self._indentation_of_cells()
            if base is None:
                return self._spliced(self._array, f"[{body}]")
            newline, outer = self.style.newline, base.removesuffix(self.style.unit or UNIT)
            return self._spliced(self._array, f"[{newline}{base}{body}{newline}{outer}]")
        before = self.text[self._array[0] + 1 : self.spans[0][0]]
        lead = before if "\n" in before else self.style.comma.removeprefix(",")
        if index >= len(self.spans):
            end = self.spans[-1][1]
            return self._spliced((end, end), f",{lead}{body}")
        start = self.spans[index][0]
        return self._spliced((start, start), f"{body},{lead}")

    def _spliced(self, span: Span, piece: str) -> str:
        return "".join((self.text[: span[0]], piece, self.text[span[1] :]))

    # ------------------------------------------------------------------ how the file is written

    @cached_property
    def style(self) -> Style:
        """The layout of this file's JSON."""
        text = self.text
        start = _skip(text, 0)
        inside = text[start + 1 : _skip(text, start + 1)]
        line = inside.rpartition("\n")[2]
        unit = line or UNIT if "\n" in inside else None
        key = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, start + 1 + len(inside))
        colon = ":"
        if key:
            after = _skip(text, key.end()) + 1
            colon = text[key.end() : _skip(text, after)]
        comma = ", " if unit is None and ", " in text[:200] else "," if unit is None else ", "
        escaped = text.isascii() and _NOT_ASCII.search(text) is not None
        return Style(unit, "\r\n" if "\r\n" in inside else "\n", colon, comma, escaped)

    def _indentation(self, position: int) -> str | None:
        """The indentation before `position`; None if something else stands before it on its line."""
        end_of_line = self.text.rfind("\n", 0, position)
        line = self.text[end_of_line + 1 : position]
        return line if end_of_line >= 0 and not line.strip() else None

    def _indentation_of_cells(self) -> str | None:
        if self.spans:
            return self._indentation(self.spans[0][0])
        return None if self.style.unit is None else self.style.unit * 2

    def _dumped(self, cell: dict[str, Any]) -> str:
        return self.style.dump(cell, self._indentation_of_cells())

    def _lines(self, source: str, as_list: bool | None = None) -> str | list[str]:
        """A source as this file's cells have it: a list of lines, or one string."""
        if as_list is None:
            forms = [type(cell.get("source")) for cell in self.cells[:3]]
            as_list = str not in forms
        return source.splitlines(keepends=True) if as_list else source


def _skip(text: str, at: int) -> int:
    """The next place that is not blank."""
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _decode(text: str, at: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except StopIteration as stop:
        raise json.JSONDecodeError("Expecting value", text, stop.value) from None
    return value, end


def _expect(text: str, at: int, mark: str) -> int:
    """The place after `mark`, which must stand at `at`; an empty one means the text's end."""
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"Expecting {mark!r}" if mark else "Extra data", text, at)
    return at + 1


def _walk(text: str, at: int, member: Callable[[str, int, int], int]) -> int:
    """Go through the object at `at`.

    Args:
        text: JSON.
        at: where the object begins.
        member: called with a key, where it stands and where its value begins; gives where the value ends.

    Returns:
        Where the object ends.
    """
    at = _skip(text, _expect(text, at, "{"))
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        if text[at : at + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        key, end = _decode(text, at)
        value = _skip(text, _expect(text, _skip(text, end), ":"))
        at = _skip(text, member(key, at, value))
        if text[at : at + 1] == "}":
            return at + 1
        at = _skip(text, _expect(text, at, ","))
