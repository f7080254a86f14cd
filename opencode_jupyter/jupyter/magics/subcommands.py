"""One line of a magic with sub-commands taken apart: its options, and how its work is waited for."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import InvalidArgumentsError
from ..error_display import for_cell
from ..waiting import Waiter
from .words import Word

if TYPE_CHECKING:
    from ...workspace import Workspace
    from ..notebook import Notebook

T = TypeVar("T")


class LineRequest:
    """One line: its words, and what they are about.

    Attributes:
        notebook: where it was said.
        line: the line.
        rest: the words behind the sub-command.
    """

    def __init__(self, notebook: Notebook, line: str, rest: list[Word]) -> None:
        self.notebook = notebook
        self.line = line
        self.rest = rest

    @property
    def workspace(self) -> Workspace:
        """The notebook's workspace."""
        return self.notebook.workspace

    def flag(self, name: str) -> bool:
        """Whether an option without a value is given; it is taken out of the words."""
        found = [word for word in self.rest if word.text == name and not word.quoted]
        self.rest = [word for word in self.rest if word not in found]
        return bool(found)

    def option(self, name: str) -> str | None:
        """An option's value, ``--name VALUE`` or ``--name=VALUE``; both words are taken out.

        Raises:
            InvalidArgumentsError: it has no value.
        """
        for place, word in enumerate(self.rest):
            if word.quoted or word.key is not None:
                continue
            head, equals, value = word.text.partition("=")
            if head != name:
                continue
            if equals:
                del self.rest[place]
                return value
            if place + 1 >= len(self.rest):
                raise InvalidArgumentsError(f"{name} needs a value after it.")
            given = self.rest[place + 1]
            del self.rest[place : place + 2]
            return said(given)
        return None

    def end(self, usage: str) -> None:
        """Refuse what is left of the line.

        Raises:
            InvalidArgumentsError: there is something.
        """
        if self.rest:
            left = " ".join(said(word) for word in self.rest)
            raise InvalidArgumentsError(f"{left} is not understood here. {usage}")

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the engine and wait for it; an interrupt ends both."""
        future = self.notebook.engine.submit(work)
        try:
            return Waiter(lambda reason: _cancel(future), self.notebook.beat).wait(future)
        except KeyboardInterrupt as error:
            raise for_cell(error) from None


def said(word: Word) -> str:
    """A word as it was meant; ``key=value`` whole."""
    return word.text if word.key is None else f"{word.key}={word.text}"


def _cancel(future: Any) -> None:
    future.cancel()
