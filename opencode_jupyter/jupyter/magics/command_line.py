"""Reads the lines of magics: subcommands with their options and words, and options of ``%tool`` and ``%%agent``."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from ...core.errors import InvalidArgumentsError
from ...core.suggestions import did_you_mean
from ..error_display import for_cell
from .commands import LIST, MagicCommands, MagicOption, MagicOptions
from .line_syntax import LineWord, json_object, line_error, next_word, skip_blanks, words

if TYPE_CHECKING:
    from ...workspace import Workspace
    from ..notebook import Notebook

T = TypeVar("T")
Line = TypeVar("Line", bound="CommandLine")


class CommandLine:
    """A line; each method removes the words that it reads.

    Args:
        notebook: where it was typed.
        commands: those of the magic.
        line: the line.
        end: where the words of a magic end; the end of the line if left out.

    Attributes:
        command: the subcommand; ``list`` if the line names none.
        usage: how that is typed.
        options: its options, and whether each takes a value.
        rest: the words after it.
    """

    def __init__(self, notebook: Notebook, commands: MagicCommands, line: str, end: int | None = None) -> None:
        self.notebook = notebook
        self.line = line
        self.rest = words(line[:end])
        named = bool(self.rest) and not self.rest[0].text.startswith("-")
        self.command = self.rest.pop(0).text if named else LIST
        if self.command not in commands.by_name:
            raise commands.unknown_subcommand(self.command)
        self.usage = commands.usage(self.command)
        self.options = commands.by_name[self.command].options

    @property
    def workspace(self) -> Workspace:
        """The notebook's workspace."""
        return self.notebook.workspace

    def run(self, handlers: Mapping[str, Callable[[Self], Any]]) -> Any:
        """Run the handler of the command, in the folder where the next call runs."""
        self.notebook.follow_folder()
        return handlers[self.command](self)

    def flag(self, name: str) -> bool:
        """Whether an option without a value is set."""
        matches = [word for word in self.rest if word.text == name and not word.quoted]
        self.rest = [word for word in self.rest if word not in matches]
        return bool(matches)

    def option(self, name: str) -> str | None:
        """An option's value, ``--name VALUE`` or ``--name=VALUE``.

        Raises:
            InvalidArgumentsError: it has no value.
        """
        for index, word in enumerate(self.rest):
            if word.quoted or word.key is not None:
                continue
            head, equals, value = word.text.partition("=")
            if head != name:
                continue
            if equals:
                del self.rest[index]
                return value
            if index + 1 >= len(self.rest):
                raise InvalidArgumentsError(f"{name} needs a value after it: {self.usage}")
            value = as_typed(self.rest[index + 1])
            del self.rest[index : index + 2]
            return value
        return None

    def next(self, question: str) -> str:
        """The next word.

        Raises:
            InvalidArgumentsError: there is none; the message is the question.
        """
        if not self.rest:
            raise InvalidArgumentsError(f"{question} {self.usage}")
        return as_typed(self.rest.pop(0))

    def count(self, default: int) -> int:
        """The number after ``-n``.

        Raises:
            InvalidArgumentsError: it is no whole number above 0.
        """
        text = self.option("-n")
        return default if text is None else whole_number("-n", text)

    def last_count(self, default: int) -> int:
        """The number that is the rest of the line, with or without ``-n``.

        Raises:
            InvalidArgumentsError: it is no whole number above 0, or more is left.
        """
        default = self.count(default)
        if self.rest:
            default = whole_number(self.usage.partition(" [")[0], " ".join(map(as_typed, self.rest)))
        return default

    def end(self) -> None:
        """Refuse further words.

        Raises:
            InvalidArgumentsError: there are some.
        """
        if self.rest:
            unread = " ".join(map(as_typed, self.rest))
            raise InvalidArgumentsError(f"{unread} is not understood here. Usage: {self.usage}")

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the engine and wait for it; an interrupt ends both."""
        try:
            return self.notebook.runner.wait(work)
        except KeyboardInterrupt as error:
            raise for_cell(error) from None


def as_typed(word: LineWord) -> str:
    """A word's value; ``key=value`` whole."""
    return word.text if word.key is None else f"{word.key}={word.text}"


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
    text = re.split(r"\s", line[start:], maxsplit=1)[0]
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
        return OptionWord(option, _checked_value(option, value), word.start, word.end)
    except InvalidArgumentsError as error:
        raise line_error(str(error), line, word.start) from None


def _checked_value(option: MagicOption, text: str) -> Any:
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
