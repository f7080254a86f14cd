"""Tools, permissions and servers in the side panel: a form that makes a call, rules changed there, a server driven."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.acts import lab_only, project
from tests.support.browser import Browser, Notebook
from tests.support.mcp import local

pytestmark = lab_only
PANEL = "#opencode-jupyter-panel"
MANY = """
from opencode_jupyter import Tool
from opencode_jupyter.jupyter.notebook import current
async def run(arguments, ctx):
    return "ran"
for n in range(500):
    current().workspace.registry.register(
        Tool.define(f"many_{n}", {"description": f"Number {n}.", "parameters": {}, "execute": run})
    )
"""
SHAPES = '''
from typing import Literal
from opencode_jupyter import tool
@tool
def shapes(name: str, count: int = 3, kind: Literal["a", "b"] = "a", exact: bool = False,
           words: list[str] | None = None, free: dict[str, int] | None = None) -> str:
    """Takes everything.

    Args:
        name: Whose <b>it</b> is.
    """
    return repr((name, count, kind, exact, words, free))
'''


@pytest.fixture(scope="module")
def notebook(browser: Browser) -> Iterator[Notebook]:
    command = [*local("demo.py")["command"]]
    config = {"permission": {"bash": "ask"}, "mcp": {"demo": {"type": "local", "command": command}}}
    made = project(browser, "tools-panel", SHAPES, "1 + 1", config=config)
    made.run(1)
    yield made
    made.close()


def section(page: Page, name: str) -> Locator:
    """The side panel, at one of its sections."""
    page.evaluate("s => { window.jupyterapp.commands.execute('opencode-jupyter:show-panel', {section: s}); }", name)
    found = page.locator(PANEL)
    found.wait_for()
    return found.locator(f"{PANEL}-{name}")


def test_a_form_makes_the_call(notebook: Notebook) -> None:
    place = section(notebook.page, "tools")
    place.get_by_label("Filter by text").fill("everything")
    row = place.get_by_role("button", name="shapes")
    expect(row).to_be_visible()
    expect(row).to_contain_text("you: runs")
    expect(place.get_by_role("button", name="bash")).to_be_hidden()
    notebook.page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
    row.focus()
    notebook.page.keyboard.press("Enter")
    expect(place).to_contain_text("Whose <b>it</b> is.")
    run = place.get_by_role("button", name="Run", exact=True)
    place.get_by_label("count").fill("2.5")
    place.get_by_label("free").fill('{"a": "x"}')
    run.click()
    expect(place.locator(".error-detail", has_text="Field required")).to_be_visible()
    expect(place.locator(".error-detail", has_text="valid integer")).to_have_count(2)
    expect(place.get_by_label("name")).to_be_focused()
    place.get_by_label("name").fill('it\'s "Ann" {x} $HOME')
    place.get_by_label("count").fill("7")
    run.click()
    expect(place.locator(".error-detail", has_text="integer")).to_have_count(1)
    place.get_by_label("free").fill('{"a": 1}')
    place.get_by_label("kind").select_option("b")
    for word in ("one two", "1"):
        place.get_by_role("button", name="Add").click()
        notebook.page.keyboard.insert_text(word)
    run.click()
    notebook.wait_idle(2)
    notebook.wait_text(2, 'it\\\'s "Ann" {x} $HOME')
    expect(notebook.output(2)).to_contain_text("7, 'b', False, ['one two', '1'], {'a': 1}")
    place.get_by_role("button", name="All tools").click()
    assert notebook.page.evaluate("() => document.activeElement.innerText.startsWith('shapes')")


def test_five_hundred_tools_are_filtered(notebook: Notebook) -> None:
    page = notebook.page
    place = section(page, "tools")
    at = notebook.add_cell(MANY)
    notebook.run(at)
    place.get_by_label("Filter by text").fill("")
    expect(place.get_by_role("button", name="many_499")).to_have_count(1)
    place.get_by_label("Filter by text").fill("many_499")
    expect(place.locator(".oc-tools-list > li").filter(visible=True)).to_have_count(1)


def test_rules_are_changed_and_tried_out(notebook: Notebook) -> None:
    place = section(notebook.page, "rules")
    text = place.get_by_label("Command, pattern or JSON arguments")
    text.fill("git status && rm x")
    text.press("Enter")
    expect(place).to_contain_text("It would need your approval.")
    place.get_by_label("Action", exact=True).select_option("deny")
    place.get_by_label("Permission", exact=True).fill("bash")
    place.get_by_label("Pattern", exact=True).fill("rm *")
    place.get_by_label("Scope", exact=True).select_option("project")
    place.get_by_role("button", name="Add", exact=True).click()
    expect(place.get_by_role("button", name="Revoke bash rm * deny")).to_be_visible()
    assert '"rm *": "deny"' in (notebook.path.parent / "opencode.json").read_text()
    text.press("Enter")
    expect(place).to_contain_text("It would be denied.")
    expect(place).to_contain_text("decided by: bash rm * deny (opencode.json)")
    place.get_by_role("button", name="Revoke bash rm * deny").click()
    expect(place.get_by_role("button", name="Revoke bash rm * deny")).to_be_hidden()
    assert "rm *" not in (notebook.path.parent / "opencode.json").read_text()
    place.get_by_label("Mode", exact=True).select_option("plan")
    expect(place).to_contain_text("nothing is written")
    place.get_by_label("Mode", exact=True).select_option("default")
    expect(place).to_contain_text("the agent's own rules apply")


def test_a_server_is_connected_and_ended(notebook: Notebook) -> None:
    place = section(notebook.page, "servers")
    disconnect = place.get_by_role("button", name="Disconnect: demo")
    connect = place.get_by_role("button", name="Connect: demo", exact=True)
    expect(disconnect.or_(connect)).to_be_visible(timeout=30_000)
    if connect.is_visible():
        connect.click()
    expect(place).to_contain_text("8 tools", timeout=30_000)
    disconnect.click()
    expect(place).to_contain_text("not connected")
