"""The browser driver itself, on plain Python cells: what the tests of this folder stand on."""

from __future__ import annotations

import pytest

from tests.browser.acts import lab_only
from tests.support import browser as support

pytestmark = pytest.mark.browser


def test_cells_run_and_show_their_output(browser: support.Browser) -> None:
    notebook = browser.notebook("print('one')", "", name="plain.ipynb")
    notebook.run(0)
    notebook.wait_text(0, "one")
    notebook.set_cell(1, "for i in range(2):\n    print('(two', i, \"'\")")
    notebook.run(1)
    notebook.wait_text(1, "(two 1 '")
    assert (notebook.count(0), notebook.count(1)) == (1, 2)
    notebook.run(0)
    assert notebook.count(0) == 3
    last = notebook.add_cell("import opencode_jupyter; print(opencode_jupyter.__file__)")
    notebook.run(last)
    notebook.wait_text(last, str(support.CHECKOUT))
    saved = notebook.save()
    assert saved.cells[0].outputs[0].text == "one\n"
    assert notebook.errors == []
    notebook.close()


@lab_only
def test_a_running_cell_is_seen_and_interrupted(browser: support.Browser) -> None:
    notebook = browser.notebook("import time\nprint('go')\ntime.sleep(600)", "print('next')", name="folder/stop.ipynb")
    notebook.run(0, wait=False)
    notebook.wait_kernel("busy")
    notebook.wait_text(0, "go")
    assert notebook.prompt(0).startswith("[*]")
    notebook.interrupt()
    notebook.wait_idle(0)
    notebook.wait_text(0, "KeyboardInterrupt")
    notebook.close()


@lab_only
def test_widgets_draw_and_answer(browser: support.Browser) -> None:
    source = """
import asyncio, ipywidgets as w
b, done = w.Button(description="Press"), asyncio.Event()
b.on_click(lambda _: done.set())
display(b)
await asyncio.wait_for(done.wait(), 20)
print("pressed")"""
    notebook = browser.notebook(source.strip(), name="widget.ipynb")
    notebook.run(0, wait=False)
    notebook.output(0).get_by_role("button", name="Press").click()
    notebook.wait_idle(0)
    notebook.wait_text(0, "pressed")
    assert notebook.errors == []
    notebook.close()
