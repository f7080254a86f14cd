"""What is looked for, and where it is in the rows of a page: ripgrep says it here too, so that both agree."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from ...text.visible import readable
from ...tools._ripgrep import find_rg

MARK_SECONDS = 0.5
"""How long the hits of one page may take; without them its lines are still found."""
MARKS = 5_000
"""Most hits that are marked in one page."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text or a regular expression (ripgrep's)."""

    text: str
    regex: bool = False
    case: bool = False

    def arguments(self) -> list[str]:
        """The arguments for ripgrep."""
        kind = [] if self.regex else ["--fixed-strings"]
        case = "--case-sensitive" if self.case else "--ignore-case"
        fixed = ["--no-config", "--color=never", "--text", "--encoding=none", "--no-filename", "--line-buffered"]
        return [*fixed, *kind, case, f"--regexp={self.text}"]


def marks_in(lines: list[str], pattern: Pattern) -> list[list[int]]:
    """The hits in the rows of a page.

    Args:
        lines: the rows, with their escapes.
        pattern: what is looked for.

    Returns:
        ``[row, start, end]`` for each hit: positions in the row's visible text, in UTF-16 units as browsers count.
        Empty where they can't be told: no ripgrep, or it took too long.
    """
    rg = find_rg()
    if rg is None or not lines:
        return []
    text = "\n".join(readable(line) for line in lines).encode("utf-8", "replace")
    try:
        done = subprocess.run(
            [rg, *pattern.arguments(), "--json", "-"],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=MARK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    marks: list[list[int]] = []
    for line in done.stdout.splitlines():
        if line.startswith(b'{"type":"match"'):
            marks += _marks(json.loads(line)["data"])
            if len(marks) >= MARKS:
                break
    return marks[:MARKS]


def _marks(data: dict[str, Any]) -> list[list[int]]:
    row, raw = data["line_number"] - 1, data["lines"]["text"].encode()
    spans = [(match["start"], match["end"]) for match in data["submatches"] if match["end"] > match["start"]]
    if raw.isascii():
        return [[row, start, end] for start, end in spans]
    return [[row, _units(raw[:start]), _units(raw[:end])] for start, end in spans]


def _units(text: bytes) -> int:
    return len(text.decode("utf-8", "replace").encode("utf-16-le")) // 2
