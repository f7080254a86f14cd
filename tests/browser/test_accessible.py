"""axe-core finds nothing serious in any card, panel or viewer, light or dark; motion is reduced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.acts import lab_only
from tests.browser.scene import Scene, build
from tests.support import browser as support

pytestmark = [pytest.mark.browser, lab_only]

AXE = Path(__file__).parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
OURS = (".oc-card", ".oc-panel", ".oc-pages", ".oc-status")
"""What we draw; the rest of the page is JupyterLab's."""
CHECK = """async include => {
    const found = include.filter(place => document.querySelector(place));
    const { violations, passes } = await axe.run({ include: found });
    const read = passes.find(({ id }) => id === 'color-contrast')?.nodes.length ?? 0;
    if (read < 2 * found.length) {
        return [`axe-core read the colours of ${read} texts only`];
    }
    return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) =>
        `${id}: ${nodes.map(({ target, failureSummary }) => `${target.join(' ')}\\n  ${failureSummary}`).join('\\n')}`);
}"""


@pytest.fixture(scope="module")
def scene(browser: support.Browser) -> Iterator[Scene]:
    """A card of every state, the side panel and a whole output, with axe-core in the page."""
    assert AXE.is_file(), "axe-core is missing: npm ci in labextension/ fetches it"
    made = build(browser)
    made.page.add_script_tag(path=AXE)
    # the body of JupyterLab's page has no height of its own, so axe-core takes all that is in it for hidden
    made.page.add_style_tag(content="body { height: 100vh; }")
    yield made
    assert made.notebook.errors == []
    made.notebook.close(keep=False)


def faults(scene: Scene, *places: str) -> list[Any]:
    """What axe-core calls serious or critical in these places."""
    return list(scene.notebook.evaluate(CHECK, list(places)))


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_cards_panels_and_the_viewer(scene: Scene, theme: str) -> None:
    scene.theme(theme)
    found = faults(scene, *OURS)
    for tab in scene.tabs():
        scene.tab(tab)
        found += faults(scene, ".oc-panel")
    form = scene.tab("tools")
    form.get_by_role("button", name=re.compile("^edit ")).click()
    form.get_by_role("button", name="Run", exact=True).click()
    expect(form.locator(".error-detail").first).to_be_visible()
    found += faults(scene, ".oc-panel")
    form.get_by_role("button", name="All tools").click()
    scene.viewer()
    found += faults(scene, ".oc-pages")
    scene.leave_viewer()
    assert found == [], "\n\n".join(found)


def test_the_code_of_an_error_opens_its_explanation(scene: Scene) -> None:
    code = scene.page.get_by_role("button", name=re.compile("^What OJ-.* means$")).first
    code.focus()
    scene.page.keyboard.press("Enter")
    dialog = scene.page.get_by_role("dialog")
    expect(dialog).to_contain_text(code.inner_text())
    expect(dialog.locator("code").first).to_contain_text("Error")
    scene.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(code).to_be_focused()


def test_nothing_moves_where_motion_is_to_be_reduced(scene: Scene) -> None:
    moving = (
        "() => document.getAnimations().filter(a => a.effect.target?.closest('.oc-card, .oc-panel, .oc-pages')).length"
    )
    assert scene.notebook.evaluate(moving) == 0
    scene.page.emulate_media(reduced_motion="no-preference")
    assert scene.notebook.evaluate(moving) > 0, "what runs turns elsewhere, so that the check above can fail"
    scene.page.emulate_media(reduced_motion="reduce")
