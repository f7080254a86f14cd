"""The run of code that captures the output of this context (`capture`), and how a card leaves that context."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .capture import Capture

CAPTURE: contextvars.ContextVar[Capture | None] = contextvars.ContextVar("opencode_capture", default=None)


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Output inside is the cell's: the cards and questions of a call that captured code makes."""
    token = CAPTURE.set(None)
    try:
        yield
    finally:
        CAPTURE.reset(token)
