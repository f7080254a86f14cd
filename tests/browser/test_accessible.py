"""axe-core finds nothing serious in any card, panel or viewer; dark and forced colours; motion is reduced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.acts import button, lab_only
from tests.browser.scene import PANEL, Scene, build
from tests.support import browser as support

pytestmark = [pytest.mark.browser, lab_only]

AXE = Path(__file__).parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
OURS = (".oc-card", ".oc-panel", ".oc-pages", ".oc-status")
"""What we draw; the rest of the page is JupyterLab's."""
CHECK = """async ([include, rules]) => {
    const found = include.filter(place => document.querySelector(place));
    const { violations, passes } = await axe.run({ include: found }, rules.length ? { runOnly: rules } : {});
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


COLOURS = ["color-contrast"]
"""The rule of axe-core that depends on the theme."""


def faults(scene: Scene, *places: str, rules: Sequence[str] = ()) -> list[Any]:
    """What axe-core calls serious or critical in these places, by all rules if none are given."""
    return list(scene.notebook.evaluate(CHECK, [places, rules]))


@pytest.mark.parametrize(("theme", "rules"), [("JupyterLab Light", []), ("JupyterLab Dark", COLOURS)])
def test_cards_panels_and_the_viewer(scene: Scene, theme: str, rules: list[str]) -> None:
    scene.theme(theme)
    found = faults(scene, *OURS, rules=rules)
    for tab in scene.tabs():
        scene.tab(tab)
        found += faults(scene, ".oc-panel", rules=rules)
    form = scene.tab("tools")
    form.get_by_role("button", name=re.compile("^edit ")).click()
    form.get_by_role("button", name="Run", exact=True).click()
    expect(form.locator(".error-detail").first).to_be_visible()
    found += faults(scene, ".oc-panel", rules=rules)
    form.get_by_role("button", name="All tools").click()
    scene.viewer()
    found += faults(scene, ".oc-pages", rules=rules)
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


STYLE = "(node, name) => getComputedStyle(node)[name]"


def styles(place: Locator, name: str) -> str:
    """A computed property of the first of `place`."""
    return str(place.first.evaluate(STYLE, name))


def test_forced_colours(scene: Scene) -> None:
    """Where the system sets all colours, what colours alone told is told by lines, and all can be read."""
    scene.theme("JupyterLab Light")
    scene.page.emulate_media(forced_colors="active")
    card = scene.card("asking")
    added, removed = card.locator(".oc-diff .oc-add"), card.locator(".oc-diff .oc-del")
    context = card.locator(".oc-diff :is(.oc-side, .oc-row:not(.oc-pair)):not(.oc-add, .oc-del)")
    marks = [styles(row, "borderLeft").split(" rgb")[0] for row in (added, removed, context)]
    assert marks == ["3px solid", "3px dotted", "0px none"]
    assert [row.locator(".oc-sign").first.text_content() for row in (added, removed)] == [" + ", " - "]
    assert "underline" in styles(added.locator(".oc-mark-word"), "textDecorationLine")
    allow, deny = button(card, "Allow once"), button(card, "Deny")
    assert styles(allow, "backgroundColor") != styles(deny, "backgroundColor")
    progress = scene.card("progress").locator(".oc-bar i")
    assert styles(progress, "backgroundColor") != styles(scene.card("progress"), "backgroundColor")
    allow.focus()
    scene.page.keyboard.press("Tab")
    ring = scene.page.locator(".oc-card :focus-visible")
    assert styles(ring, "outlineStyle") == "solid"
    assert styles(ring, "outlineColor") != styles(ring, "backgroundColor")
    found = faults(scene, *OURS, rules=COLOURS)
    for tab in scene.tabs():
        shown = scene.tab(tab)
        found += faults(scene, ".oc-panel", rules=COLOURS)
        if tab == "calls":
            bar = shown.locator(".oc-time-bar")
            assert styles(bar, "backgroundColor") != styles(shown, "backgroundColor")
    tabs = scene.page.locator(f"{PANEL} [role=tab]")
    assert styles(tabs.last, "borderBottomColor") != styles(tabs.first, "borderBottomColor"), (
        "the current tab is the last"
    )
    pages = scene.viewer()
    assert styles(pages.locator(".oc-here"), "outlineStyle") == "dashed"
    wrap = button(pages, "Wrap")
    before = styles(wrap, "backgroundColor")
    wrap.click()
    assert styles(wrap, "backgroundColor") != before, "a switch shows that it is on"
    wrap.click()
    found += faults(scene, ".oc-pages", rules=COLOURS)
    scene.leave_viewer()
    scene.page.emulate_media(forced_colors="none")
    assert found == [], "\n\n".join(found)


def test_nothing_moves_where_motion_is_to_be_reduced(scene: Scene) -> None:
    moving = (
        "() => document.getAnimations().filter(a => a.effect.target?.closest('.oc-card, .oc-panel, .oc-pages')).length"
    )
    assert scene.notebook.evaluate(moving) == 0
    scene.page.emulate_media(reduced_motion="no-preference")
    assert scene.notebook.evaluate(moving) > 0, "what runs turns elsewhere, so that the check above can fail"
    scene.page.emulate_media(reduced_motion="reduce")
