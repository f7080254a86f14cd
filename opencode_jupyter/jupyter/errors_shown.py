"""How an error of ours is shown by a magic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..core.errors import ConfigError, ToolError, full_text

MEND = (
    "Mend it and run the cell again; no restart is needed. "
    "Until then nothing is called there, since what it permits is not known."
)


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
