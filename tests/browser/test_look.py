"""Pictures of cards in each state, light, dark and narrow, kept in ``artifacts/`` for people to look at."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.acts import STOP, asking, button, project
from tests.browser.conftest import Servers
from tests.support import browser as support

pytestmark = pytest.mark.browser

CELLS = (
    '%tool edit a.txt oldString=beta newString="gamma delta"',
    "%tool bash printf '\\033[32mgreen\\033[0m plain\\n\\033[1;31mred\\033[0m\\n'; sleep 600",
    "%tool grep alpha",
    "%tool bash seq 5000",
    "%tool read missing.txt",
)


SETUP = """
DB = {'question': 'Which database should the cache use?', 'header': 'Database', 'options': [
    {'label': 'SQLite (Recommended)', 'description': 'One file beside the notebook, nothing to install'},
    {'label': 'PostgreSQL', 'description': 'A server'}]}
FORMATS = {'question': 'Which formats are written?', 'header': 'Formats', 'multiple': True, 'options': [
    {'label': 'CSV', 'description': ''}, {'label': 'Parquet', 'description': 'needs pyarrow'}]}
one, two = {'questions': [FORMATS]}, {'questions': [DB, FORMATS]}
read = [{'tool': 'read', 'parameters': {'filePath': name}} for name in ('a.txt', 'missing.txt')]
bash = {'tool': 'bash', 'parameters': {'command': 'echo from-bash', 'description': 'Says so'}}
both = {'tool_calls': [*read, bash, {'tool': 'question', 'parameters': one}]}
todos = {'todos': [{'content': text, 'status': status, 'priority': priority} for text, status, priority in (
    ('Read the prices', 'completed', 'high'), ('Clean the column', 'in_progress', 'high'),
    ('Write the report', 'pending', 'medium'), ('Ask for the key', 'cancelled', 'low'))]}
patch = {'patchText': '''*** Begin Patch
*** Update File: a.txt
@@
 alpha
-beta
+gamma
*** Add File: notes.md
+# Notes
+one
*** End Patch
'''}
"""
TOOLS = (
    "%tool question --from two",
    "%tool batch --from both",
    "%tool todowrite --from todos",
    "%tool apply_patch --from patch",
    "%tool grep alpha",
    "%tool glob *",
    "%tool python int('x')",
)


@pytest.fixture(scope="module", params=["light", "dark", "narrow"])
def look(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def dress(notebook: support.Notebook, look: str) -> None:
    """The page as wanted: dark, or so narrow that a card is some 360 pixels wide."""
    theme, is_light = ("Dark", "false") if look == "dark" else ("Light", "true")
    notebook.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", f"JupyterLab {theme}"
    )
    notebook.page.wait_for_selector(f'body[data-jp-theme-light="{is_light}"]', state="attached")
    if look == "narrow":
        notebook.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        notebook.page.set_viewport_size({"width": 520, "height": 900})


def test_pictures(look: str, servers: Servers) -> None:
    with support.browse(servers("lab"), dark=look == "dark") as opened:
        config = {"permission": {"edit": "ask", "bash": "allow"}}
        notebook = project(opened, "look", "r = %tool -q read a.txt", *CELLS, config=config)
        dress(notebook, look)
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


def test_pictures_of_questions_and_other_tools(look: str, servers: Servers) -> None:
    with support.browse(servers("lab"), dark=look == "dark") as opened:
        config = {"permission": {"edit": "ask", "bash": "ask", "python": "allow"}}
        notebook = project(opened, "tools", SETUP, *TOOLS, config=config)
        dress(notebook, look)
        notebook.run(1)
        notebook.run(2, wait=False)
        card = notebook.cards(2).first
        expect(button(card, "Dismiss")).to_be_enabled()
        card.get_by_label("SQLite").check()
        card.get_by_label("CSV").check()
        notebook.screenshot(f"card-question-{look}", notebook.cell(2))
        button(card, "Answer").click()
        notebook.wait_idle(2)
        notebook.run(3, wait=False)
        expect(button(notebook.cards(3).first, "Dismiss")).to_be_enabled()
        expect(button(notebook.cards(3).first, "Allow once")).to_be_enabled()
        notebook.screenshot(f"card-batch-{look}", notebook.cell(3))
        button(notebook.cards(3).first, "Allow once").click()
        notebook.cards(3).first.get_by_label("CSV").check()
        button(notebook.cards(3).first, "Answer").click()
        notebook.wait_idle(3)
        notebook.run(4)
        notebook.run(5, wait=False)
        asking(notebook, 5)
        notebook.screenshot(f"card-patch-asking-{look}", notebook.cell(5))
        button(notebook.cards(5).first, "Allow once").click()
        notebook.wait_idle(5)
        for index in (6, 7, 8):
            notebook.run(index)
        names = ("answered", "batch-done", "tasks", "patched", "grep-table", "glob-table", "traceback")
        for index, name in enumerate(names, 2):
            notebook.screenshot(f"card-{name}-{look}", notebook.cell(index))
        assert notebook.errors == []
