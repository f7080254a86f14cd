"""An error is shown once: whole in the card, and as one line where the traceback would be."""

from __future__ import annotations

import pytest

from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.jupyter.error_display import BRIEF_CHARS, brief_message, plain_errors
from opencode_jupyter.jupyter.tables import Notice, Table


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("File not found: a", "File not found: a"),
        ("First line\nmore", "First line (see the card above)"),
        ("word " * 100, "word " * (BRIEF_CHARS // 5 - 1) + "word … (see the card above)"),
    ],
)
def test_an_error_in_one_line(message: str, line: str) -> None:
    assert brief_message(message) == line


def test_names_cannot_move_the_cursor() -> None:
    name = "a\x1b[2J\x9b3;1Hb\rc\x08"
    with pytest.raises(ToolError) as caught, plain_errors():
        raise ToolError(f"File not found: {name}")
    printed = "\n".join(caught.value._render_traceback_())  # type: ignore[attr-defined]
    texts = [printed, brief_message(name), repr(Table([{"file": name}], title=name, notes=[name])), repr(Notice(name))]
    for text in texts:
        assert "a\\x1b[2J" in text
        assert not set(text) & {"\x1b", "\x9b", "\r", "\x08"}
