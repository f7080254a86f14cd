"""The new content of an updated file: lines are found, exactly or nearly, and replaced (docs/opencode/tools.md 9.4)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from ..closest_text import describe_nearest
from ..encoding import printable
from ..replace import WHITE
from .grammar import Chunk, Line, PatchMismatchError

_UNIFIED = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
"""What follows ``@@`` in a unified diff: numbers that say nothing here."""


class _LineReplacement(NamedTuple):
    at: int
    old: int
    """The number of lines that are removed."""
    lines: tuple[Line, ...]


def apply_chunks(text: str, chunks: Sequence[Chunk], path: str) -> str:
    """`text` with `chunks` applied.

    A line that the patch shows as context takes the patch's spelling, every line keeps its line end (new ones
    take that of the line before), and the last line gets one. With no chunk the text stays as it is.

    Args:
        text: bytes that are no UTF-8 as lone surrogates.
        chunks: in the order of the file.
        path: shown in errors.

    Raises:
        PatchMismatchError: lines that should be there are not.
    """
    if not chunks:
        return text
    file = _File(text)
    out: list[str] = []
    done = 0
    for at, old, lines in sorted(_replacements(file, chunks, path), key=lambda replacement: replacement.at):
        out.extend(file.whole(done, at))
        out.extend(file.rewritten(max(at, done), lines))
        done = max(done, at + old)
    out.extend(file.whole(done, len(file.bodies)))
    return "".join(out)


def _nearest(file: _File, snippet: str) -> str:
    return describe_nearest("\n".join(file.bodies), snippet) or "No line is like it."


def _replacements(file: _File, chunks: Sequence[Chunk], path: str) -> list[_LineReplacement]:
    seeker = Seeker([printable(body) for body in file.bodies] if not file.exact else file.bodies)
    out = []
    cursor = 0
    for chunk in chunks:
        if chunk.context is not None:
            index = seeker.seek([chunk.context], cursor)
            if index >= 0:
                cursor = index + 1
            elif not _UNIFIED.match(chunk.context):
                raise PatchMismatchError(
                    f"Failed to find context '{chunk.context}' in {path}",
                    for_person=f"{path} has no line `{chunk.context}`, which the patch names after @@. "
                    + _nearest(file, chunk.context),
                )
        replacement = _place(seeker, chunk, cursor, len(file.bodies))
        if replacement is None:
            old = "\n".join(text for sign, text in chunk.readings()[0] if sign != "+")
            raise PatchMismatchError(
                f"Failed to find expected lines in {path}:\n{old}",
                for_person=f"{path} does not have the lines that the patch changes. {_nearest(file, old)}",
            )
        if replacement.old:
            cursor = replacement.at + replacement.old
        elif replacement.at and file.bodies[-1] == "":
            replacement = replacement._replace(
                at=replacement.at - 1
            )  # what is added at the end stands before one empty last line
        out.append(replacement)
    return out


def _place(seeker: Seeker, chunk: Chunk, cursor: int, end: int) -> _LineReplacement | None:
    for lines in chunk.readings():
        old = [printable(text) for sign, text in lines if sign != "+"]
        if not old:
            return _LineReplacement(end, 0, lines)
        index = seeker.seek(old, cursor, chunk.end_of_file)
        if index >= 0:
            return _LineReplacement(index, len(old), lines)
        if old[-1] == "" and len(old) > 1:  # it may stand for the end of the last line
            index = seeker.seek(old[:-1], cursor, chunk.end_of_file)
            if index >= 0:
                return _LineReplacement(index, len(old) - 1, _without_last(lines))
    return None


def _without_last(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """`lines` without the last old line, and without an empty last new one."""
    index = max(i for i, line in enumerate(lines) if line.sign != "+")
    replacement = [Line("+", "")] if lines[index].sign == " " else []  # it still stands for a new line
    out = [*lines[:index], *replacement, *lines[index + 1 :]]
    last = max((i for i, line in enumerate(out) if line.sign != "-"), default=None)
    if last is not None and out[last].text == "" and out[last].sign == "+":
        del out[last]
    return tuple(out)


class _File:
    """A file's lines, and how each of them ends."""

    def __init__(self, text: str) -> None:
        self.exact = text.isascii() or printable(text) == text
        self.bodies = text.split("\n")
        ended = self.bodies[-1] == ""
        if ended:
            self.bodies.pop()
        self._newline = "\n"
        self._ends: list[str] | None = None  # all end with a newline
        if "\r\n" in text:
            crlf = text.count("\r\n")
            self._newline = "\r\n" if crlf * 2 >= len(self.bodies) else "\n"
            unended = None if ended else self.bodies.pop()
            self._ends = ["\r\n" if body.endswith("\r") else "\n" for body in self.bodies]
            self.bodies = [body.removesuffix("\r") for body in self.bodies]
            if unended is not None:
                self.bodies.append(unended)
                self._ends.append(self._newline)

    def _end(self, index: int) -> str:
        return self._newline if self._ends is None or not 0 <= index < len(self._ends) else self._ends[index]

    def whole(self, start: int, end: int) -> list[str]:
        """Lines as they are."""
        if self._ends is None:
            return [body + "\n" for body in self.bodies[start:end]]
        return [body + ending for body, ending in zip(self.bodies[start:end], self._ends[start:end], strict=True)]

    def rewritten(self, at: int, lines: Sequence[Line]) -> list[str]:
        """The lines that replace the old ones of `lines`, which were found at `at`."""
        out = []
        last = at if lines and any(line.sign != "+" for line in lines) else at - 1
        for sign, text in lines:
            if sign == "+":
                out.append(text + self._end(last))
                continue
            last = at
            at += 1
            if sign == " ":
                body = self.bodies[last]
                # What the patch can't spell must not be lost.
                keep = not self.exact and printable(body) != body
                out.append((body if keep else text) + self._end(last))
        return out


# OpenCode's and, from U+2212 and the spaces beyond U+00A0 on, Codex's
_PUNCTUATION = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2026": "...",
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)


def _exact(line: str) -> str:
    return line


def _no_trailing_space(line: str) -> str:
    return line.rstrip(WHITE)


def _no_space_around(line: str) -> str:
    return line.strip(WHITE)


def _plain_punctuation(line: str) -> str:
    line = line.strip(WHITE)
    return line if line.isascii() else line.translate(_PUNCTUATION)


PASSES: tuple[Callable[[str], str], ...] = (_exact, _no_trailing_space, _no_space_around, _plain_punctuation)
"""The normalisation of each pass; the first pass that finds anything wins."""


def seek(lines: Sequence[str], pattern: Sequence[str], start: int = 0, end_of_file: bool = False) -> int:
    """The index of `pattern` in `lines`; see `Seeker.seek`."""
    return Seeker(lines).seek(pattern, start, end_of_file)


class Seeker:
    """Searches in the lines of one file."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._passes = [_Pass(lines, alike) for alike in PASSES]

    def seek(self, pattern: Sequence[str], start: int = 0, end_of_file: bool = False) -> int:
        """The index of the first line of `pattern`.

        Args:
            pattern: lines that follow each other.
            start: not before this index.
            end_of_file: look at the end of the file first, then from `start` on.

        Returns:
            -1 if it is not there; also for an empty pattern.
        """
        if not pattern:
            return -1
        for search in self._passes:
            index = search.seek(pattern, start, end_of_file)
            if index >= 0:
                return index
        return -1


class _Pass:
    """The search with one notion of equality."""

    def __init__(self, lines: Sequence[str], alike: Callable[[str], str]) -> None:
        self._original = lines
        self._alike = alike

    @cached_property
    def _lines(self) -> list[str]:
        return [self._alike(line) for line in self._original]

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        positions: dict[str, list[int]] = {}
        for index, line in enumerate(self._lines):
            positions.setdefault(line, []).append(index)
        return positions

    def seek(self, pattern: Sequence[str], start: int, end_of_file: bool) -> int:
        sought = [self._alike(line) for line in pattern]
        last = len(self._lines) - len(sought)
        if end_of_file and last >= start and self._lines[last:] == sought:
            return last
        # The rarest line of the pattern has the fewest places to look at.
        offset = min(range(len(sought)), key=lambda index: len(self._positions.get(sought[index], ())))
        positions = self._positions.get(sought[offset], [])
        for position in positions[bisect_left(positions, start + offset) :]:
            first = position - offset
            if self._lines[first : first + len(sought)] == sought:
                return first
        return -1
