"""A table in Markdown, row by row, and the same cells as paragraphs for a table that only lays out a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ._buffer import Buffer

COLUMNS = 100
"""Columns that spans fill up."""
_LINES = re.compile(r"(?:[ \t]*\n[ \t]*)+")
_BLOCK = re.compile(r"(?:^|\n)(?:```|~~~|#{1,6} |> |---(?:\n|$)|\| )")
"""What can't stand in a cell: code, headings, quotes, rules, tables."""


class Table:
    """Rows as they come; memory holds the text alone.

    Args:
        blanks: the empty cells that spans may fill rows up with, for all tables of a page.
    """

    def __init__(self, blanks: Iterator[str]) -> None:
        self._blanks = blanks
        self._rows, self._loose = Buffer(), Buffer()
        self._row: list[str] = []
        self._spans: dict[int, int] = {}
        self._plain = True
        self._wide = self._headed = self._begun = False

    def cell(self, content: str, columns: int, rows: int, *, head: bool) -> None:
        """Add a cell.

        Args:
            content: its Markdown.
            columns: how many it spans.
            rows: the same.
            head: whether it is one of a head.
        """
        content = content.strip("\n")
        if content:
            self._loose.end_line(2)
            self._loose.put_lines(content)
            self._loose.end_line(2)
        if not self._plain:
            return
        if _BLOCK.search(content):
            self._plain, self._rows = False, Buffer()
            return
        self._headed = self._headed or head
        self._fill()
        if rows > 1 and len(self._row) < COLUMNS:
            self._spans.update(dict.fromkeys(range(len(self._row), len(self._row) + min(columns, COLUMNS)), rows - 1))
        self._row.append(_LINES.sub("<br>", content.strip()).replace("|", "\\|"))
        self._row += islice(self._blanks, max(0, min(columns - 1, COLUMNS - len(self._row))))

    def end_row(self) -> None:
        """End a row; one without cells is none."""
        if not self._row or not self._plain:
            self._row = []
            return
        self._fill()
        self._wide = self._wide or len(self._row) > 1
        if self._begun or any(self._row):
            self._rows.end_line(1)
            self._rows.put("| " + " | ".join(self._row) + " |")
            if not self._begun:
                self._rows.end_line(1)
                self._rows.put("|" + " --- |" * len(self._row))
            self._begun = True
        self._row = []

    def value(self) -> str:
        """The table; loose paragraphs if a cell holds what no cell can, or there is but one column without a head."""
        if self._plain and (self._wide or self._headed):
            return self._rows.value()
        return self._loose.value()

    def _fill(self) -> None:
        """Leave room for what reaches into this row from above."""
        while self._spans.get(len(self._row), 0) > 0:
            self._spans[len(self._row)] -= 1
            before = len(self._row)
            self._row += islice(self._blanks, 1)
            if len(self._row) == before:
                return
