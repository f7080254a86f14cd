r"""A magic's line cut into words: quotes as in a shell, ``key=value``, ``key:=json`` and ``f"..."`` values.

Nothing is expanded: ``$``, ``{}``, ``*`` and ``~`` stay as they are typed. A backslash outside quotes escapes only a
blank, a quote or a backslash, so that patterns like ``\d+`` need no quotes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentsError

_KEY = re.compile(r"([A-Za-z_][\w-]*)(:?=)")
_FSTRING = re.compile(r"[fF](['\"])")
BLANK = " \t\r\n"
_SHOWN = 100
"""Characters of a line that an error shows around the place it speaks of."""

EXPRESSION = (
    r"(?P<expression>(?P<head>[A-Za-z_]\w*)"
    r"(?:\.[A-Za-z_]\w*|\[(?:-?\d+|[A-Za-z_]\w*|\"[^\"\\{}\n]*\"|'[^'\\{}\n]*')\])*)"
)
"""A variable, or attributes and items of one: ``name``, ``a.b``, ``a[0]``, ``a["k"]``."""
VARIABLE = re.compile(rf"\{{{EXPRESSION}\}}")
"""The same in braces."""


class Word(NamedTuple):
    """One word of a line.

    Attributes:
        text: its value, quotes and escapes undone; of ``key=value`` the value alone.
        raw: the value as it was typed.
        start: where the word begins in the line; `end` is just behind it.
        key: the name before ``=`` or ``:=``, if there is one outside quotes.
        value: what follows ``:=``, decoded; None for other words.
        kind: ``plain``, ``json``, ``fstring``, or ``variable`` (``:={name}``).
        quoted: the value begins with a quote, so it is never an option.
    """

    text: str
    raw: str
    start: int
    end: int
    key: str | None = None
    value: Any = None
    kind: str = "plain"
    quoted: bool = False


def line_error(message: str, line: str, position: int, tool: str = "") -> InvalidArgumentsError:
    """An error that shows the line and points at a place in it."""
    if not line.strip():
        return InvalidArgumentsError(message, tool=tool)
    first = max(0, position - _SHOWN // 2)
    shown = re.sub(r"\s", " ", line[first : first + _SHOWN])
    before = "..." if first else ""
    after = "..." if first + _SHOWN < len(line) else ""
    caret = " " * (len(before) + position - first) + "^"
    return InvalidArgumentsError(f"{message}\n  {before}{shown}{after}\n  {caret}", tool=tool)


def next_word(line: str, position: int = 0) -> Word | None:
    """The first word at or behind `position`; None at the end of the line.

    Raises:
        InvalidArgumentsError: a quote or a JSON value has no end; the message points at its beginning.
    """
    start = skip_blanks(line, position)
    if start >= len(line):
        return None
    match = _KEY.match(line, start)
    if match is None:
        return _value(line, start, start, None)
    key = match.group(1)
    if match.group(2) == ":=":
        return _json(line, start, match.end(), key)
    return _value(line, start, match.end(), key)


def words(line: str, position: int = 0) -> list[Word]:
    """All words from `position` on; see `next_word`."""
    found = []
    word = next_word(line, position)
    while word is not None:
        found.append(word)
        word = next_word(line, word.end)
    return found


def skip_blanks(line: str, position: int) -> int:
    """Where the next word begins."""
    while position < len(line) and line[position] in BLANK:
        position += 1
    return position


def json_object(line: str, position: int) -> tuple[dict[str, Any], int]:
    """The JSON object that begins at `position`, and where it ends.

    Raises:
        InvalidArgumentsError: it is no JSON, or has no end; the message points at the place.
    """
    value, end = _decode(line, position)
    if not isinstance(value, dict):  # it begins with {, so this can't be
        raise line_error("Give a JSON object of names and values here.", line, position)
    return value, end


def quote(text: str) -> str:
    """`text` as one word that `next_word` reads back."""
    if text and _KEY.match(text) is None and not re.search(r"[\s'\"\\]", text) and text[0] not in "-{;":
        return text if not text.endswith((";", "?")) else f"'{text}'"
    if "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _value(line: str, start: int, position: int, key: str | None) -> Word:
    fstring = _FSTRING.match(line, position)
    if fstring is not None:
        end = _end_of_quote(line, fstring.end() - 1, python=True)
        if end >= len(line) or line[end] in BLANK:
            raw = line[position:end]
            return Word(raw, raw, start, end, key, None, "fstring", quoted=True)
    pieces: list[str] = []
    at = position
    while at < len(line) and line[at] not in BLANK:
        char = line[at]
        variable = VARIABLE.match(line, at)
        if variable is not None:  # whole, with the quotes in {a["k"]}
            pieces.append(variable.group())
            at = variable.end()
        elif char in "'\"":
            end = _end_of_quote(line, at)
            inner = line[at + 1 : end - 1]
            pieces.append(inner if char == "'" else re.sub(r'\\(["\\])', r"\1", inner))
            at = end
        elif char == "\\" and at + 1 < len(line) and line[at + 1] in BLANK + "'\"\\":
            pieces.append(line[at + 1])
            at += 2
        else:
            pieces.append(char)
            at += 1
    return Word("".join(pieces), line[position:at], start, at, key, quoted=line[position : position + 1] in ("'", '"'))


def _end_of_quote(line: str, position: int, *, python: bool = False) -> int:
    """Just behind the quote that closes the one at `position`. Single quotes know escapes in Python only."""
    mark = line[position]
    stop = re.compile(rf"\\|{mark}" if mark == '"' or python else mark)
    found = stop.search(line, position + 1)
    while found is not None:
        if found.group() == mark:
            return found.end()
        found = stop.search(line, found.end() + 1)
    raise line_error(f"Unclosed quote: this {mark} has no partner.", line, position)


def _json(line: str, start: int, position: int, key: str) -> Word:
    if line[position : position + 1] == "'":  # JSON has no single quotes: they keep it together, as in a shell
        end = _end_of_quote(line, position)
        value, stop = _decode(line, position + 1, end - 1)
        if line[stop : end - 1].strip():
            raise line_error("The JSON value ends before this.", line, stop)
    else:
        if position >= len(line) or line[position] in BLANK:
            raise line_error(f"{key}:= needs a JSON value after it, such as {key}:=[1,2].", line, start)
        variable = VARIABLE.match(line, position)
        if variable is not None and line[variable.end() : variable.end() + 1] in ("", *BLANK):
            end = variable.end()  # {name} is no JSON: the user's variable
            return Word(variable["expression"], line[position:end], start, end, key, None, "variable", quoted=True)
        value, end = _decode(line, position)
        if end < len(line) and line[end] not in BLANK:
            raise line_error("The JSON value ends before this.", line, end)
    return Word(line[position:end], line[position:end], start, end, key, value, "json", quoted=True)


def _decode(line: str, position: int, end: int | None = None) -> tuple[Any, int]:
    try:
        value, stop = json.JSONDecoder(strict=False).raw_decode(line[:end], position)
    except json.JSONDecodeError as error:
        text = line[:end]
        place = min(error.pos, len(text))
        unclosed = place >= len(text.rstrip()) or "Unterminated" in error.msg
        said = "Unclosed JSON" if unclosed else f"This is not JSON: {error.msg}"
        raise line_error(said + _advice(text[place:]), line, place) from error
    except RecursionError:
        raise line_error("This JSON is nested too deeply.", line, position) from None
    return value, stop


def _advice(rest: str) -> str:
    for python, wanted in (("True", "true"), ("False", "false"), ("None", "null"), ("'", 'double quotes (")')):
        if rest.startswith(python):
            return f". Write {wanted} in JSON, not {python}."
    return "."
