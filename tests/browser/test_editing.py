"""Lines of ours while they are typed: completed and explained while another cell runs, and in their own colours."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect
from playwright.sync_api import TimeoutError as Missing

from tests.browser.acts import lab_only, project
from tests.support import browser as support

pytestmark = pytest.mark.browser

SCRIPT = '%%tool bash\nif true; then echo "it\'s"; fi # note'


@pytest.fixture(scope="module")
def notebook(browser: support.Browser) -> Iterator[support.Notebook]:
    """A notebook whose kernel has told its tools; cell 1 keeps it busy, cell 2 is typed in."""
    opened = project(browser, "editing", "print('on'); import time; time.sleep(120)", "", config={})
    # the first answers import what gives them
    for _ in range(20):
        if "glob" in menu(opened, "%tool g"):
            break
        time.sleep(0.5)
    yield opened
    assert opened.errors == []
    opened.close()


@pytest.fixture
def busy(notebook: support.Notebook) -> Iterator[support.Notebook]:
    """The same while cell 1 runs."""
    notebook.run(1, wait=False)
    notebook.wait_text(1, "on")
    yield notebook
    notebook.interrupt()
    notebook.wait_idle(1, timeout=60)


def write(notebook: support.Notebook, text: str) -> None:
    """Type over cell 2; the cursor is at its end."""
    notebook.page.keyboard.press("Escape")  # a menu that is open would take the keys
    notebook.set_cell(2, text)


def menu(notebook: support.Notebook, text: str) -> list[str]:
    """What Tab offers behind `text`, once something is."""
    write(notebook, text)
    notebook.page.keyboard.press("Tab")
    items = notebook.page.locator(".jp-Completer:not(.lm-mod-hidden) .jp-Completer-item")
    try:
        items.first.wait_for(timeout=3_000)
    except Missing:
        return []
    found = [label.strip() for label in items.locator(".jp-Completer-match").all_inner_texts()]
    notebook.page.keyboard.press("Escape")
    return found


def explained(notebook: support.Notebook) -> Locator:
    return notebook.page.locator(".oc-explained")


def test_a_busy_kernel_completes(busy: support.Notebook) -> None:
    offered = menu(busy, "%tool g")
    assert sorted(offered) == ["glob", "grep"]
    assert {"filePath=", "a.txt"} <= set(menu(busy, "%tool read "))
    assert {"mode", "allow"} <= set(menu(busy, "%permissions "))
    assert busy.prompt(1).startswith("[*]")


@lab_only
def test_a_running_tool_does_not_keep_completion_waiting(notebook: support.Notebook) -> None:
    at = notebook.add_cell("%tool bash sleep 60")
    notebook.run(at, wait=False)
    notebook.wait_cards("running")
    assert sorted(menu(notebook, "%tool g")) == ["glob", "grep"]
    notebook.interrupt()
    notebook.wait_idle(at, timeout=60)


@lab_only
def test_an_idle_kernel_offers_each_once_and_nothing_of_python(notebook: support.Notebook) -> None:
    for text in ("%tool g", "%tool read ", "%tool --", "x = %tool read "):
        offered = menu(notebook, text)
        assert len(offered) == len(set(offered))
        assert not {"globals", "getattr"} & set(offered)


@lab_only
def test_the_pointer_and_shift_tab_explain(busy: support.Notebook) -> None:
    write(busy, "%tool read a.txt limit=3")
    busy.cell(2).locator(".oc-tok-tool").hover()
    expect(explained(busy)).to_contain_text("read (built in)")
    busy.cell(2).locator(".oc-tok-key").hover()
    expect(explained(busy)).to_contain_text("Optional")
    busy.cell(1).hover()
    expect(explained(busy)).to_have_count(0)
    busy.page.keyboard.press("Shift+Tab")
    expect(explained(busy)).to_contain_text("limit")
    busy.page.keyboard.type("0")
    expect(explained(busy)).to_have_count(0)
    assert busy.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCell.editor.getLine(0)").endswith(
        "=30"
    )


@lab_only
def test_a_body_has_its_own_colours_and_loses_them(notebook: support.Notebook) -> None:
    write(notebook, SCRIPT)
    second = notebook.cell(2).locator(".cm-line").nth(1)
    expect(notebook.cell(2).locator(".oc-tok-magic")).to_have_text("%%tool")
    expect(second.locator("span", has_text="then")).to_have_count(1)  # a keyword of the shell
    expect(second.locator("span").last).to_have_text("# note")
    notebook.page.keyboard.press("Control+Home")
    notebook.page.keyboard.insert_text("# ")
    expect(notebook.cell(2).locator(".oc-tok")).to_have_count(0)
    expect(second.locator("span", has_text="then")).to_have_count(0)  # no word of Python
    write(notebook, "%tool bash echo it's\nx = 'a'")
    expect(notebook.cell(2).locator(".cm-line").nth(1).locator("span").last).to_have_text("'a'")
    write(notebook, "%%agent\nsay **this** of {x.y}")
    assert "".join(notebook.cell(2).locator(".oc-tok-expression").all_inner_texts()) == "{x.y}"
