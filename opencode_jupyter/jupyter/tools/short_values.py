"""Short texts of values, without calling any code of their own.

Only values of exactly known types are written out; a class of the user's, also one derived from a known type, may
have a ``__repr__`` that does anything.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import itertools
import pathlib
import re
import types
import uuid
import zoneinfo
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any

from .type_inspection import is_library_type, is_one_of, module_of, mro, type_name

ROOM = 80
"""Characters of a short value."""
ITEMS = 10
"""Items of a container that are written out."""
DEPTH = 3
"""Containers inside containers."""
BITS = 4096
"""A larger integer is only measured; Python would take its time to write it down."""

_BY_REPR = frozenset(
    {
        bool, float, complex, type(None), type(...), type(NotImplemented), range,
        datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, fractions.Fraction, uuid.UUID,
        pathlib.PurePath, pathlib.PosixPath, pathlib.PurePosixPath, pathlib.WindowsPath, pathlib.PureWindowsPath,
    }
)  # fmt: skip
"""Types whose own ``repr`` is Python's and short."""
_ZONES = (type(None), datetime.timezone, zoneinfo.ZoneInfo)
_PANDAS_SCALARS = (
    ("pandas", "Timedelta"),
    ("pandas", "Period"),
    ("pandas._libs.missing", "NAType"),
    ("pandas._libs.tslibs.nattype", "NaTType"),
)
_PAIRS: dict[type, str] = {dict: "", OrderedDict: "OrderedDict", defaultdict: "defaultdict"}
_BRACKETS: dict[type, str] = {list: "[]", tuple: "()", set: "{}", frozenset: "{}", deque: "[]"}
_SECRET = re.compile(
    r"(?:^|_)(?:TOKENS?|SECRETS?|PWD|PASSWD|CREDENTIALS?|PASSPHRASE)(?:$|_)|[^_]_KEYS?(?:$|_)"
    r"|api_?key|password|secret|accesstoken|authtoken",
    re.IGNORECASE,
)
_SECRET_COLUMN = re.compile(r"api_?key|password|passwd|secret|(?:access|auth)_?token", re.IGNORECASE)
HIDDEN = "(hidden: its name looks like a secret's)"


def is_secret(name: Any, value: Any) -> bool:
    """Whether a value should be hidden because of its name. Numbers are none: ``max_tokens``."""
    if type(name) is bytes:  # os.environ keeps bytes
        name = name.decode("utf-8", "replace")
    return type(name) is str and is_one_of(type(value), (str, bytes)) and _SECRET.search(name) is not None


def is_secret_column(label: Any) -> bool:
    """Whether a table's column should be hidden. Columns of keys and tokens are data more often than secrets."""
    return type(label) is str and _SECRET_COLUMN.search(label) is not None


def is_short(value: Any) -> bool:
    """Whether a value that is no text and no container is written out by `short`, not only named by its type."""
    kind = type(value)
    return (
        kind is int
        or is_one_of(kind, _BY_REPR)
        or _is_numpy_scalar(kind)
        or _is_pandas_scalar(value, kind)
        or (kind is datetime.datetime and is_one_of(type(value.tzinfo), _ZONES))
    )


def short(value: Any, room: int = ROOM) -> str:
    """A value in at most about `room` characters."""
    text = _Writer(room).write(value, DEPTH)
    return text if len(text) <= room else text[: room - 1] + "…"


def short_or_hidden(name: Any, value: Any, room: int) -> str:
    """The same, unless the value's name looks like a secret's."""
    return HIDDEN if is_secret(name, value) else short(value, room)


class _Writer:
    """Writes one value out, up to a number of characters."""

    def __init__(self, room: int) -> None:
        self._left = room
        self._inside: set[int] = set()

    def write(self, value: Any, depth: int) -> str:
        kind = type(value)
        if kind is int:
            text = repr(value) if value.bit_length() <= BITS else f"(an integer of {value.bit_length():,} bits)"
        elif is_one_of(kind, (str, bytes, bytearray)):
            text = self._text(value)
        elif is_short(value) and not _is_numpy_scalar(kind) and not _is_pandas_scalar(value, kind):
            text = repr(value)
        elif is_one_of(kind, _PAIRS) or is_one_of(kind, _BRACKETS):
            text = self._container(value, kind, depth)
        else:
            text = _other(value, kind)
        self._left -= len(text)
        return text

    def _text(self, value: Any) -> str:
        most = max(self._left, 16)
        return repr(value) if len(value) <= most else f"{value[:most]!r}…"

    def _container(self, value: Any, kind: type, depth: int) -> str:
        count = len(value)
        name = kind.__name__
        if count == 0:
            return {"list": "[]", "tuple": "()", "dict": "{}"}.get(name, f"{name}()")
        if depth == 0 or id(value) in self._inside:
            return f"{name} of {count}"
        self._inside.add(id(value))
        try:
            if is_one_of(kind, _PAIRS):
                head, inner = _PAIRS[kind], "{" + self._items(value.items(), count, depth, paired=True) + "}"
            else:
                brackets = _BRACKETS[kind]
                comma = "," if kind is tuple and count == 1 else ""
                head = "" if kind in (list, tuple, set) else name
                inner = brackets[0] + self._items(value, count, depth) + comma + brackets[1]
        except RuntimeError:  # another thread changes it
            return f"{name} of {count} (changing)"
        finally:
            self._inside.discard(id(value))
        return f"{head}({inner})" if head else inner

    def _items(self, items: Iterable[Any], count: int, depth: int, *, paired: bool = False) -> str:
        parts: list[str] = []
        for item in itertools.islice(items, ITEMS):
            if self._left <= 0:
                break
            if paired:
                text = HIDDEN if is_secret(item[0], item[1]) else self.write(item[1], depth - 1)
                parts.append(f"{self.write(item[0], 1)}: {text}")
            else:
                parts.append(self.write(item, depth - 1))
        return ", ".join(parts) + (f", … {count - len(parts)} more" if len(parts) < count else "")


def _other(value: Any, kind: type) -> str:
    if kind is types.ModuleType:
        name = vars(value).get("__name__")
        return f"<module {name}>" if type(name) is str else "<module>"
    if is_one_of(kind, (types.FunctionType, types.BuiltinFunctionType)):
        name = value.__qualname__
        return f"<function {name}>" if type(name) is str else "<function>"
    if any(base is type for base in mro(kind)):
        return f"<class {type_name(value)}>"
    if is_library_type(kind, "numpy", "ndarray"):
        return f"<array {value.dtype} {value.shape}>" if value.dtype.names is None else f"<array {value.shape}>"
    if _is_numpy_scalar(kind):
        return short(value.item())
    if _is_pandas_scalar(value, kind):
        return str(value)
    return f"<{type_name(kind)} object>"


def _is_pandas_scalar(value: Any, kind: type) -> bool:
    """Whether it is one of pandas' own times, in a time zone whose code is known, or a missing value."""
    if is_library_type(kind, "pandas", "Timestamp"):
        zone = type(value.tzinfo)
        return is_one_of(zone, _ZONES) or module_of(zone).partition(".")[0] in ("pytz", "dateutil")
    return any(is_library_type(kind, library, name) for library, name in _PANDAS_SCALARS)


def _is_numpy_scalar(kind: type) -> bool:
    """Whether it is one of numpy's own numbers, texts or times (not a record, which may hold objects)."""
    if module_of(kind) != "numpy":
        return False
    name = type_name(kind).removeprefix("numpy.")
    return name not in ("ndarray", "void", "object_") and is_library_type(kind, "numpy", name) and hasattr(kind, "item")
