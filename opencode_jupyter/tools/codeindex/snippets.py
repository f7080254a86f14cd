"""The code of a hit, read from the file as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .extract import read_content
from .pieces import NOTEBOOK, Piece, decode, pieces
from .ranking import Hit


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a file as it is now.

    Attributes:
        path: relative to the project.
        text: the whole of it, in a notebook the cell's source.
    """

    path: str
    kind: str
    symbol: str
    line: int
    end_line: int
    score: float
    text: str

    def cut(self, characters: int) -> str:
        """Its text, from the start, in whole lines, at most so long; says how many lines are left out."""
        text = self.text
        if len(text) <= characters:
            return text
        lines = text.split("\n")
        beginning: list[str] = []
        room = characters - 40
        for line in lines:
            if len(line) + 1 > room:
                if not beginning:
                    beginning.append(line[: max(80, room)] + "...")
                break
            beginning.append(line)
            room -= len(line) + 1
        left = len(lines) - len(beginning)
        return "\n".join(beginning) + (f"\n... ({left} more lines)" if left else "")


def snippet(root: Path, hit: Hit) -> Snippet | None:
    """The piece of a hit in the file as it is; None if it is there no more."""
    mtime, size, data = read_content(str(root), hit.path)
    if not data:
        return None
    line, end = hit.line, hit.end_line
    notebook = Path(hit.path).suffix.lower() in NOTEBOOK
    if notebook or (mtime, size) != hit.state:
        same = [piece for piece in pieces(hit.path, data) if (piece.kind, piece.symbol) == (hit.kind, hit.symbol)]
        if not same:
            return None
        nearest = min(same, key=lambda piece: abs(piece.line - hit.line))
        line, end = nearest.line, nearest.end_line
        if notebook:
            return _of(hit, line, end, _cell(nearest))
    rows = decode(data).split("\n")
    return _of(hit, line, end, "\n".join(rows[line - 1 : end]))


def _of(hit: Hit, line: int, end: int, text: str) -> Snippet:
    return Snippet(hit.path, hit.kind, hit.symbol, line, end, round(hit.score, 3), text)


def _cell(piece: Piece) -> str:
    if piece.kind in ("cell", "section"):
        return piece.body or piece.doc
    name = piece.symbol.rpartition(".")[2]
    head = f"class {name}{piece.signature}:" if piece.kind == "class" else f"def {name}{piece.signature}:"
    doc = f'    """{piece.doc}"""\n' if piece.doc else ""
    return f"{head}\n{doc}{piece.body.strip(chr(10))}"
