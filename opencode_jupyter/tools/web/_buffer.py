"""Markdown as it grows, in few and large pieces: the text of an element, of a cell, or of the page."""

from __future__ import annotations

PIECES = 4096
"""Pieces that are packed into one: a text of a few letters takes 60 bytes of its own."""


class Buffer:
    """Text that is only added to.

    Attributes:
        breaks: line ends that are due before what comes next; of those of two neighbours the larger number counts.
        soft: the same, but due only before something that is no white space.
        begins: whether the first piece was running text.
        ends: whether the last piece was.
    """

    __slots__ = ("begins", "breaks", "ends", "packed", "pieces", "soft")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.packed: list[str] = []
        self.breaks = self.soft = 0
        self.begins = self.ends = False

    def put(self, piece: str, text: bool = False) -> None:
        """Add a piece that neither begins nor ends with a line end."""
        if self.soft and not piece.isspace():
            self.breaks, self.soft = max(self.breaks, self.soft), 0
        if self.breaks:
            self.pieces.append("\n\n"[: self.breaks])
            self.breaks = 0
        elif text and not self.pieces and not self.packed:
            self.begins = True
        self.ends = text
        self.pieces.append(piece)
        if len(self.pieces) > PIECES:
            self.packed.append("".join(self.pieces))
            self.pieces.clear()

    def put_lines(self, lines: str) -> None:
        """Add what may begin and end with line ends."""
        inner = lines.lstrip("\n")
        self.breaks = max(self.breaks, len(lines) - len(inner))
        stripped = inner.rstrip("\n")
        if stripped:
            self.put(stripped)
        self.breaks = max(self.breaks, len(inner) - len(stripped))

    def end_line(self, breaks: int) -> None:
        """Say how many line ends are due here."""
        if breaks > self.breaks:
            self.breaks = breaks

    def mark(self) -> tuple[int, int, int]:
        """A place to go back to."""
        return len(self.pieces), len(self.packed), self.breaks

    def back(self, mark: tuple[int, int, int]) -> None:
        """Forget what came since, if it is not packed yet."""
        if len(self.packed) == mark[1]:
            del self.pieces[mark[0] :]
            self.breaks = mark[2]

    def take(self) -> Buffer:
        """All of it as a buffer of its own, and this one empty."""
        other = Buffer()
        other.pieces, other.packed, other.breaks = self.pieces, self.packed, self.breaks
        self.pieces, self.packed, self.breaks = [], [], 0
        return other

    def follow(self, before: Buffer, breaks: int) -> None:
        """Set what another has before this one."""
        if not self.pieces and not self.packed:
            self.breaks = max(self.breaks, before.breaks)
        elif before.pieces or before.packed:
            before.pieces.append("\n\n"[: max(before.breaks, breaks)])
        for chunk in (self.packed, self.pieces):  # line ends before the first are among those
            if chunk:
                chunk[0] = chunk[0].lstrip("\n")
                break
        before.pieces += self.packed
        before.pieces += self.pieces
        self.pieces, self.packed = before.pieces, before.packed

    def value(self) -> str:
        """The text, with the line ends that are due."""
        return "".join([*self.packed, *self.pieces]) + "\n" * self.breaks
