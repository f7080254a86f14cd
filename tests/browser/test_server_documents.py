"""A person approves beside jupyter-server-documents (jupyter-ai 3), where the server runs cells without input."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as PlaywrightBrowser
from playwright.sync_api import expect

from tests.browser.acts import ALLOW_ONCE, STOP, button, project
from tests.support.browser import Browser, profile, serve
from tests.support.kernels import server_documents

pytestmark = pytest.mark.browser

OUTPUTS = """cell => window.jupyterapp.shell.currentWidget.content.model.cells.get(cell).outputs.toJSON()
    .map(({output_type, data}) => data ? Object.keys(data).some(mime => mime.includes('widget')) : output_type)"""
"""For each output of a cell: its type, or whether it still holds a widget."""


@pytest.fixture(scope="module")
def browser(launched: PlaywrightBrowser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser on a JupyterLab with jupyter-server-documents."""
    python = server_documents()
    folder = tmp_path_factory.mktemp("documents")
    with serve("lab", folder, python=python) as server, profile(launched, server) as opened:
        yield opened


def test_a_call_is_approved_stopped_and_listed(browser: Browser) -> None:
    cells = ("%load_ext opencode_jupyter\n%tool bash echo approved", "%tool bash sleep 600", "%tools doctor")
    notebook = project(browser, "documents", *cells, runs=False)
    page = notebook.page
    panel = page.locator("#opencode-jupyter-panel")

    # asked in the very cell that loads the extension: the page has not reported yet
    notebook.run(1, wait=False)
    card = notebook.cards(1).filter(has_text="waiting for approval")
    page.evaluate("() => { window.jupyterapp.commands.execute('opencode-jupyter:show-panel', {section: 'asks'}); }")
    expect(button(panel.locator(".oc-asks-item"), ALLOW_ONCE)).to_be_visible()
    button(card, ALLOW_ONCE).click()
    notebook.wait_idle(1)
    notebook.wait_cards("completed")
    notebook.wait_text(1, "approved")

    notebook.run(2, wait=False)
    button(panel.locator(".oc-asks-item"), ALLOW_ONCE).click()
    running = notebook.cards(2).filter(has_text="running")
    button(running, STOP).click()
    notebook.wait_idle(2)
    notebook.wait_text(2, "stopped")
    # the server appends the settled card; the live one is gone from the document
    page.wait_for_function(f"cell => JSON.stringify(({OUTPUTS})(cell)) === '[false]'", arg=1)
    page.wait_for_function(f"cell => JSON.stringify(({OUTPUTS})(cell)) === '[false]'", arg=2)

    notebook.run(3)
    notebook.wait_text(3, "jupyter-server-documents")
    assert notebook.errors == []
    notebook.close()
