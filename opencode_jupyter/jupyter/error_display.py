"""Errors of magics in a cell: ours as a sentence, a tool's own with the frames that its author needs.

Between the cell and the tool lie some twenty frames of this package, anyio and asyncio, and an endless recursion has a
thousand of its own: IPython takes seconds to draw them, and the line that matters is lost among them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType

from ..core.errors import ConfigError, ToolAbortedError, ToolError, full_text
from .kernel import ipykernel_interrupts

FIX = (
    "Fix it and run the cell again; no restart is needed. "
    "Until then no tool runs in this project, since its rules are unknown."
)


BRIEF_CHARS = 120
"""A longer message of an error is cut where the card above has the whole."""
MOST = 40
"""Frames that are kept: of more, those in the middle go."""
_PACKAGE = Path(__file__).parents[1]
_FILES = {threading.__file__, str(_PACKAGE / "jupyter" / "notebook.py")}


def brief_message(message: str, headline: str = "") -> str:
    """An error's message in one line, where the card above has the whole: `headline`, or else its first line."""
    from ..text.visible import visible  # here and below: loading the extension needs none of it

    message = visible(message)
    line = visible(headline) or message.strip().split("\n")[0]
    if line == message.strip() and len(line) <= BRIEF_CHARS:
        return line
    cut = line if len(line) <= BRIEF_CHARS else line[:BRIEF_CHARS].rpartition(" ")[0] + " …"
    return f"{cut} (see the card above)"


@contextmanager
def plain_errors() -> Iterator[None]:
    """An error of ours shows as its sentence; the frames of a magic help nobody."""
    try:
        yield
    except ToolError as error:
        if "_render_traceback_" not in vars(error):  # else `for_cell` has set it, knowing what a card shows
            text = f"{type(error).__name__}: {full_text(error, for_person=True)}"
            if isinstance(error, ConfigError) and error.path:
                text += f"\n{FIX}"
            from ..text.visible import visible

            text = visible(text)
            error._render_traceback_ = lambda: [text]  # type: ignore[attr-defined]  # IPython's hook for one's own look
        raise


def for_cell(error: BaseException, *, whole: bool = True, base: Path | None = None) -> BaseException:
    """The error as the cell raises it: our own without frames; a tool's own with the frames of the tool alone.

    An interrupt goes without frames too: the first traceback of a kernel takes IPython half a second to draw.

    Args:
        error: what the call ended with.
        whole: show all of its text; else one line, since the card above has the rest, and in a kernel nothing of an
            interrupt, which is no error.
        base: files below it are named from there, as the card names them.
    """
    import asyncio

    from ..text.visible import visible
    from .cards.labels import paths_below

    stopped = isinstance(error, ToolAbortedError) and error.reason in ("stopped", "interrupted")
    cancelled = isinstance(error, asyncio.CancelledError) and ipykernel_interrupts.interrupted.is_set
    if stopped or cancelled or isinstance(error, KeyboardInterrupt):
        setattr(error, ipykernel_interrupts.ON_CARD, not whole)
    if isinstance(error, (ToolError, KeyboardInterrupt)):
        error.__traceback__ = None
        message = paths_below(base, full_text(error, for_person=True)) if isinstance(error, ToolError) else str(error)
        line = message if whole else brief_message(message, getattr(error, "headline", ""))
        text = visible(f"{type(error).__name__}: {line}".removesuffix(": "))
        error._render_traceback_ = lambda: [text]  # type: ignore[union-attr]  # IPython's hook for one's own look
    else:
        shorten(error)
    return error


def shorten(error: BaseException) -> None:
    """Take the frames that led to the tool off an error, and the middle of a very long traceback; in place.

    The same is done to the errors that it was raised from. An error that never left this package keeps all it has.
    """
    for link in _chain(error):
        frames = frames_of(link.__traceback__)
        first = next((i for i, frame in enumerate(frames) if not _is_internal(frame)), 0)
        tool_frames = frames[first:]
        if len(tool_frames) > MOST:
            link.add_note(f"({len(tool_frames) - MOST:,} frames in the middle of its traceback omitted)")
            tool_frames = [*tool_frames[: MOST // 2], *tool_frames[-MOST // 2 :]]
        if len(tool_frames) < len(frames):
            link.__traceback__ = join_frames(tool_frames)


def _chain(error: BaseException) -> Iterator[BaseException]:
    visited: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in visited:
            continue
        visited.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__]


def frames_of(traceback: TracebackType | None) -> list[TracebackType]:
    """A traceback's frames, the outermost first."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    return frames


def _is_internal(frame: TracebackType) -> bool:
    """Whether a frame belongs to the way from a cell to a tool."""
    name = frame.tb_frame.f_code.co_filename
    return name in _FILES or name.startswith(_internal_folders())


@cache
def _internal_folders() -> tuple[str, ...]:
    import asyncio
    import concurrent.futures

    import anyio

    libraries = [Path(str(library.__file__)).parent for library in (anyio, asyncio, concurrent.futures)]
    return tuple(f"{folder}/" for folder in (_PACKAGE / "core", _PACKAGE / "jupyter" / "kernel", *libraries))


def join_frames(frames: list[TracebackType]) -> TracebackType | None:
    """A traceback of these frames."""
    traceback: TracebackType | None = None
    for frame in reversed(frames):
        traceback = TracebackType(traceback, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return traceback
