"""One line of a magic with subcommands: its command, its options, its other words."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ...core.errors import InvalidArgumentsError
from ..error_display import for_cell
from .commands import LIST, MagicCommands
from .line_syntax import LineWord, words
from .option_reader import whole_number

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
