"""A notebook run from top to bottom and saved has none of the secrets that its tools printed."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.kernels import CARD_MIME, CHECKOUT

SECRET = "tok-8Fj2kQ9xLm4Rz7Vb1Nc6Wd3Ys5Hg0PtA"
CELLS = [
    "%load_ext opencode_jupyter\nimport os\nkey = os.environ['MY_SERVICE_TOKEN']",
    "%permissions allow '*'",
    "r = %tool bash sleep 0.4; env | grep MY_SERVICE\nr",
    "%tool bash printf %s tok-8Fj2kQ9xLm4Rz7V; sleep 0.3; echo b1Nc6Wd3Ys5Hg0PtA",
    "print(r.output, r.metadata)",
    "%%tool python\nimport os, sys\nsys.stderr.write(os.environ['MY_SERVICE_TOKEN'])\nos.environ['MY_SERVICE_TOKEN']",
    "%%tool python\nimport os\nraise ValueError(os.environ['MY_SERVICE_TOKEN'])",
    "%tool write note.txt content={key}",
    "%tool read note.txt",
    "%tool read /none/{key}",
    "%tool nosuch {key}",
    "%tool bash echo {key} && exit 3",
    "%tools history",
]


def test_a_saved_notebook_has_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MY_SERVICE_TOKEN", SECRET)
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    client = NotebookClient(made, timeout=60, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}})
    done = client.execute()
    outputs = [[dict(output) for output in cell.outputs] for cell in done.cells]
    leaking = [CELLS[i] for i, of_cell in enumerate(outputs) if SECRET in str(of_cell)]
    assert leaking == []
    assert str(outputs).count("[secret MY_SERVICE_TOKEN]") > 8
    cards = [output for of_cell in outputs for output in of_cell if CARD_MIME in output.get("data", {})]
    assert len(cards) >= 8
    assert (tmp_path / "note.txt").read_text() == SECRET
    kept = [path for path in (tmp_path / "data").rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert kept == []
