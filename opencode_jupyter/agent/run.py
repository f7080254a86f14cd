"""One prompt on its way to its answer: what `Sessions.prompt` gives."""

from __future__ import annotations


class Run:
    """The loop's work on one prompt."""
