"""Single values as short text, and what class of a library a value is of; nothing is imported for it."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import uuid
from typing import Any

CELL_CHARS = 100
"""Most characters of a value in a table."""
_AS_TEXT = (
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, decimal.Decimal, fractions.Fraction),
    *(uuid.UUID, pathlib.PurePath),
)
_PANDAS_SCALARS = frozenset({"Timestamp", "Timedelta", "NaTType", "NAType", "Period", "Interval"})


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
