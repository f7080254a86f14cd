"""Pictures of cards in each state, light, dark and narrow, kept in ``artifacts/`` for people to look at."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.acts import STOP, asking, button, project
from tests.support import browser as support

pytestmark = pytest.mark.browser

CELLS = (
    '%tool edit a.txt oldString=beta newString="gamma delta"',
    "%tool bash printf '\\033[32mgreen\\033[0m plain\\n\\033[1;31mred\\033[0m\\n'; sleep 600",
    "%tool grep alpha",
    "%tool bash seq 5000",
    "%tool read missing.txt",
)


@pytest.fixture(scope="module", params=["light", "dark", "narrow"])
def look(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_pictures(look: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    support.chromium()
    with (
        support.serve("lab", tmp_path_factory.mktemp(look)) as server,
        support.browse(server, dark=look == "dark") as opened,
    ):
        config = {"permission": {"edit": "ask", "bash": "allow"}}
        notebook = project(opened, "look", "r = %tool -q read a.txt", *CELLS, config=config)
        if look == "dark":
            notebook.evaluate(
                "() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})"
            )
            notebook.page.wait_for_selector('body[data-jp-theme-light="false"]', state="attached")
        if look == "narrow":
            # without the side bar's panel, so that a card is some 360 pixels wide
            notebook.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
            notebook.page.set_viewport_size({"width": 520, "height": 900})
        notebook.run(1)
        notebook.run(2, wait=False)
        asking(notebook, 2)
        notebook.screenshot(f"card-asking-{look}", notebook.cell(2))
        button(notebook.cards(2).first, "Allow for this session…").click()
        notebook.screenshot(f"card-session-{look}", notebook.cell(2))
        button(notebook.cards(2).first, "Allow these for this session").click()
        notebook.wait_idle(2)
        notebook.run(3, wait=False)
        expect(notebook.cards(3).first).to_contain_text("red")
        notebook.screenshot(f"card-running-{look}", notebook.cell(3))
        button(notebook.cards(3).first, STOP).click()
        notebook.wait_idle(3)
        for index in (4, 5, 6):
            notebook.run(index)
        for index, name in ((2, "edited"), (3, "stopped"), (4, "grep"), (5, "cut"), (6, "failed")):
            notebook.screenshot(f"card-{name}-{look}", notebook.cell(index))
        assert notebook.errors == []
