"""Open notebooks over raw messages: a nudge on IOPub, the rest on the control channel, beside a busy cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4

from tests.kernel.acts import LOAD, asking, click, see
from tests.support.kernels import Kernel
from tests.support.pages import Page

TYPE = "opencode_jupyter"


class Connected:
    """A page connected to a kernel; it works whenever the test reads the kernel's messages."""

    def __init__(self, kernel: Kernel, page: Page) -> None:
        self.kernel, self.page = kernel, page
        self.nudges: list[dict[str, Any]] = []
        self.taking: dict[str, str] = {}
        self._iopub: Callable[[dict[str, Any]], None] = kernel._on_iopub
        self._reply: Callable[[dict[str, Any]], None] = kernel._on_reply
        kernel._on_iopub = self.on_iopub  # type: ignore[method-assign]
        kernel._on_reply = self.on_reply  # type: ignore[method-assign]

    def say(self, step: str, id: str, answer: Any = None) -> str:
        content = {"comm_id": "", "data": self.page.word(step, id, answer)}
        return self.kernel.send("control", TYPE, content)

    def on_iopub(self, message: dict[str, Any]) -> None:
        self._iopub(message)
        nudge = message["content"]
        if message["msg_type"] == TYPE and nudge.get("kind") == "notebook":  # others are for the panels
            self.nudges.append(nudge)
            if nudge.get("page") in (None, "", self.page.name):
                self.taking[self.say("take", nudge["id"])] = nudge["id"]

    def on_reply(self, message: dict[str, Any]) -> None:
        self._reply(message)
        id = self.taking.pop(message["parent_header"].get("msg_id", ""), None)
        job = message["content"].get("job")
        answer = self.page.perform(job) if id and job else None
        if id and answer is not None:
            self.say("done", id, answer)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True, exist_ok=True)
    (work / "opencode.json").write_text('{"permission": {"edit": "ask"}}')
    made = work / "other.ipynb"
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(f"x = {n}", id=f"c{n}") for n in range(2)]), made)
    return made


def test_while_the_cell_runs(kernel: Kernel, path: Path) -> None:
    page = Page("p", path, path.parent)
    page.cells[0]["source"] = "typed"
    page.dirty = True
    connected = Connected(kernel, page)
    kernel.run(LOAD)
    read = kernel.run("r = %tool -q notebook_read other.ipynb\nprint(r.output)")
    assert "with unsaved changes" in read.stdout
    assert "typed" in read.stdout
    before = path.read_bytes()
    for code in (
        "%tool notebook_edit other.ipynb cell=c1 newSource='awaited'",
        "def f():\n    r = %tool notebook_edit other.ipynb cell=c1 newSource='blocked'\nf()",
    ):
        cell = kernel.submit(code)
        part = asking(kernel, cell=cell)[0]
        assert "Cell 1 (code, id c1): replace" in part["ui"]["ask"]["diff"]
        see(kernel, part)
        click(kernel, part, "once")
        kernel.finish(cell).check()
    assert [cell["source"] for cell in page.cells] == ["typed", "blocked"]
    assert path.read_bytes() == before
    # A page that only now comes back has nothing to do.
    old = len(page.jobs)
    for nudge in list(connected.nudges):
        connected.taking[connected.say("take", nudge["id"])] = nudge["id"]
    kernel.idle_for(0.5)
    assert len(page.jobs) == old
    # Unloaded, nothing is published any more.
    kernel.run("%unload_ext opencode_jupyter")
    seen = len(connected.nudges)
    kernel.run("1")
    assert len(connected.nudges) == seen


def test_a_runner_without_a_person_gets_no_jobs_for_a_page(kernel: Kernel, path: Path) -> None:
    connected = Connected(kernel, Page("p", path, path.parent))
    connected.say = lambda *_: ""  # type: ignore[method-assign]  # no page is there, only the messages are read
    (path.parent / "opencode.json").write_text("{}")
    run = f"{LOAD}\n%tool notebook_read other.ipynb"
    kernel.execute(run, allow_stdin=False).check()
    edit = "%tool notebook_edit other.ipynb cell=c1 newSource='x = 11'"
    kernel.execute(edit, allow_stdin=False).check()
    assert not [nudge for nudge in connected.nudges if nudge.get("id")]  # greetings alone, which ask for nothing
    assert nbformat.read(path, as_version=4).cells[1].source == "x = 11"
