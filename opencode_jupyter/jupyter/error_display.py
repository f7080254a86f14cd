"""How an error of ours is shown by a magic."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import ConfigError, ToolAbortedError, ToolError, full_text
from ..text.visible import visible
from . import _kernel_interrupts
from .cards.labels import paths_below
from .frames import shorten

FIX = (
    "Fix it and run the cell again; no restart is needed. "
    "Until then no tool runs in this project, since its rules are unknown."
)


BRIEF_CHARS = 120
"""A longer message of an error is cut where the card above has the whole."""


def brief(message: str, headline: str = "") -> str:
    """An error's message in one line, where the card above has the whole: `headline`, or else its first line."""
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
        if "_render_traceback_" not in vars(error):  # else it is known already what a card has shown of it
            text = f"{type(error).__name__}: {full_text(error, for_person=True)}"
            if isinstance(error, ConfigError) and error.path:
                text += f"\n{FIX}"
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
    stopped = isinstance(error, ToolAbortedError) and error.reason in ("stopped", "interrupted")
    cancelled = isinstance(error, asyncio.CancelledError) and _kernel_interrupts.interrupted.is_set()
    if stopped or cancelled or isinstance(error, KeyboardInterrupt):
        setattr(error, _kernel_interrupts.ON_CARD, not whole)
    if isinstance(error, (ToolError, KeyboardInterrupt)):
        error.__traceback__ = None
        message = paths_below(base, full_text(error, for_person=True)) if isinstance(error, ToolError) else str(error)
        shown = message if whole else brief(message, getattr(error, "headline", ""))
        text = visible(f"{type(error).__name__}: {shown}".removesuffix(": "))
        error._render_traceback_ = lambda: [text]  # type: ignore[union-attr]  # IPython's hook for one's own look
    else:
        shorten(error)
    return error
