"""The patch language: text to hunks (docs/opencode/tools.md 9.2).

Read as OpenCode reads it, and more kindly where that would drop a part of the patch without a word: padded markers
and headers, a first chunk without ``@@`` and unprefixed context lines mean what they mean to Codex, and a line that
can mean nothing is an error.

PatchError
├── PatchFormatError      it is no patch, or a part of it can't be understood
├── PatchMismatchError    the file does not have the lines it should change
└── PatchFileError        a file can't be changed so (missing, a directory, ...)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...core.errors import ToolError
from ..replace import WHITE

BEGIN = "*** Begin Patch"
END = "*** End Patch"
END_OF_FILE = "*** End of File"
ADD, DELETE, UPDATE, MOVE = "*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"

_HEREDOC = re.compile(r"(?:cat\s+)?<<(['\"]?)(\w+)\1[^\S\n]*\n(.*?)\n\2\Z", re.DOTALL)


class PatchError(ToolError):
    """A patch that can't be applied. Nothing is changed.

    Attributes:
        plain: OpenCode puts no ``Error:`` before this one.
    """

    plain = False


class PatchFormatError(PatchError):
    """The text is no patch."""


class PatchMismatchError(PatchError):
    """A file does not have the lines that the patch expects."""


class PatchFileError(PatchError):
    """A file that the patch names can't be changed as it says."""

    def __init__(self, message: str, *, plain: bool = False, for_person: str = "") -> None:
        super().__init__(message, for_person=for_person)
        self.plain = plain


Sign = Literal[" ", "-", "+", "?"]
"""How a line stands in a chunk: context, old, new; ``?`` has no sign and is most likely context."""

_SIGNS: dict[str, Sign] = {" ": " ", "-": "-", "+": "+"}


class Line(NamedTuple):
    """One line of a chunk."""

    sign: Sign
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines to find in a file, and what to put there."""

    lines: tuple[Line, ...]
    context: str | None = None
    """A line after which they stand (``@@ line``)."""
    end_of_file: bool = False
    """They are the file's last ones, if they are there at all."""

    def readings(self) -> list[tuple[Line, ...]]:
        """The possible meanings, the likeliest first: unsigned lines as context, or ignored (as in OpenCode)."""
        unsigned = [line for line in self.lines if line.sign == "?"]
        if not unsigned:
            return [self.lines]
        literal = tuple(Line(" ", text) if sign == "?" else Line(sign, text) for sign, text in self.lines)
        ignoring = tuple(line for line in self.lines if line.sign != "?")
        if any(line.sign != "+" for line in ignoring):
            return [literal, ignoring]
        # Nothing to find but the unsigned lines: empty ones are spacing, others say where.
        return [literal] if any(line.text.strip(WHITE) for line in unsigned) else [ignoring]


@dataclass(frozen=True, slots=True)
class AddFile:
    """Make a file."""

    path: str
    contents: str
    """Without a final newline."""


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Remove a file."""

    path: str


@dataclass(frozen=True, slots=True)
class UpdateFile:
    """Change a file, and its name if `move_path` is given."""

    path: str
    chunks: tuple[Chunk, ...] = ()
    move_path: str | None = None


Hunk = AddFile | DeleteFile | UpdateFile


def parse(text: str) -> list[Hunk]:
    """The hunks of a patch, in order; empty if there is none between the markers.

    Raises:
        PatchFormatError: it is no patch, or a part of it can't be understood.
    """
    lines = unwrap(text).split("\n")
    begin, end = _markers(lines)
    return _HunkReader(lines, begin + 1, end).hunks()


def unwrap(text: str) -> str:
    """`text` without white space around it, and without the shell's heredoc if it is in one."""
    text = text.strip(WHITE)
    match = _HEREDOC.match(text)
    return match[3] if match is not None else text


def _markers(lines: Sequence[str]) -> tuple[int, int]:
    stripped = [line.strip(WHITE) if "***" in line else "" for line in lines]
    begin = next((i for i, line in enumerate(stripped) if line == BEGIN), None)
    ends = [i for i, line in enumerate(stripped) if line == END]
    # An indented end marker may be a context line of a text about patches: it counts if there is no other.
    plain = [i for i in ends if lines[i].startswith("*")]
    end = plain[0] if plain else ends[-1] if ends else None
    if begin is None or end is None or begin >= end:
        raise PatchFormatError(
            "Invalid patch format: missing Begin/End markers",
            for_person=f"This is not a patch: a patch is between the lines {BEGIN} and {END}.",
        )
    if any(line.startswith("*") and stripped[i] == BEGIN for i, line in enumerate(lines) if i > end):
        raise PatchFormatError(
            f"Invalid patch format: another {BEGIN} follows {END}. Put all changes between one pair of markers."
        )
    return begin, end


class _HunkReader:
    """Goes through the lines between the markers."""

    def __init__(self, lines: Sequence[str], start: int, end: int) -> None:
        self._lines = lines
        self._at = start
        self._end = end
        self._stray: str | None = None

    def hunks(self) -> list[Hunk]:
        out: list[Hunk] = []
        while self._at < self._end:
            hunk = self._header()
            if hunk is not None:
                out.append(hunk)
        if out and self._stray is not None:
            raise PatchFormatError(self._stray)
        return out  # without any hunk the caller says so

    def _header(self) -> Hunk | None:
        line = self._lines[self._at].strip(WHITE)
        self._at += 1
        if path := _after(line, ADD):
            return AddFile(path, self._contents(path))
        if path := _after(line, DELETE):
            return self._deleted(path)
        if path := _after(line, UPDATE):
            return self._update(path)
        if line.startswith(("***", "+", "-", "@@")) and line != END_OF_FILE and self._stray is None:
            self._stray = (
                f"Invalid patch format: line {self._at} is not a valid hunk header: {line[:200]!r}. "
                f"Valid ones are '{ADD} <path>', '{DELETE} <path>' and '{UPDATE} <path>'."
            )
        return None

    def _deleted(self, path: str) -> DeleteFile:
        """A deletion; the old lines that models write below it are skipped."""
        while self._at < self._end and not self._lines[self._at].lstrip(WHITE).startswith("***"):
            self._at += 1
        return DeleteFile(path)

    def _contents(self, path: str) -> str:
        out = []
        while self._at < self._end:
            line = self._lines[self._at]
            if line.startswith("+"):
                out.append(line[1:])
            elif line.lstrip(WHITE).startswith("***"):
                break
            elif line.strip(WHITE):
                raise PatchFormatError(
                    f"Invalid patch format: line {self._at + 1}, in the new file {path}, must begin with '+': "
                    f"{line[:200]!r}"
                )
            self._at += 1
        return "\n".join(out)

    def _update(self, path: str) -> UpdateFile:
        move = None
        if self._at < self._end and self._lines[self._at].strip(WHITE).startswith(MOVE):
            move = _after(self._lines[self._at].strip(WHITE), MOVE)
            if not move:
                raise PatchFormatError(f"Invalid patch format: line {self._at + 1} names no file to move {path} to.")
            self._at += 1
        chunks: list[Chunk] = []
        while self._at < self._end and not self._ends_update(self._lines[self._at]):
            line = self._lines[self._at]
            if line.startswith("@@"):
                self._at += 1
                chunks.append(self._chunk(line[2:].strip(WHITE)))
            elif not line.strip(WHITE):
                self._at += 1
            elif line.startswith("--- ") and self._lines[self._at + 1].startswith("+++ "):
                self._at += 2  # the head of a unified diff
            elif not chunks:
                first = self._chunk("")
                if any(entry.sign != "?" for entry in first.lines):
                    chunks.append(first)
            else:
                raise PatchFormatError(
                    f"Invalid patch format: line {self._at + 1} stands after {END_OF_FILE}, in no chunk: {line[:200]!r}"
                )
        return UpdateFile(path, tuple(chunks), move)

    def _ends_update(self, line: str) -> bool:
        return line.startswith("***") or line.strip(WHITE).startswith((ADD, DELETE, UPDATE))

    def _chunk(self, context: str) -> Chunk:
        out: list[Line] = []
        end_of_file = False
        while self._at < self._end:
            line = self._lines[self._at]
            if line.rstrip(WHITE) == END_OF_FILE:
                end_of_file = True
                self._at += 1
                break
            if line.startswith(("@@", "***")):
                break
            self._at += 1
            line = line.removesuffix("\r")  # the file says how its lines end
            sign = _SIGNS.get(line[:1])
            if sign is not None:
                out.append(Line(sign, line[1:]))
            elif not line.startswith("\\ No newline at end of file"):
                out.append(Line("?", line))
        while out and out[-1].sign == "?" and not out[-1].text.strip(WHITE):
            out.pop()
        return Chunk(tuple(out), context or None, end_of_file)


def _after(line: str, marker: str) -> str:
    """The path that follows a marker; empty if it is another line."""
    return line[len(marker) :].strip(WHITE) if line.startswith(marker) else ""
