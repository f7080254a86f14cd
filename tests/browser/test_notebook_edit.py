"""An open notebook is changed where it is open: at once, with what a person typed kept, or with a conflict told."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.acts import ALLOW_ONCE, answer, asking, button, lab_only, project
from tests.support.browser import Browser, Notebook

pytestmark = pytest.mark.browser

ASKS = {"permission": {"edit": "ask"}}


def other(notebook: Notebook, *sources: str) -> Path:
    """A second notebook beside the one that calls."""
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(sources)]
    path = notebook.path.with_name("other.ipynb")
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec}), path)
    return path


def open_beside(caller: Notebook) -> Notebook:
    """The other notebook in a tab: of the same page in JupyterLab, of the browser in Notebook 7."""
    path = str(caller.path.with_name("other.ipynb").relative_to(caller.browser.server.root))
    if caller.browser.server.application == "notebook":
        return caller.browser.open(path, kernel=False)
    caller.evaluate(
        "async path => { const w = await window.jupyterapp.commands.execute('docmanager:open',"
        " {path, factory: 'Notebook', options: {activate: false, mode: 'split-right'}}); await w.context.ready; }",
        path,
    )
    return caller


def sources(notebook: Notebook, name: str) -> list[str]:
    """The sources of the open document `name`."""
    return list(notebook.evaluate(_FIND + "return model.sharedModel.cells.map(c => c.getSource()); }", name))


def dirty(notebook: Notebook, name: str) -> bool:
    return bool(notebook.evaluate(_FIND + "return model.dirty; }", name))


def write(notebook: Notebook, name: str, index: int, text: str) -> None:
    """What a person types into a cell of the other document, without saving it."""
    notebook.evaluate(
        _FIND.replace("name =>", "([name, index, text]) =>") + "model.sharedModel.cells[index].setSource(text); }",
        [name, index, text],
    )


_FIND = """name => {
    const widgets = [...window.jupyterapp.shell.widgets('main')].map(w => w.context ? w : w.content ?? w);
    const model = widgets.find(w => w.context?.path.endsWith(name)).context.model;
"""


def test_another_notebook_that_is_open(browser: Browser) -> None:
    notebook = project(
        browser,
        "open",
        "%tool notebook_read other.ipynb",
        "%tool notebook_edit other.ipynb cell=cell-1 newSource='two = 22'",
        "r = %tool notebook_read other.ipynb outputs=none\nprint(r.output)",
        "%tool notebook_edit other.ipynb operation=insert cell=cell-0 newSource='between = 1'\n"
        "%tool notebook_edit other.ipynb operation=move cell=cell-2 index=0\n"
        "%tool notebook_edit other.ipynb operation=delete cell=cell-0\n"
        "%tool notebook_edit other.ipynb cell=cell-1 cellType=markdown newSource='# Two'",
        config=ASKS,
    )
    path = other(notebook, "one = 1", "two = 2", "three = 3")
    before = path.read_bytes()
    opened = open_beside(notebook)
    write(opened, "other.ipynb", 2, "three = 3  # typed by a person")
    notebook.run(1)
    notebook.wait_text(1, "with unsaved changes")
    notebook.wait_text(1, "typed by a person")
    notebook.run(2, wait=False)
    card = asking(notebook, 2)
    expect(card).to_contain_text("Cell 1 (code, id cell-1): replace")
    expect(card).to_contain_text("two = 22")
    assert sources(opened, "other.ipynb")[1] == "two = 2", "nothing changes before the answer"
    button(card, ALLOW_ONCE).click()
    notebook.wait_idle(2)
    notebook.wait_text(2, "cell 1 replaced")
    assert sources(opened, "other.ipynb") == ["one = 1", "two = 22", "three = 3  # typed by a person"]
    assert dirty(opened, "other.ipynb")
    assert path.read_bytes() == before, "the file is the person's to save"
    notebook.run(3)
    notebook.wait_text(3, "two = 22")
    for count in range(1, 5):
        if count > 1:
            expect(notebook.cards(4)).to_have_count(count)
        else:
            notebook.run(4, wait=False)
        card = notebook.cards(4).filter(has_text="waiting for approval").first
        card.wait_for()
        button(card, ALLOW_ONCE).click()
        expect(notebook.cards(4).filter(has_text="completed")).to_have_count(count)
    notebook.wait_idle(4)
    assert sources(opened, "other.ipynb") == ["three = 3  # typed by a person", "between = 1", "# Two"]
    # Notebook-wide undo takes back step by step, and leaves what the person typed.
    undo = _FIND + "model.sharedModel.undo(); return model.sharedModel.cells.map(c => [c.cell_type, c.getSource()]); }"
    assert opened.evaluate(undo, "other.ipynb")[-1] == ["code", "two = 22"]
    assert opened.evaluate(undo, "other.ipynb")[1] == ["code", "one = 1"]
    assert opened.evaluate(undo, "other.ipynb")[-1] == ["code", "three = 3  # typed by a person"]
    assert notebook.errors == []
    notebook.close()


@lab_only
def test_the_notebook_of_the_running_cell(browser: Browser) -> None:
    notebook = project(
        browser,
        "self",
        "import os\nname = os.path.basename(os.environ['JPY_SESSION_NAME'])\nr = %tool notebook_read {name}",
        "x = 1",
        "cells = r.records\ncid = cells[2]['id']\n"
        "r2 = %tool notebook_edit {name} cell={cid} newSource='x = 2'\nprint(r2.output)",
        "print('x is', x)",
        config=ASKS,
    )
    notebook.run(1)
    notebook.run(3, wait=False)
    answer(notebook, 3)
    notebook.wait_text(3, "cell 2 replaced")
    expect(notebook.cell(2).locator(".cm-content")).to_have_text("x = 2")
    # A person's own undo in the cell: one step back, then forward.
    notebook.cell(2).locator(".cm-content").click()
    notebook.page.keyboard.press("Control+z")
    expect(notebook.cell(2).locator(".cm-content")).to_have_text("x = 1")
    notebook.page.keyboard.press("Control+Shift+z")
    expect(notebook.cell(2).locator(".cm-content")).to_have_text("x = 2")
    notebook.run(2)
    notebook.run(4)
    notebook.wait_text(4, "x is 2")
    assert notebook.errors == []
    notebook.close()


@lab_only
def test_a_conflict_is_told(browser: Browser) -> None:
    notebook = project(
        browser,
        "conflict",
        "r = %tool notebook_read other.ipynb",
        "try:\n    %tool notebook_edit other.ipynb cell=cell-1 newSource='two = 22'\n"
        "except Exception as e:\n    print('told:', e)",
        "%tool notebook_edit other.ipynb cell=cell-0 newSource='one = 11'",
        config=ASKS,
    )
    path = other(notebook, "one = 1", "two = 2")
    before = path.read_bytes()
    opened = open_beside(notebook)
    notebook.run(1)
    # Typed while the person is asked.
    notebook.run(2, wait=False)
    asking(notebook, 2)
    write(opened, "other.ipynb", 1, "two = 'mine'")
    answer(notebook, 2)
    notebook.wait_text(2, "told: Conflict")
    # Typed before: a person sees the notebook, and may replace it.
    assert sources(opened, "other.ipynb") == ["one = 1", "two = 'mine'"]
    notebook.run(2, wait=False)
    answer(notebook, 2)
    assert sources(opened, "other.ipynb") == ["one = 1", "two = 22"]
    # Another cell of the same notebook can be changed all the same.
    notebook.run(3, wait=False)
    answer(notebook, 3)
    assert sources(opened, "other.ipynb") == ["one = 11", "two = 22"]
    assert path.read_bytes() == before
    assert notebook.errors == []
    notebook.close()


@lab_only
def test_a_notebook_that_is_not_open_is_changed_on_disk(browser: Browser) -> None:
    notebook = project(
        browser,
        "closed",
        "r = %tool notebook_read other.ipynb",
        "%tool notebook_edit other.ipynb cell=cell-1 newSource='two = 22'",
        config={"permission": {"edit": "allow"}},
    )
    path = other(notebook, "one = 1", "two = 2")
    before = path.read_text()
    notebook.run(1)
    notebook.run(2)
    notebook.wait_text(2, "cell 1 replaced")
    assert path.read_text() == before.replace('"two = 2"', '"two = 22"')
    assert "open in JupyterLab" not in notebook.text(2)
    notebook.close()


@lab_only
def test_opened_while_asked_and_open_twice(browser: Browser) -> None:
    notebook = project(
        browser,
        "meanwhile",
        "r = %tool notebook_read other.ipynb",
        "%tool notebook_edit other.ipynb cell=cell-1 newSource='two = 22'",
        "try:\n    %tool notebook_edit other.ipynb cell=cell-1 newSource='two = 222'\n"
        "except Exception as e:\n    print('told:', e)",
        config=ASKS,
    )
    path = other(notebook, "one = 1", "two = 2")
    before = path.read_bytes()
    notebook.run(1)
    notebook.run(2, wait=False)
    asking(notebook, 2)
    opened = open_beside(notebook)
    notebook.page.bring_to_front()
    answer(notebook, 2)
    assert sources(opened, "other.ipynb") == ["one = 1", "two = 22"]
    assert path.read_bytes() == before
    second = browser.open(f"{path.parent.name}/other.ipynb", kernel=False)
    notebook.run(3)
    notebook.wait_text(3, "told: Conflict")
    notebook.wait_text(3, "open in 2 windows")
    assert sources(second, "other.ipynb") == ["one = 1", "two = 2"]
    assert json.loads(path.read_bytes())["cells"][1]["source"] == ["two = 2"]
    second.close()
    notebook.close()
