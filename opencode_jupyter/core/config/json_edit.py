"""Set one top-level entry of a JSON file; every other byte stays as it was."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ..errors import ToolError
from .parse import key_positions

_BLANK = " \t\r\n"
_FIRST_LINE = re.compile(r'[ \t\r\n]*\{[ \t]*\r?\n(?:[ \t]*\r?\n)*([ \t]*)"')
"""The indentation of the first entry."""
_VALUE = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
INDENT = "  "
"""Of a file that has no entry on a line of its own; OpenCode's own files have two blanks."""


class NotStrictError(Exception):
    """The text is no plain JSON object: rewriting a part of it could lose something. Says why."""


class JsonText:
    """The text of a JSON object.

    Args:
        raw: the bytes of a file; none at all for an empty object.

    Attributes:
        raw: the bytes.
        text: the characters, without a byte order mark.
        data: what they stand for.

    Raises:
        NotStrictError: it has comments or trailing commas, names an entry twice, is no object, or no UTF-8.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
        try:
            self.text = raw[len(self._mark) :].decode("utf-8")
        except UnicodeDecodeError as error:
            raise NotStrictError("is not UTF-8 text") from error
        self.data: dict[str, Any] = _parse_strictly(self.text) if self.text.strip(_BLANK) else {}

    def with_entry(self, name: str, value: Any) -> bytes:
        """The file's new bytes with `value` under `name`: in the old one's place, else as the last entry."""
        text = self.text if self.text.strip(_BLANK) else "{}\n"
        is_empty = not self.text.strip(_BLANK) or not self.data
        first = _FIRST_LINE.match(text)
        unit = first[1] if first else INDENT if is_empty or "\n" in text.strip(_BLANK) else None
        newline = "\r\n" if "\r\n" in text else "\n"
        colon = ":" if unit is None and '": ' not in text else ": "
        value_text = _dump(value, unit, newline, colon)
        last = text.index("{") + 1
        for key, start, end in top_level_entries(text):
            if key == name:
                return self._mark + _encode(text[:start] + value_text + text[end:])
            last = end
        entry = f"{json.dumps(name)}{colon}{value_text}"
        if is_empty:
            close = text.index("}", last)
            return self._mark + _encode(f"{text[:last]}{newline}{unit}{entry}{newline}{text[close:]}")
        gap = f",{newline}{unit}" if unit is not None else "," + colon[1:]
        return self._mark + _encode(text[:last] + gap + entry + text[last:])


def read(path: Path) -> JsonText | None:
    """A file's text, None if there is no such file.

    Raises:
        NotStrictError: see `JsonText`.
        ToolError: it is there and is no file that can be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise ToolError(f"{path} is not a regular file")
        return JsonText(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ToolError(f"{path} can't be read: {error.strerror or error}") from error


def _parse_strictly(text: str) -> dict[str, Any]:
    def pairs(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(entries)
        if len(out) < len(entries):
            raise NotStrictError("names an entry twice")
        return out

    try:
        data = json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise NotStrictError("has comments or other things that plain JSON does not have") from error
    if not isinstance(data, dict):
        raise NotStrictError("is not an object ({...})")
    return data


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrictError(f"has {name}, which is not JSON")


def top_level_entries(text: str) -> Iterator[tuple[str, int, int]]:
    """The top-level entries of a strict object: name, start and end of its value."""
    decoder = json.JSONDecoder()
    for keys, at in key_positions(text):
        if len(keys) == 1:
            _, end = decoder.raw_decode(text, at)
            start = _VALUE.match(text, end).end()  # type: ignore[union-attr]
            yield keys[0], start, decoder.raw_decode(text, start)[1]


def _dump(value: Any, unit: str | None, newline: str, colon: str) -> str:
    if unit is None:
        return json.dumps(value, ensure_ascii=False, separators=("," + colon[1:], colon))
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + unit).join(lines)


def _encode(text: str) -> bytes:
    # A file's name may hold bytes that are no text; JSON can say those (as lone surrogates) only with an escape.
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text).encode("utf-8")
