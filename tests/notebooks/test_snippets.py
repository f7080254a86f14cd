"""The README's and the guides' code runs in the environment that ``pip install "opencode-jupyter[lab]"`` makes.

The Python blocks of a document run in order, as cells of one kernel, in a project that has the files they name. A block
that cannot run there has ``<!-- not run: REASON -->`` on the line before it (and a blank line between).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

import json5
import nbformat
import pytest
import yaml

from tests.support import kernels

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "docs/how-to", "docs/reference")
DOCUMENTS = [ROOT / "README.md", *(path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.md")))]
FENCED = re.compile(
    r"^(?P<skip><!-- not run: (?P<reason>[^\n]+?) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
TIMEOUT = 90


@dataclass
class Snippet:
    """A fenced block of a document."""

    document: Path
    line: int
    """The line of its first line of code, from 1."""
    language: str
    code: str
    reason: str
    """Why it is not run; empty if it is."""

    @property
    def place(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def snippets(document: Path, *languages: str) -> list[Snippet]:
    """The fenced blocks of a document in these languages, in order."""
    text = document.read_text()
    return [
        Snippet(
            document,
            text.count("\n", 0, match.start("code")) + 1,
            match["language"],
            textwrap.dedent(match["code"]),
            match["reason"] or "",
        )
        for match in FENCED.finditer(text)
        if match["language"] in languages
    ]


def with_python(document: Path) -> bool:
    return any(not snippet.reason for snippet in snippets(document, "python"))


def name(value: object) -> str:
    return value.stem if isinstance(value, Path) else str(value)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with the files that the documents name."""
    folder = tmp_path / "project"
    files = {
        "README.md": "# A project\n",
        "CHANGELOG.md": "# Changelog\n",
        "notes.md": "# Notes\n\nteh first thing\n",
        "report.md": "Three rows.\n",
        "old.txt": "old\n",
        "a.txt": "a\n",
        "b.txt": "b\n",
        "a.csv": "x,y\n1,2\n",
        "sales.csv": "region,sales\nnorth,3\nsouth,4\nnorth,5\n",
        "shapes.py": "def area(r):\n    return 3.14 * r * r\n",
        "test_shapes.py": "def test_area():  # TODO: more\n    pass\n",
        "src/app.py": 'def greet():\n    print("Hi")\n\n\ngreet()\n',
        "src/model.py": "LIMIT = 3\n" * 10 + "class Model:\n    rate = LIMIT\n",
        "Makefile": "deploy:\n\t@echo deployed\n",
    }
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content)
    cells = [nbformat.v4.new_code_cell(f"x = {number}", id=f"cell-{number}") for number in range(8)]
    cells[2] = nbformat.v4.new_code_cell("df = df.fillna(0)", id="3f2a91bc")
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "analysis.ipynb")
    shutil.copytree(ROOT / "notebooks" / "scripts", folder / "scripts")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if with_python(path)], ids=name)
def test_python_runs(document: Path, project: Path, tmp_path: Path) -> None:
    environment = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("DATA", "CONFIG")}
    environment |= {"IPYTHONDIR": str(tmp_path / "ipython"), "OPENCODE_JUPYTER_ON_ASK": "allow"}
    with kernels.start(python=kernels.lab(), cwd=project, env=environment) as kernel:
        for snippet in snippets(document, "python"):
            if snippet.reason:
                continue
            done = kernel.execute(snippet.code, TIMEOUT, allow_stdin=False)
            if done.error:
                trace = re.sub(r"\x1b\[[\d;]*m", "", "\n".join((done.reply or {})["traceback"]))
                cell_line = re.search(r"Cell In\[\d+\], line (\d+)", trace)
                snippet.line += int(cell_line[1]) - 1 if cell_line else 0
                pytest.fail(f"{snippet.place}: {done.error}\n{trace}\n{done.stdout}{done.stderr}", pytrace=False)


def test_most_python_blocks_run() -> None:
    blocks = [snippet for document in DOCUMENTS for snippet in snippets(document, "python")]
    assert len(blocks) > 30
    assert sum(not block.reason for block in blocks) > len(blocks) / 2


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_data_parses_and_make_targets_exist(document: Path) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for snippet in snippets(document, "json", "jsonc", "yaml", "bash", "sh"):
        try:
            if snippet.language == "json":
                json.loads(snippet.code)
            elif snippet.language == "jsonc":
                json5.loads(snippet.code)
            elif snippet.language == "yaml":
                yaml.safe_load(snippet.code)
        except ValueError as error:
            pytest.fail(f"{snippet.place}: {error}", pytrace=False)
        if snippet.language in ("bash", "sh"):
            unknown = set(re.findall(r"^\s*make ([\w-]+)", snippet.code, re.MULTILINE)) - set(targets)
            assert not unknown, f"{snippet.place}: no such make target: {unknown}"


def test_every_fence_is_read() -> None:
    for document in DOCUMENTS:
        fences = re.findall(r"^ *```\w+$", document.read_text(), re.MULTILINE)
        languages = [fence.strip(" `") for fence in fences]
        assert len(snippets(document, *languages)) == len(fences), document
