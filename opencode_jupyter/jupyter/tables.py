"""A small table that a magic returns: rows as data, aligned text in a terminal, HTML in a notebook."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.result import data_frame
from ..core.secrets import known
from ..text.visible import visible
from .kernel.ipykernel_compat import kernel_of

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")

CELL_CHARS = 160
"""A longer value is cut in the text and HTML forms; `Table.records` keeps the whole."""
TEXT_CHARS = 60
"""The same for the text form."""
TEXT_WIDTH = 80
"""Characters of a line of the text form where no terminal's width is known."""
UNWRAPPED_CHARS = 20
"""A value of at most this length is not wrapped in the HTML form."""
NARROW_COLUMN = 24
"""Characters of a column that the text form keeps before it leaves out others."""
MIN_COLUMN = 3
"""No column of the text form is made narrower to fit the line."""

_RED = "#d6453a"  # readable on white and on black; JupyterLab's sanitizer drops var()
_CHIP = "border-radius:3px;padding:0 5px;font-weight:600"
_ACTION_STYLES = {
    "deny": f"background-color:#b42318;color:#ffffff;{_CHIP}",
    "ask": f"background-color:#f2c14e;color:#1c1e21;{_CHIP}",
}
"""Text on a background of its own, which reads alike in light and dark themes."""


class Table:
    """Rows with named columns.

    Args:
        records: the rows.
        columns: the columns to show, in order; those of the rows if left out.
        title: a line above.
        notes: lines below.
        empty: the text where there is no row.
        display: the rows as people read them (units, local times), where they differ from `records`.
        group_by: a column whose values are headings above their rows.
        optional: columns that the text form leaves out where it is too narrow, the first of these first.

    Attributes:
        records: the rows, as given.
    """

    _wraps = False
    """Whether values are wrapped instead of cut."""

    def __init__(
        self,
        records: Sequence[dict[str, Any]],
        columns: Sequence[str] | None = None,
        *,
        title: str = "",
        notes: Sequence[str] = (),
        empty: str = "nothing yet",
        display: Sequence[dict[str, Any]] | None = None,
        group_by: str = "",
        optional: Sequence[str] = (),
    ) -> None:
        masker = known.masker()
        if masker is not None:
            records, display, title, notes = masker.value((list(records), display, title, list(notes)))
        self.records = list(records)
        self._rows = self.records if display is None else list(display)
        self.columns = list(columns) if columns is not None else list(dict.fromkeys(k for row in records for k in row))
        self.title = title
        self.notes = list(notes)
        self.empty = empty
        self._group_by = group_by
        self._optional = optional

    @property
    def df(self) -> DataFrame:
        """The rows as a data frame.

        Raises:
            ImportError: pandas is not installed.
        """
        return data_frame(self.records, ".df", ".records", columns=self.columns if not self.records else None)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.records[index]

    def __repr__(self) -> str:
        width = text_width()
        lines = wrap_line(self.title, width) if self.title else []
        if self.records:
            lines += self._text_lines(width)
        else:
            lines += wrap_line(self.empty, width)
        for note in self.notes:
            lines += wrap_line(note, width)
        return visible("\n".join(lines))

    def _text_lines(self, width: int) -> list[str]:
        limit = None if self._wraps else TEXT_CHARS
        columns = list(self.columns)
        for name in (*self._optional, ""):
            rows = [columns, *([cell(row.get(c), limit) for c in columns] for row in self._rows)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            if not name or sum(min(size, NARROW_COLUMN) + 2 for size in widths) <= width:
                break
            columns = [c for c in columns if c != name]
        if not self._group_by:
            return [line for lines in _text_rows(rows, width, wrap=self._wraps) for line in lines]
        head, *texts = _text_rows(rows, width - 2, wrap=self._wraps)
        lines = [f"  {line}" for line in head]
        for group, members in self._groups(zip(self._rows, texts, strict=True)):
            lines += ["", group, *(f"  {line}" for _, text in members for line in text)]
        return [*lines, ""]

    def _groups(self, pairs: Iterable[tuple[dict[str, Any], T]]) -> Iterator[tuple[str, Iterator[tuple[Any, T]]]]:
        return groupby(pairs, lambda pair: str(pair[0].get(self._group_by, "")))

    def _repr_html_(self) -> str:
        parts = [f"<div><b>{escape(self.title)}</b></div>"] if self.title else []
        if not self.records:
            parts.append(f"<div>{escape(self.empty)}</div>")
        else:
            head = "".join(f'<th style="text-align:left">{escape(c)}</th>' for c in self.columns)
            limit = None if self._wraps else CELL_CHARS
            rows = ((row, "".join(_td(c, cell(row.get(c), limit)) for c in self.columns)) for row in self._rows)
            body = ""
            for group, members in self._groups(rows):
                if self._group_by:
                    body += f'<tr><th colspan="{len(self.columns)}" style="text-align:left">{escape(group)}</th></tr>'
                body += "".join(f"<tr>{line}</tr>" for _, line in members)
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts += [f"<div>{escape(note)}</div>" for note in self.notes]
        return without_math("".join(parts))


class WrappedTable(Table):
    """A table whose values are advice, read once: the text form wraps them, and none is cut."""

    _wraps = True


class Confirmation(Table):
    """The changes of a line: printed at once as title and notes, so that several lines in a cell all show."""

    _cell = -1

    def __repr__(self) -> str:
        return visible("\n".join([self.title, *self.notes]))

    def show(self) -> Confirmation:
        """Print it; as the value of the same cell it then displays nothing."""
        from IPython import get_ipython

        self._cell = getattr(get_ipython(), "execution_count", -1)
        print(self)  # noqa: T201 - this is what the cell shows
        return self

    def is_displayed_by_cell(self) -> bool:
        """Whether the cell that runs now has printed it."""
        from IPython import get_ipython

        return getattr(get_ipython(), "execution_count", None) == self._cell

    def _ipython_display_(self) -> None:
        if not self.is_displayed_by_cell():
            print(self)  # noqa: T201


class Notice(str):
    """A text for a person, which a cell shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return visible(str(self))


class WarningNotice(Notice):
    """A warning: a `Notice` that is red in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<div style="color:{_RED};font-weight:600">{escape(str(self))}</div>'


def without_math(html: str) -> str:
    """The HTML in an element that a page's typesetter skips: `$HOME … $PATH` is no formula."""
    from .cards.style import NO_MATH

    return f'<div class="{NO_MATH}">{html}</div>'


def cell(value: Any, limit: int | None = CELL_CHARS) -> str:
    """A value as one line of text; None cuts nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, (list, tuple)):
        value = ", ".join(str(item) for item in value)
    text = visible(" ".join(str(value).split()))  # names and commands may hold what moves a terminal's cursor
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def text_width() -> int:
    """Characters that a line of text may have: the terminal's width in a terminal, else `TEXT_WIDTH`."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or kernel_of(shell) is not None:
        return TEXT_WIDTH
    return shutil.get_terminal_size((TEXT_WIDTH, 24)).columns


def wrap_line(text: str, width: int) -> list[str]:
    """A text as lines of at most `width` characters; its own line breaks stay."""
    wrapper = textwrap.TextWrapper(width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    lines = []
    for line in text.split("\n"):
        lines += wrapper.wrap(line) if len(line) > width else [line]
    return lines


def _text_rows(rows: list[list[str]], width: int, *, wrap: bool) -> list[list[str]]:
    """Aligned lines of each row; what does not fit its column is cut, or wrapped."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    available = width - 2 * (len(widths) - 1)
    while sum(widths) > available and max(widths) > MIN_COLUMN:
        widths[widths.index(max(widths))] -= 1
    texts = []
    for row in rows:
        pairs = list(zip(row, widths, strict=True))
        if wrap:
            columns = [textwrap.wrap(text, size, break_on_hyphens=False) or [""] for text, size in pairs]
        else:
            columns = [[cell(text, size)] for text, size in pairs]
        lines = zip_longest(*columns, fillvalue="")
        texts.append(
            ["  ".join(part.ljust(n) for part, n in zip(line, widths, strict=True)).rstrip() for line in lines]
        )
    return texts


def _td(column: str, text: str) -> str:
    """A cell of the HTML form."""
    style = _ACTION_STYLES.get(text) if column in ("action", "now") else None
    shown = f'<span style="{style}">{escape(text)}</span>' if style else escape(text)
    wrap = ";white-space:nowrap" if len(text) <= UNWRAPPED_CHARS else ""  # a narrow notebook scrolls the table
    return f'<td style="text-align:left{wrap}">{shown}</td>'
