"""``?`` at the end of a ``%tool`` line.

IPython takes any line that ends with ``?`` for a question about its last name. A ``%tool`` line belongs to the tool:
``%tool read?`` asks for the tool's help, and ``%tool bash ls a?`` is a command with a wildcard.
"""

from __future__ import annotations

import tokenize
from typing import Any

from IPython.core.inputtransformer2 import TokenTransformBase, assemble_continued_line, find_end_of_continued_line

NAMES = ("tool", "tool_awaited")


class ToolQuestion(TokenTransformBase):
    """Turns such a line into the magic's call before IPython's own help does."""

    priority = 4
    """Before ``HelpEnd`` (5), which begins at the line's first token too: the earlier column would come first."""

    def __init__(self, start: tuple[int, int], magic: int) -> None:
        super().__init__(start)  # type: ignore[no-untyped-call]
        self.magic = magic
        """Column of the ``%``."""

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> ToolQuestion | None:
        """The first line of a cell that begins with ``%tool NAME`` (or assigns it) and ends with ``?``."""
        for line in tokens_by_line:
            if len(line) < 4 or line[-2].string != "?":
                continue
            at = next((i for i, t in enumerate(line) if t.type not in (tokenize.INDENT, tokenize.DEDENT)), 0)
            for i in range(at, len(line) - 3):
                first = i == at or line[i - 1].string == "="
                if first and line[i].string == "%" and line[i + 1].string in NAMES and line[i + 2].string != "?":
                    return cls(line[at].start, line[i].start[1])
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """The cell with that line as a call."""
        end = find_end_of_continued_line(lines, self.start_line)
        text = assemble_continued_line(lines, (self.start_line, self.magic), end)
        name, _, rest = text[1:].strip().partition(" ")
        head = lines[self.start_line][: self.magic]
        call = f"{head}get_ipython().run_line_magic({name!r}, {rest.strip()!r})\n"
        return [*lines[: self.start_line], call, *lines[end + 1 :]]
