"""A person answers while the cell runs: once, or with a typed reason; awaited, blocking, several at once."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from tests.browser.acts import ALLOW_ONCE, SESSION, WORD, answer, asking, button, lab_only, project
from tests.support.browser import Browser, Notebook

pytestmark = pytest.mark.browser


def test_allow_once_awaited_and_in_a_function(browser: Browser) -> None:
    notebook = project(
        browser,
        "once",
        "r = %tool bash echo one-$((1+1))\nprint('went on', r.output)",
        "def f():\n    r = %tool bash echo two\n    return r.output\nprint('got', f())",
        "for i in range(2):\n    r = %tool bash echo loop\nprint('looped')",
    )
    for index, text in ((1, "went on one-2"), (2, "got two")):
        notebook.run(index, wait=False)
        answer(notebook, index)
        notebook.wait_text(index, text)
    notebook.run(3, wait=False)
    button(asking(notebook, 3), ALLOW_ONCE).click()
    expect(notebook.cards(3)).to_have_count(2)
    answer(notebook, 3)
    notebook.wait_text(3, "looped")
    assert notebook.errors == []
    notebook.close()


ACTIVE = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
TOP = "() => document.querySelector('.jp-Notebook .jp-mod-active').getBoundingClientRect().top"
"""Where the active cell is in the window: JupyterLab scrolls by what a card above it shrinks, so that it stays."""


SEEN = "field => field.getBoundingClientRect().top"


def waiting_above(browser: Browser, name: str) -> Notebook:
    """A long, scrolled notebook: cell 2 waits for approval and cell 3 is the active one, in command mode."""
    long = "\n".join(f"# line {n}" for n in range(60))
    notebook = project(browser, name, long, "%tool bash echo allowed", "print(40 + 2)", long)
    notebook.run(2, wait=False)
    asking(notebook, 2)
    notebook.page.keyboard.press("Escape")
    notebook.page.keyboard.press("ArrowDown")
    button(notebook.cards(2).first, ALLOW_ONCE).scroll_into_view_if_needed()
    time.sleep(1)  # the buttons are no longer shut against a slip
    before = None
    while before != (before := notebook.evaluate(TOP)):  # the notebook scrolls, and late on a busy machine
        time.sleep(0.5)
    assert notebook.evaluate(ACTIVE) == 3
    assert notebook.evaluate("() => document.querySelector('.jp-Notebook .jp-Cell').getBoundingClientRect().top") < 0
    return notebook


@lab_only
@pytest.mark.parametrize("way", ["click", "Alt+Shift+O"])
def test_allow_keeps_the_active_cell_and_the_scroll_position(browser: Browser, way: str) -> None:
    notebook = waiting_above(browser, "keep-click" if way == "click" else "keep-keys")
    top = notebook.evaluate(TOP)
    if way == "click":
        button(notebook.cards(2).first, ALLOW_ONCE).click()
    else:
        notebook.page.keyboard.press(way)
    notebook.wait_idle(2)
    notebook.wait_text(2, "allowed")
    expect(notebook.cards(2).first).to_contain_text("completed")
    time.sleep(0.5)  # the focus would be given back by now
    assert notebook.evaluate(ACTIVE) == 3
    assert abs(notebook.evaluate(TOP) - top) < 2
    before = notebook.count(2)
    notebook.page.keyboard.press("Shift+Enter")
    notebook.wait_text(3, "42")
    assert notebook.count(2) == before, "the cell that asked was run again"
    assert notebook.errors == []
    notebook.close()


FIELDS = """
from pathlib import Path

Path("ask.yaml").write_text('''
speed: 0
turns:
  - calls:
      - bash: {command: rm build, description: Remove the build}
  - Understood.
''')
which = {"questions": [{"question": "Which database?", "header": "DB", "options": [
    {"label": "SQLite", "description": "one file"}]}]}
waiting = []


def behind(line):
    waiting.append(get_ipython().run_line_magic("tool", "--bg " + line))
"""


@lab_only
def test_typing_into_a_request_keeps_the_active_cell_and_the_scroll_position(browser: Browser) -> None:
    long = "\n".join(f"# line {n}" for n in range(60))
    cells = (
        FIELDS,
        long,
        'behind("bash git status")',
        'behind("bash git log")',
        'behind("question --from which")',
        "%%agent --bg -m scripted:ask.yaml\nClean up",
        "print(40 + 2)",
        long,
    )
    notebook = project(browser, "typing", *cells)
    for index in (1, 3, 4, 5, 6):
        notebook.run(index)
    session, revise = asking(notebook, 3), asking(notebook, 4)
    button(session, SESSION).click()
    button(revise, "Change…").click()
    fields = {
        "pattern": session.get_by_label("Pattern 1"),
        "argument": revise.locator("textarea").first,
        "answer": notebook.cards(5).get_by_label("Type your own answer: Which database?"),
        "reason": notebook.cards(6).get_by_placeholder(WORD),
    }
    expect(button(notebook.output(6), ALLOW_ONCE)).to_be_enabled()
    notebook.cell(7).locator(".cm-content").click()  # in edit mode: its editor has the focus
    count = notebook.page.locator(".jp-Notebook .jp-Cell").count()
    before = {index: notebook.count(index) for index in (3, 4, 5, 6)}
    for name, field in fields.items():
        field.scroll_into_view_if_needed()
        time.sleep(1)  # the notebook has scrolled, and the fields are no longer shut against a slip
        top = field.evaluate(SEEN)
        field.click()
        notebook.page.keyboard.press("Control+a")
        notebook.page.keyboard.type("dd m1 typed")
        notebook.page.keyboard.press("Control+Backspace")  # the last word; in a notebook it merges cells
        notebook.page.keyboard.type("xyz")
        expect(field).to_have_value("dd m1 xyz")
        assert notebook.evaluate(ACTIVE) == 7, name
        assert abs(field.evaluate(SEEN) - top) < 4, name  # a key's badge goes with the focus of the card above
        assert notebook.page.locator(".jp-Notebook .jp-Cell").count() == count
    notebook.page.keyboard.press("Enter")  # denies with the reason
    notebook.wait_text(6, "dd m1 xyz")
    notebook.wait_text(6, "Understood.")
    time.sleep(0.5)  # the focus is given back by now
    assert notebook.evaluate(ACTIVE) == 7
    notebook.page.keyboard.press("Shift+Enter")
    notebook.wait_text(7, "42")
    assert {index: notebook.count(index) for index in before} == before
    assert notebook.errors == []
    notebook.close()


@lab_only
def test_two_asks_at_once_answered_in_reverse_order(browser: Browser) -> None:
    source = (
        "import asyncio\n"
        "async def one(name):\n    r = %tool bash echo done-{name}\n    return r.output\n"
        "async def two(name):\n    r = %tool bash printf second\n    return r.output\n"
        "print(await asyncio.gather(one('x'), two('y')))"
    )
    notebook = project(browser, "two", source, "print('queued cell ran')")
    notebook.run(1, wait=False)
    expect(notebook.cards(1).filter(has_text="waiting for approval")).to_have_count(2)
    notebook.run(2, wait=False)
    second = notebook.cards(1).filter(has_text="printf").first
    expect(button(second, ALLOW_ONCE)).to_be_enabled()
    button(second, ALLOW_ONCE).click()
    expect(notebook.cards(1).filter(has_text="completed")).to_have_count(1)
    assert "queued cell ran" not in notebook.text(2)
    answer(notebook, 1)
    notebook.wait_text(1, "second")
    notebook.wait_text(2, "queued cell ran")
    notebook.close()


def test_a_page_reload_keeps_the_ask(browser: Browser) -> None:
    notebook = project(browser, "reload", "r = %tool bash echo after-reload", "print('next', r.output)")
    notebook.save()
    notebook.run(1, wait=False)
    asking(notebook, 1)
    notebook.save()
    notebook.leave()
    again = browser.open(notebook.name, kernel=False)
    card = again.cards().filter(has_text="waiting for approval").first
    card.wait_for()
    expect(button(card, ALLOW_ONCE)).to_be_enabled()
    button(card, ALLOW_ONCE).click()
    again.wait_kernel("idle")
    again.run(2)
    again.wait_text(2, "next after-reload")
    again.close()


@lab_only
def test_a_card_that_a_busy_page_sets_up_late_still_asks(browser: Browser) -> None:
    """anywidget drops all updates of a model it took two seconds to set up; here each takes too long."""
    setup = (
        "import asyncio\nfrom opencode_jupyter import ToolContext, tool\n\n"
        "@tool\nasync def later(ctx: ToolContext) -> str:\n"
        "    await asyncio.sleep(1)\n    await ctx.ask('bash', ['later'])\n    return 'done'"
    )
    notebook = project(browser, "late", setup, "r = %tool later\nprint('next', r.output)")
    notebook.run(1)
    notebook.evaluate(
        "() => { AbortSignal.timeout = () => { const c = new AbortController(); setTimeout(() => c.abort(), 0);"
        " return c.signal; }; }"
    )
    notebook.run(2, wait=False)
    answer(notebook, 2)
    notebook.wait_text(2, "next done")
    notebook.leave()
