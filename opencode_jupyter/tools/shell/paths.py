"""Where the paths of a shell command lead."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from . import tables
from .findings import ShellAsks, add
from .words import Word

_MOST = 16
"""Folders that relative paths may start in before that counts as not known."""
FOLDERS = 200
"""Folders and unknown paths that are listed."""


class Paths:
    """Notes the folders outside the project that a command's paths reach.

    Args:
        asks: where they are noted.
        cwd: where the command runs.
        contains: whether a path is inside the project.
        home: where ``cd`` without an argument goes; None if that is not known.

    Attributes:
        moved: whether there was a ``cd``.
        written: names of the files that the line writes, or may, without their folders.
    """

    def __init__(self, asks: ShellAsks, cwd: Path, contains: Callable[[Path], bool], home: str | None) -> None:
        self.moved = False
        self._asks = asks
        self._contains = contains
        self._home = home
        self.written: set[str] = set()
        self._fresh: list[str] = []
        self._places: list[str] | None = [str(cwd)]
        """Where relative paths may start by now; None when only running it can tell."""

    def arguments(self, name: str, arguments: list[Word]) -> None:
        """The arguments of a command that takes paths."""
        moves = name in tables.MOVERS
        targets = [
            word
            for word in arguments
            if not word.source.startswith("-") and not (name == "chmod" and word.source.startswith("+"))
        ]
        if moves:
            self.moved = True
            if not targets and not arguments and self._home is not None:
                targets = [Word("~", self._home)]
        if name in tables.WRITERS or name in ("cp", "mv"):
            for word in targets:
                self.write(word)
        for word in targets:
            self.touch(word)
            if moves:
                self._move(word)

    def _move(self, word: Word) -> None:
        """After ``cd``: paths may start there too (or still where they did, if it fails or runs in a subshell)."""
        if word.text is None or word.glob or self._places is None or len(self._places) >= _MOST:
            self._places = None
            return
        add(self._places, [os.path.normpath(os.path.join(place, word.text)) for place in self._places])

    def write(self, word: Word) -> None:
        """A file that the line writes, or may."""
        self.written.add(os.path.basename(word.shown.rstrip("/")))
        self._fresh.append(word.shown)

    def fresh(self) -> list[str]:
        """The files that were written since this was asked last, as given."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def wrote(self, word: Word) -> bool:
        """Whether a word may name a file that the line has written before."""
        return bool(self.written) and os.path.basename(word.shown) in self.written

    def touch(self, word: Word) -> None:
        """A path the command touches: remember its folder if it is outside the project."""
        text = word.text
        if len(self._asks.directories) + len(self._asks.unknown) >= FOLDERS:
            add(self._asks.unknown, ["..."])  # more than a person would read
            return
        if text is not None and word.glob:
            text = _before_wildcard(text)
        if text is None or "\0" in text or (self._places is None and not os.path.isabs(text)):
            add(self._asks.unknown, [word.source])
            add(self._asks.reasons, [f"where {word.source} points is only known at run time"])
            return
        if not text:
            return
        for place in [""] if os.path.isabs(text) else self._places or []:
            written = os.path.normpath(os.path.join(place, text))
            if self._contains(Path(written)):
                continue
            actual = os.path.realpath(written)
            target = written if self._contains(Path(actual)) else actual
            folder = word.glob or os.path.isdir(target)
            add(self._asks.directories, [target if folder else os.path.dirname(target)])


def _before_wildcard(text: str) -> str | None:
    """The folder whose entries a wildcard is matched with; None if ``..`` comes after it."""
    parts = text.split("/")
    first = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts))
    if ".." in parts[first:]:
        return None
    return "/".join(parts[:first]) or ("/" if text.startswith("/") else ".")
