"""Every notebook runs from top to bottom with nobody there, and what is saved reads without a kernel."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
CARD = "application/vnd.opencode.toolpart.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
TIMEOUT = 120


@pytest.fixture(scope="module", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data, config and temporary files of the kernels stay out of the user's."""
    folder = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "CONFIG"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        (folder / "tmp").mkdir()
        patch.setenv("TMPDIR", str(folder / "tmp"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        yield folder


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture(scope="module")
def executed(notebook: Path, own_folders: Path) -> Any:
    """The notebook as nbclient leaves it, in an empty folder."""
    content = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(own_folders)}}
    return NotebookClient(content, timeout=TIMEOUT, kernel_name="python3", resources=where).execute()


def outputs(content: Any) -> list[Any]:
    return [output for cell in content.cells for output in cell.get("outputs", [])]


def cards(content: Any) -> list[Any]:
    return [output["data"] for output in outputs(content) if CARD in output.get("data", {})]


def test_there_is_a_quickstart() -> None:
    assert "01-quickstart" in [path.stem for path in NOTEBOOKS]


def test_it_is_kept_without_outputs(notebook: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    nbformat.validate(content)
    assert outputs(content) == []


def test_it_runs_and_leaves_plain_cards(executed: Any) -> None:
    nbformat.validate(executed)
    assert not [output for output in outputs(executed) if output["output_type"] == "error"]
    assert "widgets" not in executed.metadata or not executed.metadata["widgets"]
    assert WIDGET not in json.dumps(outputs(executed))
    found = cards(executed)
    assert found
    for data in found:
        assert data["text/plain"]
        assert data["text/html"]
        assert data[CARD]["state"]["status"] in ("completed", "error")


def test_the_quickstart_shows_what_it_promises(executed: Any, notebook: Path) -> None:
    if notebook.stem != "01-quickstart":
        return
    found = [data[CARD] for data in cards(executed)]
    assert {"read", "glob", "grep", "write", "edit", "bash", "word_count"} <= {card["tool"] for card in found}
    assert [card["ui"]["diff"] for card in found if card["tool"] == "edit"]
    assert "denied by a rule" in [card["ui"].get("outcome") for card in found]
    spilled = cards(executed)[-1]
    assert Path(spilled[CARD]["ui"]["spill"]["path"]).read_text().splitlines()[-1] == "5000"
    assert "tool-output" in spilled["text/html"]
    said = "".join(output.get("text", "") for output in outputs(executed))
    assert "refused: bash rm * deny" in said
    assert "not allowed: " in said
    assert "top wants a whole number, not 'two'" in said
    assert "Did you mean read" in said


class Text(HTMLParser):
    """The text of a page, and whether anything in it would load a widget."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_as_html_the_cards_are_there(executed: Any) -> None:
    page, _ = HTMLExporter().from_notebook_node(executed)
    text = Text(page).text
    assert "model not found" not in text.lower()
    for data in cards(executed):
        html = data["text/html"]
        assert "<script" not in html
        assert html.strip()[:200] in page
        label = data[CARD]["ui"]["label"]
        assert label in text


@pytest.mark.slow
def test_papermill_runs_it(notebook: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.ipynb"
    papermill.execute_notebook(
        notebook, out, cwd=tmp_path, kernel_name="python3", progress_bar=False, execution_timeout=TIMEOUT
    )
    content = nbformat.read(out, as_version=4)
    assert cards(content)
    assert not content.metadata["papermill"]["exception"]


@pytest.mark.slow
def test_nbval_runs_it(notebook: Path, tmp_path: Path) -> None:
    copy = tmp_path / notebook.name
    copy.write_bytes(notebook.read_bytes())
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", str(copy)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT * 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
