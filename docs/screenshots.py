"""Photographs every state of a card, the side panel and the viewer, light and dark, into ``docs/pictures``.

``python -m docs.screenshots`` takes three minutes; with the argument ``readme`` it takes the README's pictures only. It
needs what browser tests need: Chromium, and the front end built.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Locator, expect

from tests.browser.acts import button
from tests.browser.scene import Scene, build, end
from tests.support import browser as support

PICTURES = Path(__file__).parent / "pictures"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
COLOURS = 128
"""A picture's palette: its text stays sharp, and all pictures together stay small."""
TALLEST = 700
"""Pixels; what is longer is cut."""
WIDE = 1240
"""Width of the page, in pixels, with a card some 760 wide in it."""
PRACTICE = """%load_ext opencode_jupyter
import opencode_jupyter
opencode_jupyter.demo("penguins")
%tool -q edit summary.py wieght weight
%permissions allow bash 'python3 *'
%agent -m scripted:assistant.py"""
REQUEST = "%%agent\nsummary.py fails. Find out why, and repair it."
ASK = "%permissions ask bash 'python3 *'"
COMMAND = "%tool bash python3 summary.py"
"""The README's cells."""
FRAMES = (2500, 4000)
"""Milliseconds for which the moving picture shows the request and the result."""


def main() -> None:
    """Take all pictures."""
    PICTURES.mkdir(exist_ok=True)
    expect.set_options(timeout=15_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        support.serve("lab", Path(folder) / "lab") as server,
        support.browse(server) as browser,
    ):
        take_readme_pictures(browser)
        if sys.argv[1:] == ["readme"]:
            return
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


def take_readme_pictures(browser: support.Browser) -> None:
    """An agent's edit that waits for approval; and a command before and after its approval, as a moving picture."""
    for look, theme in THEMES.items():
        notebook = browser.notebook(PRACTICE, REQUEST, ASK, COMMAND, name=f"readme-{look}.ipynb")
        page = notebook.page
        page.add_style_tag(content=".Toastify, .jp-cell-toolbar { display: none !important; }")
        notebook.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        page.set_viewport_size({"width": 900, "height": 1600})
        Scene(notebook, {}).theme(theme)
        notebook.run(0)
        notebook.run(1, wait=False)
        notebook.output(1).get_by_text("Runs the program").first.click()  # folds it: its output is long
        save(picture_of_waiting(notebook, 1), f"readme-waiting-{look}")
        allow(notebook, 1)
        notebook.run(2)
        notebook.run(3, wait=False)
        frames = [picture_of_waiting(notebook, 3)]
        allow(notebook, 3)
        frames.append(picture(notebook.cell(3)))
        save_moving(frames, f"readme-result-{look}")
        page.close(run_before_unload=False)


def picture_of_waiting(notebook: support.Notebook, index: int) -> Image.Image:
    """A cell whose card waits for approval, without the mark of the selected cell."""
    expect(button(notebook.output(index), "Allow once")).to_be_enabled()
    notebook.page.wait_for_timeout(500)  # until it has its colour
    notebook.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0; }")
    return picture(notebook.cell(index))


def allow(notebook: support.Notebook, index: int) -> None:
    """Allow a cell's request, and wait for the cell's end."""
    button(notebook.output(index), "Allow once").click()
    notebook.wait_idle(index)
    notebook.page.wait_for_timeout(500)  # the settled card takes the place of the live one


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
    save(picture(place), name)


def picture(place: Locator) -> Image.Image:
    """What `place` looks like now."""
    place.page.mouse.move(0, 0)
    with Image.open(io.BytesIO(place.screenshot(animations="disabled"))) as taken:
        return taken.convert("RGB").crop((0, 0, taken.width, min(taken.height, TALLEST)))


def save(taken: Image.Image, name: str) -> None:
    """Write a picture with few colours."""
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


def save_moving(frames: list[Image.Image], name: str) -> None:
    """Write a moving picture of two frames, each as high as the higher one."""
    size = frames[0].width, max(frame.height for frame in frames)
    whole = Image.new("RGB", (size[0], 2 * size[1]), frames[0].getpixel((0, 0)))
    for number, frame in enumerate(frames):
        whole.paste(frame, (0, number * size[1]))
    whole = whole.quantize(COLOURS, dither=Image.Dither.NONE)  # the same colours in both
    first, second = (whole.crop((0, top, size[0], top + size[1])) for top in (0, size[1]))
    first.save(PICTURES / f"{name}.gif", save_all=True, append_images=[second], duration=list(FRAMES), loop=0)


if __name__ == "__main__":
    main()
