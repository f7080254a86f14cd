"""Asks away from their cards: the side panel, the status bar, notifications, commands and keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.acts import ALLOW_ONCE, asking, button, lab_only, project
from tests.support.browser import Browser, Notebook

IN_DEF = """
def blocked():
    return get_ipython().run_line_magic("tool", "bash echo from-a-def")
print(blocked().output)
"""
PANEL = "#opencode-jupyter-panel"


@pytest.fixture
def opened() -> Iterator[list[Notebook]]:
    """Notebooks that are closed at the end, each with its kernel, and the panel with them."""
    notebooks: list[Notebook] = []
    yield notebooks
    for notebook in notebooks:
        if not notebook.page.is_closed():
            # the page is used again, and an ask that the panel shows is not notified
            notebook.evaluate("() => { window.jupyterapp.shell.collapseRight(); }")
            notebook.close()


def panel(page: Page) -> Locator:
    """The side panel, at its asks."""
    page.evaluate("() => { window.jupyterapp.commands.execute('opencode-jupyter:show-panel', {section: 'asks'}); }")
    found = page.locator(PANEL)
    found.wait_for()
    return found


def command(page: Page, name: str) -> None:
    """Run a command of ours, as the palette does."""
    page.evaluate("id => { window.jupyterapp.commands.execute(id); }", f"opencode-jupyter:{name}")


def status(page: Page) -> Locator:
    """The status bar's word on asks."""
    return page.locator("button.oc-status")


def test_a_blocked_kernel_hears_the_answer_from_the_panel(browser: Browser, opened: list[Notebook]) -> None:
    notebook = project(browser, "panel-blocked", IN_DEF)
    opened.append(notebook)
    notebook.run(1, wait=False)
    asking(notebook, 1)
    place = panel(notebook.page)
    expect(place.get_by_role("tab", name="Approvals (1)")).to_be_visible()
    item = place.locator(".oc-asks-item")
    expect(item).to_contain_text("panel-blocked")
    expect(item).to_contain_text("echo from-a-def")
    button(item, ALLOW_ONCE).click()
    notebook.wait_idle(1)
    notebook.wait_text(1, "from-a-def")
    expect(place).to_contain_text("No approvals are waiting")


@lab_only
def test_three_notebooks_ask_at_once(browser: Browser, opened: list[Notebook]) -> None:
    page = project(browser, "three-a", "%tool bash echo one").page
    opened.append(Notebook(browser, page, "three-a/three-a.ipynb"))
    page.wait_for_function("() => document.querySelector('.jp-InputPrompt').innerText.includes('1')")
    place = panel(page)  # while it is open nothing is notified, which would lie over its buttons
    run_in_front(page, 1)
    for name in ("three-b", "three-c"):
        browser._page = page  # beside what is open in it
        project(browser, name, "%tool bash echo one", runs=False)
        run_in_front(page, 0)
        run_in_front(page, 1)
    expect(status(page)).to_have_text("3 approvals waiting")
    names = place.locator(".oc-asks-from")
    expect(names).to_have_count(3)
    assert [name.split(".")[0].split("-")[1] for name in names.all_inner_texts()] == ["a", "b", "c"]
    # the last first
    button(place.locator(".oc-asks-item").nth(2), ALLOW_ONCE).click()
    expect(names).to_have_count(2)
    # "next" leads to the oldest, in another notebook
    status(page).click()
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.title.label.startsWith('three-a')")
    assert page.evaluate("() => document.activeElement.classList.contains('oc-card')")
    like = button(place.locator(".oc-asks-item").first, "Allow all 2 like this once")
    like.click()
    expect(place).to_contain_text("No approvals are waiting")
    expect(status(page)).to_be_hidden()


@lab_only
def test_deny_all(browser: Browser, opened: list[Notebook]) -> None:
    source = (
        "def outcome(handle):\n    try:\n        return handle.result().output\n    except Exception as error:\n"
        "        return type(error).__name__\n"
        "handles = [get_ipython().run_line_magic('tool', f'--bg bash echo {i}') for i in range(3)]\n"
        "print([outcome(handle) for handle in handles])"
    )
    notebook = project(browser, "panel-deny", source)
    opened.append(notebook)
    notebook.run(1, wait=False)
    place = panel(notebook.page)
    expect(place.locator(".oc-asks-item")).to_have_count(3)
    button(place, "Deny all 3").click()
    notebook.wait_idle(1)
    notebook.wait_text(1, "['PermissionRejectedError', 'PermissionRejectedError', 'PermissionRejectedError']")


@lab_only
def test_an_ask_out_of_sight_is_notified(browser: Browser, opened: list[Notebook]) -> None:
    notebook = project(browser, "notified", "%tool bash echo quiet", *["1\n" * 30] * 3)
    opened.append(notebook)
    notebook.run(1, wait=False)
    asking(notebook, 1)
    page = notebook.page
    toast = page.locator(".Toastify__toast")
    page.wait_for_timeout(1200)
    expect(toast).to_have_count(0)  # it is in sight
    button(asking(notebook, 1), ALLOW_ONCE).click()
    notebook.wait_idle(1)
    held = "import pathlib, time\nwhile not pathlib.Path('scrolled').exists():\n    time.sleep(0.05)\n"
    notebook.set_cell(1, held + "%tool bash echo quiet again")
    notebook.run(1, wait=False)
    page.evaluate(
        "() => { const b = window.jupyterapp.shell.currentWidget.content; b.activeCellIndex = 4;"
        " return b.scrollToCell(b.widgets[4], 'end'); }"
    )
    notebook.path.with_name("scrolled").touch()
    expect(toast).to_contain_text("echo quiet again")
    page.wait_for_timeout(800)
    toast.get_by_role("button", name="Allow once").click()
    notebook.wait_idle(1)
    expect(toast).to_have_count(0)


@lab_only
def test_a_reloaded_page_has_the_ask_and_a_restart_ends_it(browser: Browser, opened: list[Notebook]) -> None:
    notebook = project(browser, "reloaded", IN_DEF, IN_DEF)
    opened.append(notebook)
    page = notebook.page
    notebook.save()
    notebook.run(1, wait=False)
    asking(notebook, 1)
    page.reload()
    page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.context?.isReady")
    place = panel(page)
    item = place.locator(".oc-asks-item")
    expect(item).to_contain_text("echo from-a-def")
    button(item, ALLOW_ONCE).click()
    expect(place).to_contain_text("No approvals are waiting")
    notebook.wait_kernel("idle")
    notebook.run(2, wait=False)
    expect(item).to_have_count(1)
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.sessionContext.restartKernel(); }")
    expect(item).to_have_count(0)
    notebook.wait_cards("ended")


@lab_only
def test_two_tabs_show_one_ask_and_the_first_answer_counts(browser: Browser, opened: list[Notebook]) -> None:
    notebook = project(browser, "two-tabs", "%tool bash echo from-a-tab")
    opened.append(notebook)
    notebook.run(1, wait=False)
    asking(notebook, 1)
    notebook.save()  # the other tab has the card from the file
    other = browser.open(notebook.name, kernel=False)
    theirs, ours = panel(other.page), panel(notebook.page)
    expect(theirs.locator(".oc-asks-item")).to_have_count(1)
    asking(other, 1)
    button(ours, "Deny").first.click()
    expect(theirs).to_contain_text("No approvals are waiting")
    # who was second sees in the card that it is decided, and how
    other.wait_cards("denied by you")
    expect(button(other.cards(1), ALLOW_ONCE)).to_have_count(0)
    notebook.wait_idle(1)
    notebook.wait_cards("denied by you")
    other.leave()


def run_in_front(page: Page, index: int) -> None:
    """Run a cell of the notebook in front, whose place in the page is not the first."""
    page.evaluate(
        "i => { const a = window.jupyterapp; a.shell.currentWidget.content.activeCellIndex = i;"
        " a.commands.execute('notebook:run-cell'); }",
        index,
    )
