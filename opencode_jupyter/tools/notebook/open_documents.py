"""Notebooks that are open in a front end, and what of each notebook a session has seen.

When a notebook is open there, the open document is what a person sees and may hold unsaved work: it is read and
changed instead of the file. Without a front end (plain Python) there is none, and only files are changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...core.errors import ToolError
from ...core.file_tracker import SWITCH, NotReadError

if TYPE_CHECKING:
    from ...core.host import ToolHost
    from .cells import Cell


class OpenDocument(NamedTuple):
    """One document that is open in a page of a front end.

    Attributes:
        id: the document in its page.
        page: the page.
        via: the page that receives the kernel's messages and passes them on; often the same.
        dirty: it has changes that are not saved.
        shared: pages that have it open share one document (real-time collaboration).
        text: it is open as plain text, not as a notebook.
    """

    id: str
    page: str
    via: str
    dirty: bool = False
    shared: bool = False
    text: bool = False


class OpenContent(NamedTuple):
    """The content of an open document.

    Attributes:
        head: the notebook without its cells.
        cells: all its cells, as JSON; those asked for with their outputs, long ones cut.
        dirty: it has changes that are not saved.
    """

    head: dict[str, Any]
    cells: list[dict[str, Any]]
    dirty: bool


class OpenNotebooks(Protocol):
    """A front end that can be asked."""

    async def find(self, path: Path, *, quick: bool = False) -> list[OpenDocument]:
        """The open documents of the notebook `path`; `quick`: do not wait if no page has ever reported."""

    async def read(self, document: OpenDocument, first: int = 0, count: int = 0) -> OpenContent:
        """The content of an open document, with the outputs of `count` cells from `first` on.

        Raises:
            ToolError: it was closed meanwhile, or its page does not answer.
        """

    async def change(self, document: OpenDocument, change: dict[str, Any]) -> list[dict[str, Any]]:
        """Change an open document in one step that its undo takes back; gives its cells.

        Raises:
            ToolError: the document is not what the change was made for, was closed, or its page does not answer.
        """

    def runs(self, path: Path) -> bool:
        """Return whether `path` is the notebook that this kernel runs; its editor perhaps can't be asked."""


class Notebooks:
    """A workspace's notebooks: the front end, and what each session has seen (`Workspace.service`).

    Attributes:
        front_end: set by the notebook's extension; None in plain Python.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self.front_end: OpenNotebooks | None = None
        self._files = workspace.files
        self._seen: dict[tuple[str, str], list[tuple[str, bytes]]] = {}

    async def find(self, path: Path, *, quick: bool = False) -> list[OpenDocument]:
        """The open documents of the notebook `path`."""
        return [] if self.front_end is None else await self.front_end.find(path, quick=quick)

    def note_cells(self, session_id: str, path: Path, cells: Sequence[Cell]) -> None:
        """Remember that a session knows these cells of an open notebook."""
        self._seen[session_id, os.path.realpath(path)] = [(cell.id, _digest(cell)) for cell in cells]

    def changed(self, session_id: str, path: Path, cells: Sequence[Cell], mine: str) -> None:
        """Remember where the cells stand after a change, and what the session made of the one it changed.

        Of the others it knows what it knew: a person may have typed there since it read them.
        """
        shown_cells = dict(self._seen.get((session_id, os.path.realpath(path)), ()))
        self._seen[session_id, os.path.realpath(path)] = [
            (cell.id, _digest(cell) if cell.id == mine else shown_cells.get(cell.id, b"")) for cell in cells
        ]

    def forget(self, session_id: str, path: Path) -> None:
        """Forget the open document: the session has read the file since."""
        self._seen.pop((session_id, os.path.realpath(path)), None)

    def has_seen(self, session_id: str, path: Path) -> bool:
        """Return whether the session has seen the notebook as it is open."""
        return (session_id, os.path.realpath(path)) in self._seen

    def check_file(self, session_id: str, path: Path) -> None:
        """Go on only if the session has read the file and it has not changed since.

        Raises:
            NotReadError: it has not read the notebook at all.
            FileChangedError: the file has changed since.
            ToolError: what it has read was open in a front end then, and may never have been saved.
        """
        try:
            self._files.check(session_id, path)
        except NotReadError:
            if not self.has_seen(session_id, path):
                raise
            raise ToolError(
                f"Conflict: {path} was open in JupyterLab when it was read and is not any more; its file may hold "
                "something else. Nothing was changed. Read it again with notebook_read before changing it."
            ) from None

    def check(self, session_id: str, path: Path, cell: Cell | None, *, by_index: bool, content: bool) -> None:
        """Go on only if the session has seen the cell of an open notebook as it is now.

        Other cells may have changed: a person works in the notebook.

        Args:
            session_id: the session.
            path: the notebook.
            cell: what was named, as it is now; None if none was.
            by_index: it was named by its place, which must not have shifted since.
            content: its source matters, since it is replaced or deleted.

        Raises:
            NotReadError: the session has not read the notebook.
            ToolError: the cell is another one than it read.
        """
        if os.environ.get(SWITCH, "").lower() in ("1", "true"):
            return
        seen = self._seen.get((session_id, os.path.realpath(path)))
        if seen is None:
            raise NotReadError(str(path))
        if cell is None:
            return
        shown_cell = dict(seen).get(cell.id)
        moved = by_index and (cell.index >= len(seen) or seen[cell.index][0] != cell.id)
        if shown_cell is None or moved or (content and shown_cell != _digest(cell)):
            what = "is not as it was" if shown_cell and not moved else "is another cell than"
            raise ToolError(
                f"Conflict: {cell.name} of {path} {what} when it was last read. Nothing was changed. "
                "Read the notebook again with notebook_read before changing it."
            )


def _digest(cell: Cell) -> bytes:
    content = f"{cell.type}\0{cell.source}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=16).digest()
