"""An error is shown once: whole in the card, and as one line where the traceback would be."""

from __future__ import annotations

import pytest

from opencode_jupyter.jupyter.errors_shown import BRIEF_CHARS, brief


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("File not found: a", "File not found: a"),
        ("First line\nmore", "First line (see the card above)"),
        ("word " * 100, "word " * (BRIEF_CHARS // 5 - 1) + "word … (see the card above)"),
    ],
)
def test_an_error_in_one_line(message: str, line: str) -> None:
    assert brief(message) == line
