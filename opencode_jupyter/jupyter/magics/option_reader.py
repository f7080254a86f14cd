"""Reads one option of a ``%tool`` or ``%%agent`` line, and checks its value."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ...core.errors import InvalidArgumentsError
from ...core.suggestions import did_you_mean
from .commands import MagicOption, MagicOptions
from .line_syntax import json_object, line_error, next_word, skip_blanks


class OptionWord(NamedTuple):
    """An option on a line.

    Attributes:
        option: which.
        value: its value, checked; True for an option without one.
        start: where the value begins, for errors.
        end: where the rest of the line begins.
    """

    option: MagicOption
    value: Any
    start: int
    end: int


def read_option(options: MagicOptions, line: str, start: int, advice: str) -> OptionWord:
    """The option that begins at `start`.

    Args:
        options: those of the magic.
        line: the whole line.
        start: where a word with a ``-`` begins.
        advice: what to do, for the error about an unknown option.

    Raises:
        InvalidArgumentsError: it is unknown, or its value is missing or unusable; the message points at the place.
    """
    match = re.compile(r"\S*").match(line, start)
    text = match.group() if match is not None else ""
    name, equals, inline = text.partition("=")
    option = options.by_name.get(name)
    if option is None:
        hint = did_you_mean(name, [option.name for option in options.all]) if len(name) > 2 else ""
        raise line_error(f"There is no option {name}.{hint} {advice}", line, start)
    if not option.value:
        if equals:
            raise line_error(f"{option.name} takes no value.", line, start)
        return OptionWord(option, True, start, start + len(text))
    at = start + len(name) + 1 if equals else skip_blanks(line, start + len(text))
    if option.value == "SCHEMA" and line[at : at + 1] == "{":
        schema, end = json_object(line, at)
        return OptionWord(option, schema, at, end)
    word = None if equals and not inline else next_word(line, at)
    if word is None or (not equals and not word.quoted and re.match(r"-(?!\.?\d)", word.raw)):
        raise line_error(f"{option.name} needs a value: {option.usage}.", line, start)
    value = line[word.start : word.end] if word.key else word.text
    try:
        return OptionWord(option, checked_value(option, value), word.start, word.end)
    except InvalidArgumentsError as error:
        raise line_error(str(error), line, word.start) from None


def checked_value(option: MagicOption, text: str) -> Any:
    """The value that an option's text stands for.

    Raises:
        InvalidArgumentsError: it is unusable.
    """
    if option.value == "N":
        return whole_number(option.name, text)
    if option.value == "SECONDS":
        return positive_seconds(option.name, text)
    if option.field == "output" and not text.isidentifier():
        raise InvalidArgumentsError(f"{option.name} needs the name of a variable, not {text!r}.")
    return text


def whole_number(name: str, text: str) -> int:
    """A number above 0.

    Raises:
        InvalidArgumentsError: it is none.
    """
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise InvalidArgumentsError(f"{name} takes a whole number above 0, not {text}.")
    return int(text)


def positive_seconds(name: str, text: str) -> float:
    """A time above 0.

    Raises:
        InvalidArgumentsError: it is none.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidArgumentsError(f"{name} needs a number of seconds above 0, not {text!r}.")
    return seconds
