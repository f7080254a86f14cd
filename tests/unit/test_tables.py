"""Small tables: what is cut, and what is not."""

from __future__ import annotations

from opencode_jupyter.jupyter.tables import CELL_CHARS, TEXT_CHARS, Table

LONG = "word " * 60


def test_values_are_cut_unless_the_table_is_whole() -> None:
    rows = [{"check": "a", "advice": LONG}, {"check": LONG, "advice": "last"}]
    cut, whole = Table(rows), Table(rows, whole=True)
    assert LONG.strip() not in repr(cut)
    assert LONG.strip() not in cut._repr_html_()
    assert max(map(len, repr(cut).splitlines())) <= 2 * TEXT_CHARS + 2
    assert "…" not in repr(whole) + whole._repr_html_()
    assert whole._repr_html_().count(LONG.strip()) == 2
    assert repr(whole).splitlines()[1].startswith("a" + " " * (TEXT_CHARS - 1))  # one long value widens no column
    assert len(LONG) > CELL_CHARS
