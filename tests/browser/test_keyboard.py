"""By keys alone: a request from its arrival to its answer, a whole output, the side panel; the focus is visible."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.acts import ALLOW_ONCE, DENY, SESSION, asking, button, lab_only, project
from tests.support.browser import Browser, Notebook

pytestmark = [pytest.mark.browser, lab_only]

PANEL = "#opencode-jupyter-panel"
FOCUSED = """() => {
    const { classList, ariaLabel, tagName, textContent } = document.activeElement;
    return classList.contains('jp-Cell') ? 'cell' : ariaLabel ?? (tagName === 'SUMMARY' ? textContent : tagName);
}"""
RING = "() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle + ' ' + s.outlineWidth; }"
SETUP = """
from pathlib import Path

Path("ask.yaml").write_text('''
speed: 0
turns:
  - calls:
      - bash: {command: rm build, description: Remove the build}
  - Understood.
''')
"""
REASON = "Reason (sent to the model)"


class Keyboard:
    """Presses keys in a notebook's page; whatever gets the focus by Tab has a visible ring."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.press = notebook.page.keyboard.press
        self.type = notebook.page.keyboard.type

    def focused(self) -> str:
        """What has the focus: its accessible name or its kind."""
        return str(self.notebook.evaluate(FOCUSED))

    def wait_focus(self, name: str) -> None:
        """Wait until something of this name has the focus."""
        self.notebook.page.wait_for_function(f"name => ({FOCUSED})() === name", arg=name)

    def tab(self, times: int = 1) -> list[str]:
        """Names of what the next presses of Tab reach."""
        names = []
        for _ in range(times):
            self.press("Tab")
            names.append(self.focused())
            assert self.notebook.evaluate(RING) == "solid 2px", names
        return names

    def next_approval(self, name: str) -> None:
        """Go to the request that waits, and wait until it can be answered."""
        self.press("Alt+Shift+N")
        self.wait_focus(name)
        expect(button(self.notebook.page.locator(".oc-card:focus"), ALLOW_ONCE)).to_be_enabled()

    def command(self, words: str) -> None:
        """Choose a command in the palette."""
        self.press("Control+Shift+C")
        self.notebook.page.wait_for_function("() => document.activeElement.closest('.lm-CommandPalette')")
        self.type(words)
        self.press("Enter")


def test_a_request_is_read_and_answered(browser: Browser) -> None:
    loop = "for i in range(3):\n    %tool bash ls {i}"
    notebook = project(browser, "keys-answer", SETUP, "%%agent -m scripted:ask.yaml\nClean up", loop, "# typing here")
    keys = Keyboard(notebook)
    notebook.run(1)
    notebook.run(2, wait=False)
    expect(button(notebook.output(2), ALLOW_ONCE)).to_be_enabled()
    keys.next_approval("bash Remove the build")
    assert keys.tab(8) == ["Command", "Copy command", ALLOW_ONCE, SESSION, DENY, "Change…", REASON, "input"]
    # the details open, and Escape closes them without an answer
    details = notebook.output(2).locator(".oc-ask ~ .oc-foot .oc-input")
    keys.press("Enter")
    expect(details).to_have_attribute("open", "")
    assert keys.tab() == ["input"]
    keys.press("Escape")
    expect(details).not_to_have_attribute("open", "")
    assert keys.focused() == "input"
    # the two forms; Escape leaves each
    for key, field in (("2", "INPUT"), ("4", "TEXTAREA")):
        keys.next_approval("bash Remove the build")
        keys.press(key)
        notebook.page.wait_for_function("tag => document.activeElement.tagName === tag", arg=field)
        keys.press("Escape")
        keys.wait_focus("bash Remove the build")
    keys.next_approval("bash Remove the build")
    keys.tab(7)
    keys.type("not 1 now")  # a digit is text there
    keys.press("Enter")
    notebook.wait_idle(2)
    notebook.wait_text(2, "denied by you: “not 1 now”")
    keys.wait_focus("cell")  # what had the focus is gone
    # the cell's next request takes the focus; the palette opens from there, and answers it
    notebook.run(3, wait=False)
    asking(notebook, 3)
    notebook.cell(4).locator(".cm-content").click()
    keys.type("1 2 3")
    assert notebook.prompt(3).startswith("[*]"), "keys typed elsewhere must not answer"
    for directory in ("0", "1"):
        keys.next_approval(f"bash ls {directory}")
        keys.press("1")
    keys.wait_focus("bash ls 2")
    keys.command("opencode tools deny")
    notebook.wait_idle(3)
    notebook.wait_text(3, "denied by you")
    assert notebook.errors == []
    notebook.close()


def test_a_whole_output_and_the_side_panel_are_used_and_left(browser: Browser) -> None:
    notebook = project(browser, "keys-viewer", "%tool bash seq 3000", "%tool bash echo working; sleep 600", config={})
    keys = Keyboard(notebook)
    notebook.run(1)
    notebook.wait_text(1, "3,000 lines")
    keys.press("Escape")
    while not (reached := keys.focused()).startswith("Open the whole output"):
        keys.press("Tab")
    viewer = notebook.page.locator(".oc-pages")
    for close in ("Escape", "Alt+w"):
        keys.press("Enter")
        expect(viewer.locator(".oc-lines")).to_be_focused()
        expect(viewer.locator(".oc-here")).to_be_visible()
        assert notebook.evaluate(RING) == "solid 2px"
        keys.press("/")
        keys.wait_focus("Find")
        keys.press("Escape")  # closes the search alone
        expect(viewer.locator(".oc-lines")).to_be_focused()
        keys.press(close)
        expect(viewer).to_have_count(0)
        assert keys.focused() == reached
    notebook.run(2, wait=False)
    expect(notebook.cards(2)).to_contain_text("working")
    keys.command("show tool calls")
    notebook.page.wait_for_function(f"() => document.activeElement.closest('{PANEL}')")
    while notebook.evaluate("() => document.activeElement.role") != "tab":
        keys.press("Shift+Tab")
    for first in ("Tool", "Filter by text", "Mode"):
        keys.press("ArrowRight")
        expect(notebook.page.locator(f"{PANEL} [role=tab]:focus")).to_have_attribute("aria-selected", "true")
        assert notebook.evaluate(RING) == "solid 2px"
        expect(notebook.page.locator(f"{PANEL} [role=tabpanel]:visible [aria-label]").first).to_be_visible()
        notebook.page.wait_for_function(
            f"name => [...document.querySelectorAll('{PANEL} [role=tabpanel]:not(.lm-mod-hidden) :is(select, input)')]"
            ".some(field => (field.ariaLabel ?? field.labels[0]?.textContent)?.startsWith(name))",
            arg=first,
        )
        keys.tab()
        keys.press("Shift+Tab")
    keys.press("End")
    expect(notebook.page.locator(f"{PANEL}-servers")).to_be_visible()
    keys.press("Alt+Shift+X")  # stops what runs, from wherever the focus is
    notebook.wait_idle(2)
    notebook.wait_cards("stopped")
    assert notebook.errors == []
    notebook.close()
