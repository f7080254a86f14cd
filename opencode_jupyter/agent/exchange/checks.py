"""Checking data from a file: small checks that are put together, and errors that say where."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import ToolError

Check = Callable[[Any, str], None]
"""Raises `SessionFileError` if a value (first) at a place (second) is not as it should be."""


class SessionFileError(ToolError):
    """A file or data that can't be taken in as a session; the message says where it is wrong."""


def wrong(where: str, wanted: str, value: Any) -> SessionFileError:
    """The error of a value that is not what it should be."""
    return SessionFileError(f"{where}: expected {wanted}, not {described(value)}.")


def described(value: Any) -> str:
    """A value in words, its own text cut."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value[:40]!r}" + ("..." if len(value) > 40 else "")
    if isinstance(value, (int, float)):
        return f"the number {value!r}"[:60]
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__


def text(value: Any, where: str) -> None:
    """A text."""
    if not isinstance(value, str):
        raise wrong(where, "a text", value)


def flag(value: Any, where: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong(where, "true or false", value)


def number(value: Any, where: str) -> None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise wrong(where, "a number", value)


def moment(value: Any, where: str) -> None:
    """A time: whole milliseconds since 1970."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise wrong(where, "a time in whole milliseconds", value)


def anything(value: Any, where: str) -> None:
    """Whatever it is."""


def record(value: Any, where: str) -> None:
    """An object with any keys."""
    if not isinstance(value, dict):
        raise wrong(where, "an object", value)


def identifier(prefix: str) -> Check:
    """An id that begins with `prefix`."""

    def check(value: Any, where: str) -> None:
        good = isinstance(value, str) and value.startswith(prefix) and value.isascii() and value.isprintable()
        if not good or " " in value or len(value) > 200:
            raise wrong(where, f"an id that begins with {prefix}", value)

    return check


def one_of(*words: str) -> Check:
    """One of these texts."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in words:
            raise wrong(where, " or ".join(words), value)

    return check


class Each:
    """Check a list whose items are all of one kind.

    Args:
        check: the check of an item.
    """

    def __init__(self, check: Check) -> None:
        self._check = check

    def __call__(self, value: Any, where: str) -> None:
        """Check a list at a place."""
        if not isinstance(value, list):
            raise wrong(where, "a list", value)
        for index, item in enumerate(value):
            self._check(item, f"{where}[{index}]")

    def without_nulls(self, value: list[Any]) -> list[Any]:
        """The list, its items as `Keys.without_nulls` returns them."""
        return [_without_nulls(self._check, item) for item in value]


class Keys:
    """Check an object with these keys; an optional one may be null, and other keys may be there too.

    Args:
        required: checks of the keys that must be there.
        optional: checks of the keys that may be missing or null.
    """

    def __init__(self, required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> None:
        self._required = required
        self._optional = optional or {}

    def __call__(self, value: Any, where: str) -> None:
        """Check an object at a place."""
        if not isinstance(value, dict):
            raise wrong(where, "an object", value)
        for key, check in self._required.items():
            if key not in value:
                raise SessionFileError(f"{where}: {key} is missing.")
            check(value[key], f"{where}.{key}")
        for key, check in self._optional.items():
            if value.get(key) is not None:
                check(value[key], f"{where}.{key}")

    def without_nulls(self, value: dict[str, Any]) -> dict[str, Any]:
        """The object without the null of any key named here, at any depth; an unknown key keeps its null."""
        known = {**self._required, **self._optional}
        return {
            key: _without_nulls(known.get(key, anything), item)
            for key, item in value.items()
            if item is not None or key not in known
        }


def _without_nulls(check: Check, value: Any) -> Any:
    if isinstance(check, Keys) and isinstance(value, dict):
        return check.without_nulls(value)
    if isinstance(check, Each) and isinstance(value, list):
        return check.without_nulls(value)
    return value
