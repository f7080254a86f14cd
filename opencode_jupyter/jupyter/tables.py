"""A small table that a magic gives back: rows as data, aligned text in a terminal, HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

CELL_CHARS = 160
"""A longer value is cut in the text and HTML forms; `Table.records` keeps the whole."""
TEXT_CHARS = 60
"""The same for the text form, whose lines should fit a terminal."""

_RED, _AMBER = "#d6453a", "#a67200"  # readable on white and on black; JupyterLab's sanitizer drops var()
_ACTION_COLOURS = {"deny": _RED, "ask": _AMBER}


class Table:
    """Rows with named columns.

    Args:
        records: the rows.
        columns: the columns to show, in order; those of the rows if left out.
        title: a line above.
        notes: lines below.
        empty: what to say when there is no row.
        whole: cut no value; for tables whose values are advice, read once.

    Attributes:
        records: the rows, as given.
    """

    def __init__(
        self,
        records: Sequence[dict[str, Any]],
        columns: Sequence[str] | None = None,
        *,
        title: str = "",
        notes: Sequence[str] = (),
        empty: str = "nothing yet",
        whole: bool = False,
    ) -> None:
        self.records = list(records)
        self.columns = list(columns) if columns is not None else list(dict.fromkeys(k for row in records for k in row))
        self.title = title
        self.notes = list(notes)
        self.empty = empty
        self.whole = whole

    @property
    def df(self) -> DataFrame:
        """The rows as a data frame.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(".df needs pandas: pip install pandas (rows without it: .records)") from error
        return pd.DataFrame(self.records, columns=self.columns if not self.records else None)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.records[index]

    def __repr__(self) -> str:
        lines = [self.title] if self.title else []
        if not self.records:
            lines.append(self.empty)
        else:
            limit = None if self.whole else TEXT_CHARS
            rows = [self.columns, *([cell(row.get(c), limit) for c in self.columns] for row in self.records)]
            widest = [max(len(row[i]) for row in rows) for i in range(len(self.columns))]
            widths = [min(width, TEXT_CHARS) for width in widest]  # a value that is not cut stands out of its column
            pairs = (zip(row, widths, strict=True) for row in rows)
            lines.extend("  ".join(text.ljust(width) for text, width in pair).rstrip() for pair in pairs)
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        parts = [f"<div><b>{escape(self.title)}</b></div>"] if self.title else []
        if not self.records:
            parts.append(f"<div>{escape(self.empty)}</div>")
        else:
            head = "".join(f'<th style="text-align:left">{escape(c)}</th>' for c in self.columns)
            limit = None if self.whole else CELL_CHARS
            lines = ("".join(_td(c, cell(row.get(c), limit)) for c in self.columns) for row in self.records)
            body = "".join(f"<tr>{line}</tr>" for line in lines)
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts += [f"<div>{escape(note)}</div>" for note in self.notes]
        return "".join(parts)


class Message(str):
    """A line to a person, which a cell shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Warned(Message):
    """A `Message` of which a person should take note: red in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f'<div style="color:{_RED};font-weight:600">{escape(str(self))}</div>'


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
    text = " ".join(str(value).split())
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def _td(column: str, text: str) -> str:
    colour = _ACTION_COLOURS.get(text) if column in ("action", "now") else None
    style = "text-align:left" + (f";color:{colour};font-weight:600" if colour else "")
    return f'<td style="{style}">{escape(text)}</td>'
