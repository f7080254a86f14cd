"""Photographs every state of a card, the side panel and the viewer, light and dark, into ``docs/pictures``.

``python -m docs.screenshots`` takes two minutes. It needs what browser tests need: Chromium, and the front end built.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, expect

from tests.browser.scene import Scene, build, end
from tests.support import browser as support

PICTURES = Path(__file__).parent / "pictures"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
COLOURS = 64
"""A picture's palette: its text stays sharp, and all pictures together stay small."""
TALLEST = 700
"""Pixels; what is longer is cut."""
WIDE = 1240
"""Width of the page, in pixels, with a card some 760 wide in it."""


def main() -> None:
    """Take all pictures."""
    PICTURES.mkdir(exist_ok=True)
    expect.set_options(timeout=15_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        support.serve("lab", Path(folder) / "lab") as server,
        support.browse(server) as browser,
    ):
        scene = build(browser)
        scene.notebook.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
        # notifications would stand before the cards
        scene.page.add_style_tag(content=".Toastify { display: none; }")
        for look, theme in THEMES.items():
            scene.theme(theme)
            photograph(scene, look)
        end(scene)
        for look, theme in THEMES.items():
            scene.theme(theme)
            keep(scene.card("asking"), f"card-ended-{look}")


def photograph(scene: Scene, look: str) -> None:
    """All that stands in the scene, in the theme it has now."""
    scene.page.set_viewport_size({"width": WIDE, "height": 9000})
    hide(scene)
    for name in scene.indices:
        keep(scene.card(name), f"card-{name}-{look}")
    scene.page.set_viewport_size({"width": 1700, "height": 9000})
    for tab in scene.tabs():
        page = scene.tab(tab)
        keep(page, f"panel-{tab}-{look}")
    hide(scene)
    scene.page.set_viewport_size({"width": 1900, "height": 700})
    keep(open_viewer(scene), f"viewer-{look}")
    scene.leave_viewer()
    scene.page.set_viewport_size({"width": WIDE, "height": 9000})


def hide(scene: Scene) -> None:
    """Close the side panel."""
    scene.notebook.evaluate("() => window.jupyterapp.shell.collapseRight()")


def open_viewer(scene: Scene) -> Locator:
    """The viewer, in a page that a person would have."""
    scene.page.set_viewport_size({"width": WIDE, "height": 9000})
    shown = scene.viewer()
    scene.page.set_viewport_size({"width": 1700, "height": 560})
    scene.page.wait_for_timeout(500)
    return shown


def keep(place: Locator, name: str) -> None:
    """A picture of `place`, with few colours."""
    path = PICTURES / f"{name}.png"
    place.page.mouse.move(0, 0)
    place.screenshot(path=path, animations="disabled")
    with Image.open(path) as picture:
        cut = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, TALLEST)))
    cut.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
