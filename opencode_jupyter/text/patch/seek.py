"""Find a run of lines in a file: exactly, then more and more kindly (docs/opencode/tools.md 9.3).

Each pass keeps an index from a line to where it stands, so that ten thousand searches in one file take about as long
as reading it ten times.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property

from ..replace import WHITE

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
"""What is compared in each pass; the first pass that finds anything wins."""


def seek(lines: Sequence[str], pattern: Sequence[str], start: int = 0, end_of_file: bool = False) -> int:
    """Where `pattern` stands in `lines`, as `Seeker.seek`."""
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
        for one in self._passes:
            found = one.seek(pattern, start, end_of_file)
            if found >= 0:
                return found
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
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for index, line in enumerate(self._lines):
            places.setdefault(line, []).append(index)
        return places

    def seek(self, pattern: Sequence[str], start: int, end_of_file: bool) -> int:
        wanted = [self._alike(line) for line in pattern]
        lines, size = self._lines, len(wanted)
        last = len(lines) - size
        if end_of_file and last >= start and lines[last:] == wanted:
            return last
        # The rarest line of the pattern has the fewest places to look at.
        places: Sequence[int] = ()
        offset, fewest = 0, len(lines) + 1
        for index, line in enumerate(wanted):
            here = self._places.get(line, ())
            if len(here) < fewest:
                places, offset, fewest = here, index, len(here)
                if not fewest:
                    return -1
        first, final = wanted[0], wanted[-1]
        for at in range(bisect_left(places, start + offset), len(places)):
            begin = places[at] - offset
            if begin > last:
                break
            if lines[begin] == first and lines[begin + size - 1] == final and lines[begin : begin + size] == wanted:
                return begin
        return -1
