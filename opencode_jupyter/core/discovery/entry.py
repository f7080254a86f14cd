"""One tool file as `FileTools` knows it: what was read of it, what it may give, what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..tool import Tool
from ..trust import Subject
from .find import ToolFile, stamp

if TYPE_CHECKING:
    from .content import Content

KIND = "tool file"
"""`Subject.kind` of these files."""
SHOWN = 200_000
"""Characters of a file's text that an ask carries."""

State = Literal["new", "untrusted", "missing", "loaded", "failed"]
"""``missing``: what would run it is not on this machine, yet."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a tool file."""

    path: Path
    line: int | None
    """From 1; None if it is about the whole file."""
    message: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{where}: {self.message}"


@dataclass(slots=True, eq=False)
class Entry:
    """A tool file and its state."""

    file: ToolFile
    label: str
    """The file as a person reads it."""
    state: State = "new"
    content: Content | None = None
    """The content that was read; None before that."""
    guess: list[str] = field(default_factory=list)
    """Ids that it seems to give (`glance`), once it was read."""
    tools: list[Tool] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    module: str = ""
    """The name of its module, while it is loaded (Python)."""
    failure: str = ""
    """Why it was not loaded."""
    refused: bool = False
    """A person said no to this content."""
    asking: bool = False
    _subject: Subject | None = None

    def same(self) -> bool:
        """Return whether the file, and what it imports from beside it, still is what was seen of it."""
        if self.content is not None:
            return self.content.same()
        return stamp(self.file.path) == self.file.stamp

    def names(self, wanted: str) -> bool:
        """Return whether the file seems to give a tool of that id."""
        return any(wanted == id or wanted.lower() == id.lower() for id in self.guess)

    @property
    def ids(self) -> list[str]:
        """The ids it gives, or seems to give; where its text does not say, all that it could."""
        if self.state == "loaded":
            return [one.id for one in self.tools]
        name = self.file.namespace
        return self.guess or ([name, f"{name}_*"] if name else [])

    @property
    def subject(self) -> Subject:
        """The subject that a person would trust; the file must have been read."""
        assert self.content is not None
        if self._subject is not None:
            return self._subject
        shown = {
            "filepath": str(self.file.path),
            "content": self.content.text[:SHOWN],
            "ids": self.ids,
            "label": self.label,
            "size": sum(map(len, self.content.files.values())),
        }
        self._subject = Subject(KIND, str(self.file.path), self.content.digest, shown)
        return self._subject
