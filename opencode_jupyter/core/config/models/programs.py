"""Programs of the project that the tools run: formatters and language servers."""

from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Tag

from .section import TAG, Section, Texts, Unknown, doc


class FormatterEntry(Section):
    """A program that puts a file's layout right after it was changed."""

    unknown: ClassVar[Unknown] = "wrong"
    command: Texts = doc('Program and arguments; "$FILE" stands for the file.')
    extensions: Texts = doc('Endings of the files it formats, such as ".py".')
    environment: dict[str, str] = doc("Set in its environment.")
    disabled: bool = doc("Never run it.")


class LspEntry(Section):
    """A language server."""

    unknown: ClassVar[Unknown] = "wrong"
    command: Texts = doc("Program and arguments.")
    extensions: Texts = doc('Endings of the files it serves, such as ".py".')
    env: dict[str, str] = doc("Set in its environment.")
    initialization: dict[str, Any] = doc("Its initializationOptions.")
    disabled: bool = doc("Never start it.")


def _kind(value: Any) -> str:
    return TAG + ("switch" if isinstance(value, bool) else "object")


_Switch = Annotated[bool, Tag(TAG + "switch")]
Formatter = Annotated[_Switch | Annotated[FormatterEntry, Tag(TAG + "object")], Discriminator(_kind)]
Lsp = Annotated[_Switch | Annotated[LspEntry, Tag(TAG + "object")], Discriminator(_kind)]
Formatters = Annotated[_Switch | Annotated[dict[str, Formatter], Tag(TAG + "object")], Discriminator(_kind)]
"""``false`` for none at all, or entries by name; an entry may be ``false`` too."""
Servers = Annotated[_Switch | Annotated[dict[str, Lsp], Tag(TAG + "object")], Discriminator(_kind)]
"""``false`` for none at all, or entries by name; an entry may be ``false`` too."""
