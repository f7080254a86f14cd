"""Find the place in a file that resembles a text most, so that a person can see what differs."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches

LINES = 20_000
"""In a longer file only equal lines are looked for, not similar ones."""
SHOWN = 100
"""Characters of a line that are shown."""
SIMILAR = 0.6
FREQUENT = 50
"""A line that is there more often (a bracket, an empty one) does not tell where a text belongs."""


def describe_nearest(content: str, snippet: str) -> str:
    """A sentence on the place in `content` that is most like `snippet`; "" if nothing is.

    It names the first line that differs, as the file has it and as `snippet` has it.
    """
    lines, snippet_lines = content.split("\n"), snippet.strip("\n").split("\n")
    first = _best_aligned_line(lines, snippet_lines)
    if first is None:
        return ""
    for offset, line in enumerate(snippet_lines):
        number = first + offset
        if number >= len(lines):
            return f"The file ends at line {len(lines)}, where it would have to go on with {_quote(line)}."
        if number >= 0 and lines[number] != line:
            blanks = " (only white space differs)" if lines[number].split() == line.split() else ""
            return f"The nearest is at line {number + 1}: {_quote(lines[number])} instead of {_quote(line)}{blanks}."
    return ""


def line_numbers(content: str, snippet: str, most: int = 5) -> str:
    """The lines at which `snippet` begins, as ``3, 10 and 22``; "" if it is nowhere."""
    numbers: list[int] = []
    line, done, at = 1, 0, content.find(snippet) if snippet else -1
    while at >= 0 and len(numbers) <= most:
        line += content.count("\n", done, at)
        done = at
        numbers.append(line)
        at = content.find(snippet, at + 1)
    if len(numbers) > most:
        return ", ".join(map(str, numbers[:most])) + ", …"
    return " and ".join(filter(None, [", ".join(map(str, numbers[:-1])), *map(str, numbers[-1:])]))


def _best_aligned_line(lines: list[str], snippet_lines: list[str]) -> int | None:
    """The index of the line where the most lines of `asked` are at their place; by resemblance if none is."""
    positions: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.strip():
            positions.setdefault(line.strip(), []).append(number)
    votes = Counter(
        number - offset
        for offset, line in enumerate(snippet_lines)
        for number in positions.get(line.strip(), ())
        if len(positions[line.strip()]) <= FREQUENT
    )
    if votes:
        return max(votes, key=lambda first: (votes[first], -first))
    longest = max(range(len(snippet_lines)), key=lambda index: len(snippet_lines[index].strip()))
    if len(lines) > LINES or not snippet_lines[longest].strip():
        return None
    similar = get_close_matches(snippet_lines[longest].strip(), list(positions), 1, SIMILAR)
    return positions[similar[0]][0] - longest if similar else None


def _quote(line: str) -> str:
    return f"`{line if len(line) <= SHOWN else line[: SHOWN - 1] + '…'}`"
