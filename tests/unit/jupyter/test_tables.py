"""Small tables: what is cut or wrapped, and how wide their text is."""

from __future__ import annotations

import pytest

from opencode_jupyter.jupyter.tables import CELL_CHARS, TEXT_WIDTH, Table, WrappedTable
from tests.support.shells import Shell
from tests.unit.jupyter.test_magics import ip

__all__ = ["ip"]  # a fixture

LONG = "word " * 60


def width_of(table: object) -> int:
    return max(map(len, repr(table).splitlines()))


def test_values_are_cut_unless_the_table_wraps_them() -> None:
    rows = [{"check": "a", "advice": LONG}, {"check": LONG, "advice": "last"}]
    cut, wrapped = Table(rows), WrappedTable(rows)
    assert LONG.strip() not in repr(cut)
    assert LONG.strip() not in cut._repr_html_()
    assert "…" in repr(cut)
    assert "…" not in repr(wrapped) + wrapped._repr_html_()
    assert repr(wrapped).count("word") == 2 * LONG.count("word")  # wrapped
    assert wrapped._repr_html_().count(LONG.strip()) == 2
    assert width_of(cut) <= TEXT_WIDTH
    assert width_of(wrapped) <= TEXT_WIDTH
    assert len(LONG) > CELL_CHARS


def test_titles_and_notes_are_wrapped_and_short_columns_stay_whole() -> None:
    rows = [{"tool": "read", "description": LONG, "source": "built in"}]
    text = repr(Table(rows, title=LONG, notes=["short", "  indented", LONG]))
    assert max(map(len, text.splitlines())) <= TEXT_WIDTH
    assert "read " in text
    assert " built in" in text
    assert text.count("word") > 2 * LONG.count("word")
    assert "\nshort\n  indented\n" in text


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_every_table_of_a_terminal_fits_it(
    columns: int,
    ip: Shell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ip.run("%tool -q read a.txt")
    for line in ("%tool", "%tools", "%tools history", "%tools doctor", "%permissions", "%sessions", "%mcp", "%agent"):
        assert width_of(ip.run(line)) <= columns, line
    assert width_of(Table([{"a": LONG, "b": LONG}])) > columns - 20 or columns == 140


def test_rows_for_people_beside_the_records() -> None:
    table = Table([{"took": 0.3127}], display=[{"took": "0.3 s"}])
    assert "0.3 s" in repr(table)
    assert "0.3 s" in table._repr_html_()
    assert table.records == [{"took": 0.3127}]


def test_a_page_finds_no_formulas_in_tables() -> None:
    """JupyterLab typesets HTML outputs: `$5 or $6` became a formula."""
    ignored = '<div class="tex2jax_ignore mathjax_ignore">'
    assert Table([{"title": "echo $HOME $PATH"}])._repr_html_().startswith(ignored)
    assert Table([], empty="$a and $b")._repr_html_().startswith(ignored)


def test_short_values_are_not_wrapped_in_html() -> None:
    html = Table([{"time": "2026-11-24 16:24", "calls": "you: runs · a model: asks"}])._repr_html_()
    assert '<td style="text-align:left;white-space:nowrap">2026-11-24 16:24</td>' in html
    assert '<td style="text-align:left">you: runs · a model: asks</td>' in html
