"""A notebook that writes and edits files runs from top to bottom, again and again, each time in a fresh kernel."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.kernels import CHECKOUT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of the kernels, which import the checkout and keep their data apart."""
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OPENCODE_JUPYTER_ON_ASK", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    return work


def run_all(folder: Path, *sources: str) -> None:
    """Execute the cells in a fresh kernel; an error of a cell raises."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()


def test_run_all_twice_writes_the_same_file_twice(folder: Path) -> None:
    cells = ("%load_ext opencode_jupyter", "%%tool write notes.md\n# Notes\n\nThe same each time.")
    for _ in range(2):
        run_all(folder, *cells)
        assert (folder / "notes.md").read_text().startswith("# Notes\n\nThe same each time.")


def test_an_edit_after_an_undo_needs_no_new_read(folder: Path) -> None:
    (folder / "a.txt").write_text("one\n")
    edit = "%tool edit a.txt oldString=one newString=two"
    run_all(folder, "%load_ext opencode_jupyter", "%tool read a.txt", edit, "%tools undo", edit)
    assert (folder / "a.txt").read_text() == "two\n"
