"""Frames, series, indexes and arrays of pandas and numpy, by their exact types.

What is called here is the libraries' own code, and only what is quick and copies nothing large. No library is
imported: a value of one exists only if its library is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core.value_tables import cell_texts
from ...core.value_tables import grid as aligned
from ..cards.wording import size
from .short_values import is_secret_column, short
from .type_inspection import is_library_type, module_of, type_name

if TYPE_CHECKING:
    from .describe import Description

COLUMNS = 100
"""Columns that are listed."""
WIDTH = 12
"""Columns whose first rows are shown."""
CELL = 24
"""Characters of a cell."""
_FLOAT = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?|nan")


def is_known_type(kind: type) -> bool:
    """Whether values of exactly this type are described here."""
    return _describer(kind) is not None


def describe(value: Any, out: Description, rows: int) -> bool:
    """Describe a value of a known type; False if it is of none."""
    describer = _describer(type(value))
    if describer is None:
        return False
    describer(value, out, rows)
    return True


def shape_of(value: Any) -> str:
    """The shape of a value of a known type; empty for others."""
    if not is_known_type(type(value)):
        return ""
    return " × ".join(str(n) for n in tuple(value.shape)) or "scalar"


def _describer(kind: type) -> Callable[[Any, Description, int], None] | None:
    if module_of(kind).partition(".")[0] not in ("pandas", "numpy"):
        return None
    for library, name, describer in _KNOWN:
        if is_library_type(kind, library, name):
            return describer
    return None


# ---------------------------------------------------------------------- numpy


def _array(value: Any, out: Description, rows: int) -> None:
    out.add("shape", value.shape)
    out.add("dtype", value.dtype)
    out.add("memory", size(value.nbytes))
    if value.base is not None:
        out.lines.append("it is a view of another array's memory")
    if value.ndim == 2 and 0 < value.shape[1] <= WIDTH and value.dtype.names is None:
        head = [[short(cell, CELL) for cell in row] for row in value[:rows].tolist()]
        _table(out, [list(map(str, range(value.shape[1]))), *head], value.shape)
        out.lines += [f"first {len(head)} rows:", *grid(head)]
    elif value.size:
        first = value.flat[: max(rows, 10)].tolist()
        more = ", …" if value.size > len(first) else ""
        out.add("first values", ", ".join(short(v, CELL) for v in first) + more)


# ---------------------------------------------------------------------- pandas


def _frame(value: Any, out: Description, rows: int) -> None:
    count, width = value.shape
    out.add("shape", f"{count:,} rows × {width:,} columns")
    out.add("memory", size(int(value.memory_usage(index=True, deep=False).sum())) + " (objects not counted)")
    out.add("index", _index_text(value.index))
    labels = value.columns.tolist()
    dtypes = [_dtype(d) for d in value.dtypes.tolist()]
    out.records += [{"column": _label(c), "dtype": d} for c, d in zip(labels, dtypes, strict=True)]
    beside = len(out.lines)
    if width:
        out.lines.append("columns:")
    out.lines += [f"  {_label(c)}: {d}" for c, d in zip(labels[:COLUMNS], dtypes, strict=False)]
    if width > COLUMNS:
        out.lines.append(f"  … {width - COLUMNS} more")
    if count and width:
        columns = [_cells(value.iloc[:rows, i], labels[i]) for i in range(min(width, WIDTH))]
        index = [short(v, CELL) for v in value.index[:rows].tolist()]
        head = [["", *(_label(c)[:CELL] for c in labels[:WIDTH])]]
        head += [[index[r], *(column[r] for column in columns)] for r in range(len(index))]
        of_columns = f", first {WIDTH} columns" if width > WIDTH else ""
        _table(out, head, value.shape, index=1, types=["", *dtypes[:WIDTH]])
        out.printed = beside if width <= WIDTH else out.printed
        out.lines += [f"first {len(index)} rows{of_columns}:", *grid(head)]


def _series(value: Any, out: Description, rows: int) -> None:
    out.add("length", f"{len(value):,}")
    out.add("dtype", _dtype(value.dtype))
    if value.name is not None:
        out.add("name", _label(value.name))
    out.add("memory", size(int(value.memory_usage(index=True, deep=False))) + " (objects not counted)")
    out.add("index", _index_text(value.index))
    head = value.iloc[: max(rows, 10)]
    index = [short(v, CELL) for v in head.index.tolist()]
    if index:
        pairs = [list(pair) for pair in zip(index, _cells(head, value.name), strict=True)]
        _table(out, [["", "value" if value.name is None else _label(value.name)], *pairs], (len(value), 1), index=1)
        out.lines += ["first values:", *grid(pairs)]


def _index(value: Any, out: Description, rows: int) -> None:
    out.add("index", _index_text(value))
    out.add("memory", size(int(value.memory_usage(deep=False))))
    first = value[: max(rows, 10)].tolist()
    out.add("first values", ", ".join(short(v, CELL) for v in first) + (", …" if len(value) > len(first) else ""))


def _table(out: Description, rows: list[list[str]], shape: tuple[int, ...], **more: Any) -> None:
    """What a card draws: titles and first rows of a table; the lines so far stand beside it."""
    columns = [_display_texts(column) for column in zip(*rows[1:], strict=True)]
    shown = [list(row) for row in zip(*columns, strict=True)]
    name = out.type.rpartition(".")[2]
    out.table = {"name": name, "columns": rows[0], "rows": shown, "total": shape[0], "width": shape[1], **more}
    out.printed = len(out.lines)


def _display_texts(cells: Sequence[str]) -> list[str]:
    """Described values as a table shows them: texts without quotes, numbers with the same number of decimals."""
    if any("." in cell or cell == "nan" for cell in cells) and all(map(_FLOAT.fullmatch, cells)):
        return cell_texts([float(cell) for cell in cells])
    return [re.sub(r"^(['\"])(.*)\1$", r"\2", cell) for cell in cells]


def _index_text(index: Any) -> str:
    names = [_label(n) for n in index.names if n is not None]
    words = f"{type(index).__name__} of {len(index):,}, {_dtype(index.dtype)}"
    return words + (f", named {', '.join(names)}" if names else "")


def _cells(column: Any, label: Any) -> list[str]:
    dtype = column.dtype
    if is_secret_column(label):
        return ["(hidden)"] * len(column)
    if module_of(type(dtype)).partition(".")[0] not in ("numpy", "pandas"):
        return ["…"] * len(column)  # another library's column type: its code would run
    return [short(cell, CELL) for cell in column.tolist()]


def _dtype(dtype: Any) -> str:
    kind = type(dtype)
    return str(dtype) if module_of(kind).partition(".")[0] in ("numpy", "pandas") else type_name(kind)


def _label(label: Any) -> str:
    return label if type(label) is str else short(label)


_KNOWN: list[tuple[str, str, Callable[[Any, Description, int], None]]] = [
    ("pandas", "DataFrame", _frame),
    ("pandas", "Series", _series),
    *(
        ("pandas", name, _index)
        for name in ("Index", "RangeIndex", "DatetimeIndex", "MultiIndex", "CategoricalIndex", "TimedeltaIndex")
    ),
    ("numpy", "ndarray", _array),
]


def grid(rows: list[list[str]]) -> list[str]:
    """Rows of cells as indented lines with columns of equal width."""
    return [f"  {line}" for line in aligned(rows, [False] * len(rows[0]))] if rows else []
