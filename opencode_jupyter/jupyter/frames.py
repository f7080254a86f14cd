"""The traceback of a tool's own error: what its author needs to see, and no more.

Between the cell and the tool lie some twenty frames of this package, anyio and asyncio, and an endless recursion has a
thousand of its own: IPython takes seconds to draw them, and the line that matters is lost among them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import anyio

MOST = 40
"""Frames that are kept: of more, those in the middle go."""

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = tuple(
    f"{Path(folder)}/"
    for folder in (
        _PACKAGE / "core",
        Path(anyio.__file__).parent,
        Path(asyncio.__file__).parent,
        Path(concurrent.futures.__file__).parent,
    )
)
_FILES = {threading.__file__, *(str(_PACKAGE / "jupyter" / f"{name}.py") for name in ("engine", "notebook", "waiting"))}


def shorten(error: BaseException) -> None:
    """Take the frames that led to the tool off an error, and the middle of a very long traceback; in place.

    The same is done to the errors that it was raised from. An error that never left this package keeps all it has.
    """
    for one in _chain(error):
        nodes = list(_nodes(one.__traceback__))
        first = next((i for i, node in enumerate(nodes) if not _between(node)), 0)
        kept = nodes[first:]
        if len(kept) > MOST:
            one.add_note(f"({len(kept) - MOST:,} frames in the middle of its traceback omitted)")
            kept = [*kept[: MOST // 2], *kept[-MOST // 2 :]]
        if len(kept) < len(nodes):
            one.__traceback__ = _joined(kept)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]


def _nodes(at: TracebackType | None) -> Iterator[TracebackType]:
    while at is not None:
        yield at
        at = at.tb_next


def _between(node: TracebackType) -> bool:
    """Whether a frame belongs to the way from a cell to a tool."""
    name = node.tb_frame.f_code.co_filename
    return name in _FILES or name.startswith(_FOLDERS)


def _joined(nodes: list[TracebackType]) -> TracebackType | None:
    joined: TracebackType | None = None
    for node in reversed(nodes):
        joined = TracebackType(joined, node.tb_frame, node.tb_lasti, node.tb_lineno)
    return joined
