"""Run by nbclient, nbconvert and papermill: nobody is there, nothing hangs, what is saved is whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import papermill
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

from tests.support.kernels import CARD_MIME, CHECKOUT, WIDGET_MIME

CELLS = [
    "%load_ext opencode_jupyter",
    "r = %tool bash sleep 0.4; echo slow enough for a live card\nprint(len(r.output) > 5)",
    "try:\n    %tool read .env\nexcept Exception as e:\n    print(type(e).__name__, '%permissions' in str(e))",
    "def f():\n    r = %tool bash echo plain\n    return r\nf()",
    "h = %tool --bg bash sleep 0.2; echo background\nprint(h.result().output)",
    "%permissions allow read '*.env'\nr = %tool read .env\nprint(r.output.count('A=1'))",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder; the kernels' environment leads to the checkout and to folders of their own."""
    (tmp_path / ".env").write_text("A=1\n")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OPENCODE_JUPYTER_ON_ASK", raising=False)
    return tmp_path


def notebook(*cells: str) -> nbformat.NotebookNode:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


def check(done: nbformat.NotebookNode) -> None:
    """What every executed notebook must be."""
    nbformat.validate(done)
    outputs = [o for cell in done.cells for o in cell.get("outputs", [])]
    assert not any(WIDGET_MIME in o.get("data", {}) for o in outputs)
    assert not any("<script" in str(o.get("data", {}).get("text/html", "")).lower() for o in outputs)
    cards = [o.data[CARD_MIME] for o in outputs if CARD_MIME in o.get("data", {})]
    assert [c["tool"] for c in cards] == ["bash", "read", "bash", "bash", "read"]
    assert [c["state"]["status"] for c in cards] == ["completed", "error", "completed", "completed", "completed"]
    assert cards[1]["ui"]["outcome"] == "denied by policy"
    assert not any(c["ui"].get("ask") for c in cards)
    printed = [o.text for o in outputs if o.output_type == "stream" and o.name == "stdout"]
    added = "Added until the kernel ends: allow read *.env."
    assert [text.strip() for text in printed] == ["True", "PermissionRejectedError True", "background", added, "1"]
    state = done.metadata.get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state", {})
    assert state == {}


def test_nbclient(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    start = time.monotonic()
    done = NotebookClient(notebook(*CELLS), timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    print(f"MEASURED nbclient {time.monotonic() - start:.2f}")
    check(done)
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
    page, _ = HTMLExporter().from_notebook_node(done)
    assert "slow enough for a live card" in page
    assert "denied by policy" in page.lower() or "nobody can answer" in page


def test_an_error_that_is_not_caught_ends_the_run(folder: Path) -> None:
    client = NotebookClient(
        notebook("%load_ext opencode_jupyter", "%tool read .env", "print('not reached')"),
        timeout=60,
        resources={"metadata": {"path": str(folder)}},
    )
    with pytest.raises(CellExecutionError, match=r"PermissionRejectedError: read needs approval .*nobody can answer"):
        client.execute()


def test_an_interrupt_ends_the_run_with_an_error(folder: Path) -> None:
    cells = ["%load_ext opencode_jupyter", "%tool bash sleep 60", "print('not reached')"]
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook(*cells), timeout=6, interrupt_on_timeout=True, resources=where)
    with pytest.raises(CellExecutionError, match="KeyboardInterrupt"):
        client.execute()
    assert [o.ename for o in client.nb.cells[1].outputs if o.output_type == "error"] == ["KeyboardInterrupt"]
    assert client.nb.cells[2].outputs == []


def test_nbconvert_execute(folder: Path) -> None:
    nbformat.write(notebook(*CELLS), folder / "a.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "a.ipynb", "--output", "b.ipynb"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    check(nbformat.read(folder / "b.ipynb", as_version=4))


def test_papermill(folder: Path) -> None:
    nbformat.write(notebook(*CELLS), folder / "a.ipynb")
    papermill.execute_notebook(str(folder / "a.ipynb"), str(folder / "b.ipynb"), cwd=str(folder), progress_bar=False)
    check(nbformat.read(folder / "b.ipynb", as_version=4))
    assert json.loads((folder / "b.ipynb").read_text())["nbformat"] == 4


def test_policy_allow(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_JUPYTER_ON_ASK", "allow")
    cells = ["%load_ext opencode_jupyter", "r = %tool read .env\nprint(r.output.count('A=1'))"]
    done = NotebookClient(notebook(*cells), timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    assert done.cells[1].outputs[-1].text == "1\n"


CALLS = [
    "%load_ext opencode_jupyter",
    "%permissions allow '*'",
    "%tool bash seq 5000",
    "%tool bash echo out; exit 3",
    "%%tool write notes.md\nsame",
    "%tool read notes.md",
    "%tool glob '*.md'",
    "r = %tool grep same --glob '*.md'\nr",
    "%%tool python\nfor i in range(40000):\n    print(i)",
    '%%tool batch\n{"tool_calls": [{"tool": "read", "parameters": {"filePath": "missing.md"}}]}',
    "h = %tool --bg bash sleep 0.4; seq 3000\nh.result()",
]


def test_the_same_results_are_saved_alike(folder: Path) -> None:
    def run() -> str:
        where = {"metadata": {"path": str(folder)}}
        done = NotebookClient(notebook(*CALLS), timeout=60, allow_errors=True, resources=where).execute()
        assert all(o.get("metadata") for cell in done.cells for o in cell.outputs if CARD_MIME in o.get("data", {}))
        return json.dumps([[o.get("data", o) for o in cell.outputs] for cell in done.cells], indent=1)

    first, second = run().splitlines(), run().splitlines()
    assert [(a[:300], b[:300]) for a, b in zip(first, second, strict=True) if a != b] == []
    files = {Path(path) for path in re.findall(r"kept in (\S+tool_\w+)", "\n".join(first))}
    assert len(files) == 3 and all(file.is_file() for file in files)
