"""Stop and the kernel's interrupt end a call, its processes and nothing else."""

from __future__ import annotations

import os
import signal
import time
import uuid

import pytest
from playwright.sync_api import expect

from tests.browser.acts import STOP, asking, button, lab_only, processes, project
from tests.support.browser import Browser

pytestmark = pytest.mark.browser

CELLS = {"awaited": "%tool bash sleep {mark}", "function": "def f():\n    %tool bash sleep {mark}\nf()"}


@lab_only
@pytest.mark.parametrize(("style", "how"), [("awaited", "stop"), ("function", "stop"), ("awaited", "interrupt")])
def test_a_sleeping_command_ends(browser: Browser, style: str, how: str) -> None:
    mark = f"600.{uuid.uuid4().int}"
    cells = (CELLS[style].format(mark=mark), "r = %tool bash echo alive\nprint(r.output)")
    notebook = project(browser, f"{how}-{style}", *cells, config={})
    notebook.run(1, wait=False)
    card = notebook.cards(1).filter(has_text="running").first
    card.wait_for()
    assert processes(mark)
    time.sleep(0.5)
    if how == "stop":
        button(card, STOP).click()
    else:
        notebook.interrupt()
    notebook.wait_idle(1)
    notebook.wait_text(1, "stopped" if how == "stop" else "interrupted")
    expect(notebook.cell(1).locator("[data-mime-type='application/vnd.jupyter.error']")).to_have_count(0)
    assert "KeyboardInterrupt" not in notebook.text(1)
    assert "ToolAbortedError" not in notebook.text(1)
    assert processes(mark) == []
    notebook.run(2)
    notebook.wait_text(2, "alive")
    notebook.close()


@lab_only
def test_an_interrupt_while_asking_rejects_the_ask(browser: Browser) -> None:
    notebook = project(browser, "interrupt-ask", "%tool bash echo never", "%permissions")
    notebook.run(1, wait=False)
    asking(notebook, 1)
    notebook.interrupt()
    notebook.wait_idle(1)
    notebook.wait_text(1, "interrupted")
    assert notebook.cards(1).get_by_role("button", name="Allow once").count() == 0
    notebook.run(2)
    notebook.wait_text(2, "doom_loop")
    notebook.close()


@lab_only
def test_live_output_is_shown_while_it_runs(browser: Browser) -> None:
    notebook = project(browser, "live", "%tool bash for i in 1 2 3 4 5 6; do echo line-$i; sleep 0.4; done", config={})
    notebook.run(1, wait=False)
    notebook.wait_text(1, "line-2")
    assert "line-6" not in notebook.text(1)
    notebook.wait_idle(1)
    notebook.wait_text(1, "line-6")
    notebook.close()


@lab_only
def test_the_status_bar_is_busy_until_the_cell_is_over(browser: Browser) -> None:
    notebook = project(browser, "status", "%tool bash sleep 3")
    status = notebook.page.locator(".jp-StatusBar-TextItem").filter(has_text="(ipykernel) |")
    expect(status).to_contain_text("Idle")
    notebook.run(1, wait=False)
    asking(notebook, 1)
    time.sleep(0.5)  # what the page and its card report is handled
    expect(status).to_contain_text("Busy", timeout=100)
    button(notebook.cards(1), "Allow once").click()
    button(notebook.cards(1), STOP).wait_for()
    time.sleep(0.5)
    expect(status).to_contain_text("Busy", timeout=100)
    notebook.wait_idle(1)
    expect(status).to_contain_text("Idle")
    notebook.close()


@lab_only
@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_kernel_that_ends_has_run_nothing_of_a_call_that_waits(browser: Browser, how: str) -> None:
    cells = ("%tool bash echo never > never.txt", "%tool bash sleep 60")
    notebook = project(browser, f"ends-{how}", *cells)
    session = "window.jupyterapp.shell.currentWidget.sessionContext"
    notebook.run(1, wait=False)
    asking(notebook, 1)
    if how == "restart":
        notebook.evaluate(f"() => {{ {session}.restartKernel(); }}")
    else:
        (kernel,) = processes(notebook.evaluate(f"() => {session}.session.kernel.id"))
        os.kill(kernel, signal.SIGKILL)
    notebook.wait_text(1, "Nothing was run")
    notebook.wait_cards("cancelled")
    assert "State unknown" not in notebook.text(1)
    assert not notebook.path.with_name("never.txt").exists()
    if how == "restart":  # and a call that ran is another matter
        notebook.wait_kernel("idle")
        notebook.run(0, wait=False)
        notebook.run(2, wait=False)
        button(asking(notebook, 2), "Allow once").click()
        button(notebook.cards(2), STOP).wait_for()
        notebook.evaluate(f"() => {{ {session}.restartKernel(); }}")
        notebook.wait_text(2, "State unknown")
    saved = str(notebook.save())
    assert "widget-view" not in saved
    assert "Nothing was run" in saved
    notebook.close()
