"""How an error of ours is shown by a magic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..core.errors import ConfigError, ToolError, full_text

MEND = (
    "Mend it and run the cell again; no restart is needed. "
    "Until then nothing is called there, since what it permits is not known."
)


BRIEF_CHARS = 120
"""A longer message of an error is cut where the card above has the whole."""


def brief(message: str) -> str:
    """An error's message in one line, where the card above has the whole."""
    line = message.strip().split("\n")[0]
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
        text = f"{type(error).__name__}: {full_text(error, for_person=True)}"
        if isinstance(error, ConfigError) and error.path:
            text += f"\n{MEND}"
        error._render_traceback_ = lambda: [text]  # type: ignore[attr-defined]  # IPython's hook for one's own look
        raise
