"""Where the focus is while a person answers by shortcuts or stops a call; colours of actions in tables."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from tests.browser.acts import ALLOW_ONCE, STOP, asking, button, lab_only, project
from tests.support.browser import Browser, Notebook

pytestmark = [pytest.mark.browser, lab_only]

ACTIVE = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
COMMANDS = ("ls", "pwd", "date", "whoami", "hostname", "uname")
CONTRAST = """node => {
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const behind = at => {
        const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
        const below = a < 1 && at.parentElement ? behind(at.parentElement) : [255, 255, 255];
        return [r, g, b].map((value, i) => value * a + below[i] * (1 - a));
    };
    const both = [luminance(numbers(getComputedStyle(node).color)), luminance(behind(node))];
    const [low, high] = both.sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}"""


def in_editor(notebook: Notebook, index: int) -> bool:
    """Whether the focus is in the editor of a cell."""
    return bool(notebook.cell(index).locator(".cm-content").evaluate("node => node === document.activeElement"))


@pytest.mark.parametrize("place", ["edit mode", "side panel"])
def test_shortcuts_answer_from_edit_mode_and_from_the_side_panel(browser: Browser, place: str) -> None:
    cells = [f"r = %tool bash {command}" for command in COMMANDS[:3]]
    notebook = project(browser, f"shortcuts-{place.split()[0]}", *cells, "# typing here")
    page = notebook.page
    page.evaluate("() => { window.jupyterapp.commands.execute('opencode-jupyter:show-panel', {section: 'asks'}); }")
    panel = page.locator("#opencode-jupyter-panel")
    for index, (key, end) in enumerate((("O", "completed"), ("S", "completed"), ("D", "denied by you")), 1):
        notebook.run(index, wait=False)
        card = asking(notebook, index)
        if place == "edit mode":
            panel.locator(".oc-asks-item").wait_for()
            notebook.cell(4).locator(".cm-content").click()
        else:
            panel.locator(".oc-card").focus()
            expect(button(panel, ALLOW_ONCE)).to_be_enabled()
        time.sleep(0.5)  # no key answers a request that has just come
        page.keyboard.press(f"Alt+Shift+{key}")
        if key == "S":
            field = (card if place == "edit mode" else panel).get_by_label("Pattern 1")
            expect(field).to_be_focused()
            time.sleep(0.5)
            page.keyboard.press("Enter")
        notebook.wait_idle(index)
        notebook.wait_text(index, end)
        if place == "edit mode":
            assert notebook.evaluate(ACTIVE) == 4
            assert key == "S" or in_editor(notebook, 4)
    assert "typing here" in notebook.cell(4).inner_text()
    assert notebook.errors == []
    notebook.close()


def test_stop_leaves_the_focus_where_it_is(browser: Browser) -> None:
    notebook = project(
        browser, "stop-focus", "%tool bash sleep 600", "%tool bash sleep 601", "# typing here", config={}
    )
    notebook.run(1, wait=False)
    button(notebook.cards(1), STOP).wait_for()
    notebook.cell(3).locator(".cm-content").click()
    button(notebook.cards(1), STOP).click()
    notebook.wait_idle(1)
    notebook.wait_cards("stopped")
    time.sleep(0.5)  # the focus would be given to the card's cell by now
    assert in_editor(notebook, 3)
    assert notebook.evaluate(ACTIVE) == 3
    # by keys the focus was in the card, and does not fall out of the page with it
    notebook.run(2, wait=False)
    button(notebook.cards(2), STOP).focus()
    notebook.page.keyboard.press("Enter")
    notebook.wait_idle(2)
    notebook.page.wait_for_function("() => document.activeElement.classList.contains('jp-Cell')")
    assert notebook.errors == []
    notebook.close()


def set_theme(notebook: Notebook, theme: str) -> None:
    change = "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: `JupyterLab ${name}`})"
    notebook.evaluate(change, theme)
    is_light = str(theme == "Light").lower()
    notebook.page.wait_for_selector(f'body[data-jp-theme-light="{is_light}"]', state="attached")


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_actions_in_tables_have_enough_contrast(browser: Browser, theme: str) -> None:
    notebook = project(browser, f"contrast-{theme}", "%permissions")
    set_theme(notebook, theme)
    notebook.run(1)
    chips = notebook.output(1).locator("td, td *").filter(has_text=re.compile("^ask$"))
    assert chips.count() > 0
    for chip in chips.all():
        assert chip.evaluate(CONTRAST) >= 4.5
    set_theme(notebook, "Light")
    notebook.close()


def test_a_click_on_an_option_chooses_it_and_leaves_the_focus(browser: Browser) -> None:
    questions = [
        {
            "question": "Which database?",
            "header": "DB",
            "options": [
                {"label": "SQLite", "description": "one file"},
                {"label": "PostgreSQL", "description": "a server"},
            ],
        }
    ]
    cells = (f"which = {{'questions': {questions!r}}}", "%tool question --from which", "# typing here")
    notebook = project(browser, "option-focus", *cells)
    notebook.run(1)
    notebook.run(2, wait=False)
    answer = button(notebook.cards(2), "Answer")
    expect(button(notebook.cards(2), "Dismiss")).to_be_enabled()
    notebook.cell(3).locator(".cm-content").click()
    time.sleep(1)
    notebook.cards(2).get_by_text("PostgreSQL").click()
    expect(notebook.cards(2).get_by_label("PostgreSQL")).to_be_checked()
    assert in_editor(notebook, 3)
    answer.click()
    notebook.wait_idle(2)
    notebook.wait_text(2, "PostgreSQL")
    assert in_editor(notebook, 3)
    assert notebook.errors == []
    notebook.close()
