"""Both notebook tools on a document that pages have open: the document or the file, never both; every trouble told."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import anyio
import nbformat
import pytest
from nbformat import v4

from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.core.file_tracker import NotReadError
from opencode_jupyter.jupyter.kernel import open_notebooks
from opencode_jupyter.jupyter.kernel.open_notebooks import NotebookPages
from opencode_jupyter.tools.notebook.open_documents import Notebooks
from opencode_jupyter.workspace import Workspace
from tests.support.pages import Page
from tests.support.workspaces import OpenWorkspace

pytestmark = pytest.mark.anyio


class Server:
    """Carries nudges to pages, each on a thread of its own, and their words back."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.attended = True
        self.running: str | None = None
        self.nudges: list[dict[str, Any]] = []
        self.deliveries: list[threading.Thread] = []
        self.front_end = NotebookPages(self.publish, lambda: self.attended, lambda: self.running)

    def publish(self, nudge: dict[str, Any]) -> bool:
        self.nudges.append(nudge)
        for page in self.pages:
            self.deliveries.append(threading.Thread(target=self.deliver, args=(page, nudge)))
            self.deliveries[-1].start()
        return True

    def deliver(self, page: Page, nudge: dict[str, Any]) -> None:
        if nudge.get("page") and nudge["page"] != page.name:
            return
        job = self.front_end.on_message(page.word("take", nudge["id"])).get("job")
        answer = page.perform(job) if job else None
        if answer is not None:
            self.front_end.on_message(page.word("done", nudge["id"], answer))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("SILENT_WAIT", 0.2), ("HEARD_WAIT", 0.5), ("TAKE_WAIT", 0.3), ("ANSWER_WAIT", 0.3)):
        monkeypatch.setattr(open_notebooks, name, seconds)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def workspace(open_workspace: OpenWorkspace, project: Path, server: Server) -> Workspace:
    (project / ".git").mkdir()
    ws = await open_workspace({}, store=False)
    ws.service(Notebooks).front_end = server.front_end
    return ws


@pytest.fixture
def path(project: Path) -> Path:
    cells = [v4.new_code_cell(f"x = {n}", id=f"c{n}") for n in range(3)]
    notebook = project / "sub" / "a.ipynb"
    notebook.parent.mkdir()
    nbformat.write(v4.new_notebook(cells=cells), notebook)
    return notebook


async def read(workspace: Workspace, path: Path, **more: Any) -> Any:
    return await workspace.call("notebook_read", {"filePath": str(path), **more})


async def edit(workspace: Workspace, path: Path, **more: Any) -> Any:
    workspace.sessions.default.recent.clear()  # the same call again and again is meant here
    return await workspace.call("notebook_edit", {"filePath": str(path), **more})


def sources(page: Page) -> list[str]:
    return [cell["source"] for cell in page.cells]


async def test_the_open_document_is_read_and_changed(workspace: Workspace, server: Server, path: Path) -> None:
    page = Page("p", path, path.parents[1])
    page.cells[1]["source"] = "typed"
    page.dirty = True
    server.pages = [page]
    before = path.read_bytes()
    result = await read(workspace, path)
    assert "(as open in JupyterLab, with unsaved changes)" in result.output
    assert "typed" in result.output
    result = await edit(workspace, path, cell="c1", newSource="new")
    assert "changed there" in result.output
    assert result.metadata["open"] is True
    await edit(workspace, path, operation="insert", cell="c1", newSource="inserted")
    await edit(workspace, path, operation="move", cell="c0", index=-1)
    await edit(workspace, path, operation="delete", cell="c2")
    assert sources(page) == ["new", "inserted", "x = 0"]
    assert path.read_bytes() == before
    assert workspace.changes.entries() == []
    # Outputs are asked for only where they are shown.
    await read(workspace, path, outputs="none")
    assert page.jobs[-1]["count"] == 0


async def test_conflicts_change_nothing(workspace: Workspace, server: Server, path: Path) -> None:
    page = Page("p", path, path.parents[1])
    server.pages = [page]
    before = path.read_bytes()
    with pytest.raises(NotReadError):
        await edit(workspace, path, cell="c1", newSource="new")
    await read(workspace, path)
    page.cells[1]["source"] = "typed since"
    with pytest.raises(ToolError, match=r"Conflict: cell 1 \(id c1\)"):
        await edit(workspace, path, cell="c1", newSource="new")
    page.cells.insert(0, {"id": "n", "cell_type": "code", "source": "", "metadata": {}, "outputs": []})
    with pytest.raises(ToolError, match="another cell than"):
        await edit(workspace, path, cell=1, newSource="new")
    with pytest.raises(ToolError, match="another cell than"):
        await edit(workspace, path, cell="n", newSource="new")
    page.error = "changed"
    with pytest.raises(ToolError, match="Conflict: the cell was changed in JupyterLab meanwhile"):
        await edit(workspace, path, cell="c0", newSource="new")
    page.error = None
    await edit(workspace, path, cell="c0", newSource="new")  # that one is as it was read
    assert sources(page) == ["", "new", "typed since", "x = 2"]
    assert path.read_bytes() == before


async def test_a_change_of_one_cell_is_no_look_at_the_others(workspace: Workspace, server: Server, path: Path) -> None:
    """What a person typed in another cell since it was read is still theirs after a change elsewhere."""
    page = Page("p", path, path.parents[1])
    server.pages = [page]
    await read(workspace, path)
    page.cells[2]["source"] = "typed since"
    await edit(workspace, path, cell="c0", newSource="new")
    await edit(workspace, path, cell="c0", newSource="newer")  # it knows what it wrote itself
    for more in ({"newSource": "mine"}, {"operation": "delete"}):
        with pytest.raises(ToolError, match=r"Conflict: cell 2 \(id c2\)"):
            await edit(workspace, path, cell="c2", **more)
    page.cells.insert(0, {"id": "n", "cell_type": "code", "source": "by hand", "metadata": {}, "outputs": []})
    await edit(workspace, path, operation="insert", cell="c0", newSource="inserted")
    with pytest.raises(ToolError, match="Conflict"):
        await edit(workspace, path, cell=0, newSource="mine")
    await edit(workspace, path, operation="delete", cell=2)
    assert sources(page) == ["by hand", "newer", "x = 1", "typed since"]


async def test_read_as_a_file_then_opened(workspace: Workspace, server: Server, path: Path) -> None:
    await read(workspace, path)
    server.pages = [Page("p", path, path.parents[1])]
    await edit(workspace, path, cell="c1", newSource="new")
    assert sources(server.pages[0]) == ["x = 0", "new", "x = 2"]


async def test_which_file_a_document_is(workspace: Workspace, server: Server, path: Path, project: Path) -> None:
    link = project / "root-link"
    link.symlink_to(project, target_is_directory=True)
    find = server.front_end.find
    page = Page("p", path, link)
    server.pages = [page]
    page.told = {"path": "sub/a.ipynb"}
    assert len(await find(path)) == 1
    assert await find(project / "a.ipynb") == []
    page.told = {"path": "sub/a.ipynb", "root": "~"}
    home = os.environ["HOME"]
    try:
        os.environ["HOME"] = str(project)
        assert len(await find(path)) == 1
    finally:
        os.environ["HOME"] = home
    # Notebook 7 tells no root: the kernel's own notebook does.
    page.told = {"path": "sub/a.ipynb", "root": "", "own": True}
    assert await find(path) == []
    server.running = str(path)
    assert len(await find(path)) == 1
    server.front_end.started_in = str(path.parent)
    server.running = str(path.with_name("name before it was renamed.ipynb"))
    assert len(await find(path)) == 1


async def test_two_windows(workspace: Workspace, server: Server, path: Path) -> None:
    first, second = Page("p", path, path.parents[1]), Page("q", path, path.parents[1])
    server.pages = [first, second]
    server.front_end.greet()
    for delivery in server.deliveries:
        delivery.join()
    second.dirty = True
    second.cells[0]["source"] = "unsaved"
    result = await read(workspace, path)
    assert "unsaved" in result.output
    assert "open in 2 windows" in result.output
    before = path.read_bytes()
    with pytest.raises(ToolError, match="open in 2 windows"):
        await edit(workspace, path, cell="c1", newSource="new")
    first.told = second.told = {"shared": True}
    await edit(workspace, path, cell="c1", newSource="new")
    assert sorted([sources(first)[1], sources(second)[1]]) == ["new", "x = 1"]
    assert path.read_bytes() == before


async def test_open_as_text(workspace: Workspace, server: Server, path: Path) -> None:
    page = Page("p", path, path.parents[1])
    page.told = {"text": True}
    page.dirty = True
    server.pages = [page]
    await read(workspace, path)
    with pytest.raises(ToolError, match="text editor with unsaved changes"):
        await edit(workspace, path, cell="c1", newSource="new")
    page.dirty = False
    await edit(workspace, path, cell="c1", newSource="new")
    assert nbformat.read(path, as_version=4).cells[1].source == "new"


async def test_a_page_that_goes_away(
    workspace: Workspace, server: Server, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page("p", path, path.parents[1])
    server.pages = [page]
    before = path.read_bytes()
    await read(workspace, path)
    page.deaf = {"change"}
    with pytest.raises(ToolError, match="Whether the change was made is not known"):
        await edit(workspace, path, cell="c1", newSource="new")
    page.deaf = {"read"}
    with pytest.raises(ToolError, match="did not answer the request to"):
        await edit(workspace, path, cell="c1", newSource="new")
    for error, message in (("closed", "was closed"), ("lost", "not known"), ("boom", "could not do it: boom")):
        page.deaf, page.error = set(), error
        with pytest.raises(ToolError, match=message):
            await edit(workspace, path, cell="c1", newSource="new")
    assert path.read_bytes() == before

    # Gone between the find and the change: what it hears late is not there to be taken any more.
    page.error = None
    nudges: list[dict[str, Any]] = []

    def asleep(page: Page, nudge: dict[str, Any]) -> None:
        nudges.append(nudge) if nudge.get("page") else Server.deliver(server, page, nudge)

    monkeypatch.setattr(server, "deliver", asleep)
    with pytest.raises(ToolError, match=r"does not answer[\s\S]*Nothing was changed"):
        await edit(workspace, path, cell="c1", newSource="new")
    Server.deliver(server, page, nudges[0])
    assert sources(page) == ["x = 0", "x = 1", "x = 2"]
    assert path.read_bytes() == before


async def test_nobody_there(workspace: Workspace, server: Server, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.attended = False
    await read(workspace, path)
    await edit(workspace, path, cell="c1", newSource="new")
    assert server.nudges == []
    server.attended = True
    for _ in range(open_notebooks.SILENT_ROUNDS):
        assert await server.front_end.find(path) == []
    with monkeypatch.context() as patched:
        patched.setattr(open_notebooks, "SILENT_WAIT", 600.0)
        with anyio.fail_after(60):
            await server.front_end.find(path, quick=True)
    # The notebook of this very kernel may be open in an editor that can't be asked.
    server.running = str(path)
    result = await edit(workspace, path, cell="c1", newSource="newer")
    assert "reload it from disk" in result.output
    assert nbformat.read(path, as_version=4).cells[1].source == "newer"


async def test_opened_and_closed_while_a_person_is_asked(
    open_workspace: OpenWorkspace, server: Server, path: Path, project: Path
) -> None:
    page = Page("p", path, project)

    def opened(request: Any) -> str:
        server.pages = [page] if not server.pages else []
        return "once"

    config = {"permission": {"edit": "ask"}}
    ws = await open_workspace(config, approve=opened, store=False)
    ws.service(Notebooks).front_end = server.front_end
    before = path.read_bytes()
    await read(ws, path)
    await edit(ws, path, cell="c1", newSource="new")
    assert sources(page)[1] == "new"
    assert path.read_bytes() == before
    with pytest.raises(ToolError, match="Conflict"):
        await edit(ws, path, cell="c1", newSource="newer")  # the file still has what it had
    assert path.read_bytes() == before


async def test_words_of_strangers_do_no_harm(workspace: Workspace, server: Server, path: Path) -> None:
    hear = server.front_end.on_message
    for data in ({}, {"page": "x"}, {"page": "x", "id": "none", "step": "done"}, {"page": 1, "id": [], "step": {}}):
        assert hear(data) == {}
    page = Page("p", path, path.parents[1])
    server.pages = [page]
    page.perform = lambda job: {"documents": [1, {}, {"path": 5, "root": 7}], "cells": [1], "head": 3}  # type: ignore[method-assign,assignment]
    assert await server.front_end.find(path) == []
