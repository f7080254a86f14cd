"""The path of an ask by keys alone: to it, through what it offers, an answer, and where the focus is afterwards."""

from __future__ import annotations

import pytest

from tests.browser.acts import ALLOW_ONCE, DENY, asking, lab_only, project
from tests.support.browser import Browser, Notebook

pytestmark = [pytest.mark.browser, lab_only]


def focused(notebook: Notebook) -> str:
    """What has the focus: the name of what is in a card, else the kind of place."""
    return str(
        notebook.evaluate(
            "() => { const { classList, ariaLabel, tagName } = document.activeElement;"
            " return classList.contains('jp-Cell') ? 'cell' : ariaLabel ?? tagName; }"
        )
    )


def test_an_ask_is_denied_by_keys_alone(browser: Browser) -> None:
    notebook = project(browser, "keys-deny", "%tool bash rm build", "for i in range(2):\n    %tool bash ls {i}")
    press = notebook.page.keyboard.press
    notebook.run(1, wait=False)
    asking(notebook, 1)
    press("Alt+Shift+N")
    notebook.page.wait_for_function("() => document.activeElement.classList.contains('oc-card')")
    ring = "() => getComputedStyle(document.activeElement).outlineStyle"
    order = []
    for _ in range(6):
        press("Tab")
        order.append(focused(notebook))
        assert notebook.evaluate(ring) == "solid"
    buttons = [ALLOW_ONCE, "Allow for this session…", DENY, "Change…"]
    assert order == ["Command", "Copy command", *buttons]
    press("3")
    notebook.wait_idle(1)
    notebook.wait_text(1, "denied by you")
    # what had the focus is gone
    notebook.page.wait_for_function("() => document.activeElement.classList.contains('jp-Cell')")
    # the cell's next ask takes the focus; the palette opens from there, and answers it
    notebook.run(2, wait=False)
    asking(notebook, 2)
    press("Alt+Shift+N")
    notebook.page.wait_for_function("() => document.activeElement.ariaLabel?.startsWith('bash')")
    press("1")
    asking(notebook, 2)
    notebook.page.wait_for_function("() => document.activeElement.querySelector?.('.oc-ask')")
    press("Control+Shift+C")
    notebook.page.wait_for_function("() => document.activeElement.closest('.lm-CommandPalette')")
    notebook.page.keyboard.type("opencode tools deny")
    press("Enter")
    notebook.wait_idle(2)
    notebook.wait_text(2, "denied by you")
    assert notebook.errors == []
    notebook.close()
