"""Frames, arrays and rows as tables: for a card, bounded; for a model, as text with size, types and first rows."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import itertools
import math
import pathlib
import uuid
from collections.abc import Iterable, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .result import Attachment


CELL_CHARS = 100
"""Most characters of a value in a table."""
_AS_TEXT = (
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, decimal.Decimal, fractions.Fraction),
    *(uuid.UUID, pathlib.PurePath),
)
_PANDAS_SCALARS = frozenset({"Timestamp", "Timedelta", "NaTType", "NAType", "Period", "Interval"})
COLUMNS = 20
"""Most columns of a table, in a card and in the text."""
ROWS = 50
"""Most rows of a table that a card draws."""
WHOLE_ROWS = 60
"""A table of at most this many rows is in the text whole, if it fits."""
HEAD_ROWS = 20
"""Rows of a longer table in the text."""
TABLE_CHARS = 8_000
"""Most characters of a table in the text."""
LISTS = (Sequence, AbstractSet, ValuesView)
"""What counts as a list of values."""
MISSING = object()
"""Stands for the value of a key that a row does not have."""


@dataclasses.dataclass(slots=True)
class Rendering:
    """How a value is shown.

    Attributes:
        text: for a model.
        tables: for a person, see `result.TABLES`.
        attachments: pictures and documents.
    """

    text: str
    tables: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    attachments: list[Attachment] = dataclasses.field(default_factory=list)

    @property
    def is_rich(self) -> bool:
        """True if it has more than text."""
        return bool(self.tables or self.attachments)


@dataclasses.dataclass(slots=True)
class Column:
    """A column, or a level of the row labels, as far as its rows are shown."""

    label: str
    values: list[Any]
    type: str = ""
    is_index: bool = False


def columns_of(value: Any, names: set[tuple[str, str]], most: int | None) -> list[Column] | None:
    """The columns of a frame, series or array with their first `most` rows; None if it is no table."""
    rows = slice(most)
    if ("pandas", "DataFrame") in names:
        width = value.shape[1] if most is None else min(value.shape[1], COLUMNS)
        labels, types = value.columns.tolist(), value.dtypes.tolist()
        return _index_columns(value.index, rows) + [
            Column(_label(labels[i]), value.iloc[rows, i].tolist(), str(types[i])) for i in range(width)
        ]
    if ("pandas", "Series") in names:
        label = "value" if value.name is None else _label(value.name)
        return [
            *_index_columns(value.index, rows, always=True),
            Column(label, value.iloc[rows].tolist(), str(value.dtype)),
        ]
    if ("polars", "DataFrame") in names:
        width = value.width if most is None else min(value.width, COLUMNS)
        return [Column(value.columns[i], value[:, i][rows].to_list(), str(value.dtypes[i])) for i in range(width)]
    if ("numpy", "ndarray") in names:
        return _array_columns(value, rows, most)
    return None


def _array_columns(value: Any, rows: slice, most: int | None) -> list[Column] | None:
    if value.dtype.names is not None and value.ndim == 1:
        return [Column(name, value[name][rows].tolist(), str(value.dtype[name])) for name in value.dtype.names]
    if value.ndim != 2 or value.dtype == object:
        return None
    width = value.shape[1] if most is None else min(value.shape[1], COLUMNS)
    return [Column(str(i), value[rows, i].tolist()) for i in range(width)]


def _index_columns(index: Any, rows: slice, *, always: bool = False) -> list[Column]:
    """The row labels, unless they are only the rows' numbers."""
    plain = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
    if plain and not always:
        return []
    labels = index[rows].tolist()
    titles = ["index" if name is None else _label(name) for name in index.names]
    if index.nlevels == 1:
        return [Column(titles[0], labels, is_index=True)]
    return [Column(title, [label[i] for label in labels], is_index=True) for i, title in enumerate(titles)]


def _label(label: Any) -> str:
    if isinstance(label, tuple):
        return " / ".join(str(part) for part in label if str(part))
    return str(label)


def unique(labels: list[str]) -> list[str]:
    """The labels, with a number where one repeats: ``a``, ``a.1``."""
    taken: set[str] = set()
    for at, label in enumerate(labels):
        numbers = itertools.count(1)
        while labels[at] in taken:
            labels[at] = f"{label}.{next(numbers)}"
        taken.add(labels[at])
    return labels


def rows_of(value: Any) -> list[dict[str, Any]] | None:
    """The rows of a value that is a table; None if it is none."""
    if isinstance(value, LISTS) and not isinstance(value, (str, bytes, bytearray)):
        return dict_rows(value)
    names = class_names(value)
    if ("polars", "DataFrame") in names:
        return list(value.to_dicts())
    if ("pandas", "Index") in names:
        value, names = value.to_series(index=range(len(value))), {("pandas", "Series")}
    columns = columns_of(value, names, None)
    if columns is None:
        return None
    labels = unique([column.label for column in columns])
    values = [column.values for column in columns]
    return [dict(zip(labels, row, strict=True)) for row in zip(*values, strict=True)]


def frame_of(value: Any) -> Any:
    """A value that is a table as a pandas frame, its dtypes and index kept: a frame is itself; None if it is none."""
    names = class_names(value)
    if ("pandas", "DataFrame") in names:
        return value
    if ("pandas", "Series") in names:
        return value.to_frame("value" if value.name is None else value.name)
    if ("polars", "DataFrame") in names:
        return value.to_pandas()
    return None


def dict_rows(items: Iterable[Any]) -> list[dict[str, Any]] | None:
    """The rows of a list of dicts or records; None if it is something else."""
    rows: list[dict[str, Any]] = []
    for item in items:
        fields = fields_of(item)
        if fields is None:
            return None
        rows.append({str(key): value for key, value in fields.items()})
    return rows or None


def fields_of(value: Any) -> Mapping[Any, Any] | None:
    """Names and values of a dict, a dataclass, a pydantic model, a named tuple or an attrs object; None of others."""
    if isinstance(value, Mapping):
        return value
    kind = type(value)
    if isinstance(value, type):
        return None
    names: Iterable[str] | None = None
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.repr]
    elif hasattr(kind, "__pydantic_fields__"):
        names = [*kind.__pydantic_fields__, *(getattr(value, "__pydantic_extra__", None) or ())]
    elif isinstance(value, tuple) and hasattr(kind, "_fields"):
        names = kind._fields
    elif hasattr(kind, "__attrs_attrs__"):
        names = [field.name for field in kind.__attrs_attrs__]
    if names is None:
        return None
    return {name: getattr(value, name, None) for name in names}


def card_table(name: str, columns: list[Column], total: int, width: int) -> tuple[dict[str, Any], list[list[str]]]:
    """A table for a card, and all rows of it that `columns` has as text."""
    texts = [cell_texts(column.values) for column in columns]
    rows = [list(row) for row in zip(*texts, strict=True)]
    made: dict[str, Any] = {
        "name": name,
        "columns": [cut(column.label, CELL_CHARS) for column in columns],
        "rows": rows[:ROWS],
        "total": total,
        "width": width,
    }
    index = sum(column.is_index for column in columns)
    if index:
        made["index"] = index
    if any(column.type for column in columns):
        made["types"] = [column.type for column in columns]
    return made, rows


def render_table(name: str, columns: list[Column], total: int, width: int, *, size: str = "") -> Rendering:
    """A table as text: its size, the types of its columns, its first rows."""
    made, rows = card_table(name, columns, total, width)
    shape = f"{count_of(total, 'row')} × {count_of(width, 'column')}"
    lines = [f"{name}: {size or shape}"]
    if "types" in made and not size:
        types = [f"{column.label} ({column.type})" for column in columns if column.type]
        more = f", … {width - len(types):,} more" if width > len(types) > 1 else ""
        lines.append(f"columns: {', '.join(types)}{more}")
    if rows:
        shown = rows if total <= WHOLE_ROWS else rows[:HEAD_ROWS]
        drawn = grid([made["columns"], *shown], _numeric(made))
        room = TABLE_CHARS
        for count, line in enumerate(drawn):
            room -= len(line) + 1
            if room < 0 and count > 1:
                drawn = drawn[:count]
                break
        lines += drawn
        left = total - (len(drawn) - 1)
        if left > 0:
            lines.append(f"… {count_of(left, 'more row')}")
    return Rendering("\n".join(lines), [made])


def _numeric(made: dict[str, Any]) -> list[bool]:
    return [all(_is_number(row[at]) for row in made["rows"]) for at in range(len(made["columns"]))]


def _is_number(text: str) -> bool:
    try:
        float(text or "0")
    except ValueError:
        return text == "<NA>"
    return True


def grid(rows: list[list[str]], right: Sequence[bool]) -> list[str]:
    """Rows of cells as lines with columns of equal width, aligned to the right where `right` is true."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if flag else text.ljust(width)
            for text, width, flag in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def cell_texts(values: list[Any]) -> list[str]:
    """The values of a column as text: numbers with the same number of decimals, days without an hour."""
    if any(isinstance(value, float) for value in values) and all(isinstance(value, float) for value in values):
        return _decimals(values)
    texts = [cut(" ".join(_short(value).split()), CELL_CHARS) for value in values]
    if values and all(isinstance(value, datetime.datetime) for value in values):
        midnight = " 00:00:00"
        if all(text.endswith(midnight) or text == "NaT" for text in texts):
            texts = [text.removesuffix(midnight) for text in texts]
    return texts


def _decimals(values: list[float]) -> list[str]:
    numbers = [value for value in values if math.isfinite(value)]
    if any(value and not 1e-4 <= abs(value) < 1e12 for value in numbers):
        return [float_text(value) for value in values]
    needed = (len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in numbers)
    digits = max(needed, default=1) or 1
    return [f"{value:.{digits}f}" if math.isfinite(value) else float_text(value) for value in values]


def float_text(value: float) -> str:
    """A number with six digits."""
    return "NaN" if math.isnan(value) else f"{value:.6g}"


def _short(value: Any) -> str:
    """A value in a table: text as it stands, all else as it is in a list."""
    if value is MISSING:
        return ""
    if isinstance(value, str):
        return str.__str__(value)
    if value is None:
        return "None"
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    text = scalar_text(value, class_names(value))
    return short_repr(value) if text is None else text


def class_names(value: Any) -> set[tuple[str, str]]:
    """Library and name of a value's class and of those it derives from."""
    return {(str(base.__module__).partition(".")[0], base.__name__) for base in type(value).__mro__[:-1]}


def scalar_text(value: Any, names: set[tuple[str, str]]) -> str | None:
    """A single value as text; None if it is none."""
    if isinstance(value, enum.Enum) and not isinstance(value, str):
        return f"{type(value).__name__}.{value.name} ({value.value!r})"
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bool, float, complex)):
        return str(value)
    if isinstance(value, int):
        return f"{value}" if abs(value) < 1 << 4096 else hex(value)
    if isinstance(value, _AS_TEXT):
        return str(value)
    if ("numpy", "generic") in names:
        return str(value)
    if any(library == "pandas" and name in _PANDAS_SCALARS for library, name in names):
        return str(value)
    return None


def short_repr(value: Any) -> str:
    """The ``repr`` of a value in one line of at most `CELL_CHARS`."""
    try:
        return cut(" ".join(repr(value).split()), CELL_CHARS)
    except Exception:
        return f"<{type(value).__name__}>"


def cut(text: str, most: int) -> str:
    """`text` with at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def count_of(number: int, noun: str) -> str:
    """``1 row``, ``1,200 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
