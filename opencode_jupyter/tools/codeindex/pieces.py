"""A piece of a source file that can be found: a function, a class, a section, a cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Piece:
    """One thing to find.

    Attributes:
        kind: ``function``, ``method``, ``class``, ``module``, ``code``, ``cell``, ``section``.
        symbol: its name with those it stands in (``Reader.read``); for a section its heading.
        line: first line, counted from 1.
        end_line: last line.
        signature: parameters and return type as written; bases of a class.
        doc: its docstring, or the comment above it.
        body: its code without the docstring.
    """

    kind: str
    symbol: str
    line: int
    end_line: int
    signature: str = ""
    doc: str = ""
    body: str = ""
