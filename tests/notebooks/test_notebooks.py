"""Every notebook runs from top to bottom with nobody there, and what is saved reads without a kernel.

The kernels have what ``pip install "opencode-jupyter[lab]"`` installs, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
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

from tests.support.kernels import install_kernelspec, lab

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
CARD = "application/vnd.opencode.toolpart.v1+json"
RUN = "application/vnd.opencode.run.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = "opencode-lab"
TIMEOUT = 120


@pytest.fixture(scope="module", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data, config and temporary files of the kernels stay out of the user's; their kernelspec is found."""
    folder = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DATA", "CONFIG"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        (folder / "tmp").mkdir()
        patch.setenv("TMPDIR", str(folder / "tmp"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        install_kernelspec(folder / "jupyter", KERNEL, lab())
        patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        yield folder


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture(scope="module")
def executed(notebook: Path, own_folders: Path) -> Any:
    """The notebook as papermill leaves it, in a folder that holds nothing else."""
    before = set((own_folders / "tmp").iterdir())
    content = nbformat.read(notebook, as_version=4)
    count = len(content.cells)
    content.cells += [nbformat.v4.new_code_cell(source) for source in afterwards(content, notebook.stem)]
    path = own_folders / notebook.name
    nbformat.write(content, path)
    papermill.execute_notebook(
        path, path, cwd=own_folders, kernel_name=KERNEL, progress_bar=False, execution_timeout=TIMEOUT
    )
    done = nbformat.read(path, as_version=4)
    done.metadata["afterwards"] = "\n".join(text(cell) for cell in done.cells[count:])
    del done.cells[count:]
    done.metadata["left"] = [str(one) for one in set((own_folders / "tmp").iterdir()) - before]
    return done


def afterwards(content: Any, stem: str) -> list[str]:
    """What a reader does after Run All: the exercise's solution, in the notebook's last cell."""
    solution = content.cells[-1].source.split("```python\n")[1].split("```")[0]
    checks = [content.cells[-2].source] if stem == "02-data-science" else []
    return [solution, *checks]


def text(cell: Any) -> str:
    """Everything in a cell's outputs as text, errors included."""
    return joined(cell.outputs)


def joined(outputs: list[Any]) -> str:
    """Outputs as text, a line each; what was printed may come in pieces."""
    pieces = []
    for output in outputs:
        end = "" if output["output_type"] == "stream" else "\n"
        data = output.get("data", {}).get("text/plain") or output.get("evalue", "")
        pieces.append((output.get("text") or data) + end)
    return "".join(pieces)


def outputs(content: Any) -> list[Any]:
    return [output for cell in content.cells for output in cell.get("outputs", [])]


def cards(content: Any) -> list[Any]:
    return [output["data"] for output in outputs(content) if CARD in output.get("data", {})]


def test_the_kernel_has_what_the_extra_lab_installs_and_nothing_else(own_folders: Path) -> None:
    code = (
        "import importlib.util as u, opencode_jupyter\n"
        "print([bool(u.find_spec(n)) for n in ('pandas', 'matplotlib', 'mcp', 'pytest', 'pydantic_ai', 'distributed')])"
    )
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    done = NotebookClient(content, timeout=TIMEOUT, kernel_name=KERNEL).execute()
    assert said(done) == "[True, True, True, False, False, False]\n"


def test_there_is_a_quickstart() -> None:
    assert "01-quickstart" in [path.stem for path in NOTEBOOKS]


def test_it_is_kept_without_outputs(notebook: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    nbformat.validate(content)
    assert outputs(content) == []


def test_it_begins_and_ends_like_the_others(notebook: Path) -> None:
    """At the top: for whom, how long, what waits after Run All. At the end: an exercise. No calls of the shell."""
    content = nbformat.read(notebook, as_version=4)
    top = content.cells[0].source
    for promised in ("# ", "For ", " minutes ", "No key and no network", "Run All"):
        assert promised in top, promised
    assert content.cells[1].source.startswith("%load_ext opencode_jupyter\n")
    assert content.cells[1].source.splitlines()[-1].startswith("opencode_jupyter.demo(")
    sources = [cell.source for cell in content.cells]
    assert [source for source in sources if source.startswith("## Exercise\n")]
    assert "<details><summary>A solution</summary>" in sources[-1]
    assert not [source for source in sources if "get_ipython" in source]


def test_its_links_lead_somewhere(notebook: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    links = [
        target
        for cell in content.cells
        if cell.cell_type == "markdown"
        for target in re.findall(r"\]\(([^)#]+)", cell.source)
        if "://" not in target
    ]
    assert len(links) > 1
    assert [target for target in links if not (notebook.parent / target).is_file()] == []


def runs(content: Any) -> list[Any]:
    return [output["data"] for output in outputs(content) if RUN in output.get("data", {})]


def said(content: Any) -> str:
    """What the cells printed, and their values, as text."""
    return joined([output for output in outputs(content) if output["output_type"] != "error"])


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
    assert "not run: " in said
    assert "top must be a number, not text. (top is 'two')" in said
    assert "Did you mean read" in said


def test_the_data_science_notebook_shows_what_it_promises(executed: Any, notebook: Path) -> None:
    if notebook.stem != "02-data-science":
        return
    assert [data[RUN]["status"] for data in runs(executed)] == ["done"] * 3
    assert [call for data in runs(executed) for call in run_pictures(data)], "the figure is on a card"
    text = said(executed)
    for promised in ("1   python  completed", "clean.py | 2", "Gentoo", "342 penguins, 9 without a sex"):
        assert promised in text, promised


def run_pictures(run: Any) -> list[Any]:
    """The pictures on the cards of a run's calls."""
    parts = [item["part"] for item in run[RUN]["items"] if item["kind"] == "call"]
    return [attached for part in parts for attached in part["state"].get("attachments", [])]


def test_the_agents_notebook_shows_what_it_promises(executed: Any, notebook: Path) -> None:
    if notebook.stem != "03-agents":
        return
    found = runs(executed)
    assert len(found) > 10
    for data in found:
        assert data["text/plain"].startswith("✓ "), "no run failed"
        assert "<script" not in data["text/html"]
    text = said(executed)
    for promised in (
        "done after 4 steps",
        "return sum(values) / len(values)",
        "denied by a rule - I cannot remove it",
        "<task_result>\nfiles: readings.py, check.py",
        "[('read', 'completed'), ('edit', 'denied by a rule')]",
        "Report(file='readings.txt', lines=4, remarks=['one number a line'])",
        "north    20.3",
        "1 file put back",
        "bug (fork #1)",
        "was imported: 11 messages",
        "readings.txt has 4 lines.",
        "-4 readings.txt\n+5 readings.txt",
    ):
        assert promised in text, promised
    assert executed.metadata["left"] == []


def test_the_teaching_notebook_shows_what_it_promises(executed: Any, notebook: Path) -> None:
    if notebook.stem != "04-teaching":
        return
    text = said(executed)
    for promised in (
        "completed  Wrote file successfully.",
        "pending    {'filePath': 'again.txt'",
        '"tool_call_id": "call_1_1"',
        'CallDelta {"filePath":',
        "bash git push --force: deny",
        "rejected - denied by you",
        "with the following feedback: No sugar, please. We have honey.",
        "('edit', 'denied by a rule')",
        "JSON parsing failed",
        "asked: doom_loop ['glob']",
        "('*.rst', 'denied by you')",
        "has 5000 lines",
        "retry 2 Too many requests",
        "auth - The key is wrong",
        "nobody can answer here",
        "edited and checked: not yet",
    ):
        assert promised in text, promised
    assert executed.metadata["left"] == []


def test_readers_can_go_on_after_run_all(executed: Any, notebook: Path) -> None:
    answers = {
        "01-quickstart": "2 import",
        "02-data-science": "333 penguins, 0 without a sex",
        "03-agents": "hasty    4  0.61",
        "04-teaching": "edited and checked: yes\nsays that it was refused: yes",
        "05-custom-tools": "sorted: yes\nfiltered: yes",
        "06-gallery": "refused by a hook     1",
    }
    assert answers[notebook.stem] in executed.metadata["afterwards"]


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
def test_nbval_runs_the_quickstart(tmp_path: Path) -> None:
    """The others run by papermill alone: both give a kernel one cell after another, and no input."""
    notebook = next(path for path in NOTEBOOKS if path.stem == "01-quickstart")
    shutil.copy(notebook, tmp_path)
    # no plugin but this: each takes seconds to load
    options = ["--nbval-lax", f"--nbval-kernel-name={KERNEL}", "-v", "-p", "nbval.plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, notebook.name],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{notebook.stem}::ipynb::Cell 0 PASSED" in done.stdout, done.stdout
