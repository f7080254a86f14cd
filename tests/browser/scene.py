"""One notebook in which a card of every state stands, live ones too: looked at by checks and photographed for the docs.

Each cell makes one state. What asks or runs does so in the background, so that all of it waits at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.browser.acts import SESSION, button, project
from tests.support.browser import Browser, Notebook

PANEL = "#opencode-jupyter-panel"
TALL: ViewportSize = {"width": 1500, "height": 9000}
"""A page on which every card is in sight: what is not is neither drawn nor checked."""

CONFIG: dict[str, Any] = {
    "permission": {
        "edit": {"*": "allow", "prices.py": "ask", "costs.py": "ask", "names.py": "ask"},
        "bash": {"*": "allow", "rm *": "deny", "pip *": "ask"},
        "python": "allow",
        "trust": "allow",
    }
}
PRICES = '''"""What things cost."""

PRICES = {"tea": 3.5, "bread": 2.0}


def total(names):
    return sum(PRICES[name] for name in names)
'''
SOURCES = [
    "# What tea costs\n\nWith the shop's own prices.",
    """%matplotlib inline
from prices import PRICES, total

total(["tea", "bread"])  # 3.5 and 2.0""",
    """for name, price in PRICES.items():
    print(f"{name:8} {price:.2f}")""",
]
OUTPUTS = [None, {"output_type": "execute_result", "data": {"text/plain": "5.5"}, "metadata": {}, "execution_count": 1},
           {"output_type": "stream", "name": "stdout", "text": "tea      3.50\nbread    2.00\n"}]  # fmt: skip
TEA = {
    "cells": [{"cell_type": "markdown", "id": "intro", "metadata": {}, "source": SOURCES[0]}]
    + [
        {"cell_type": "code", "id": f"cell{n}", "metadata": {}, "source": SOURCES[n], "execution_count": n,
         "outputs": [OUTPUTS[n]]}
        for n in (1, 2)
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}  # fmt: skip
SCRIPT = """
speed: 0
turns:
  - reasoning: I look at the file before I change it.
    text: I look at the prices first.
    calls:
      - read: {filePath: prices.py}
      - grep: {pattern: PRICES}
      - read: {filePath: missing.py}
  - text: |
      Done. **Two of three** files were there.

      ## What I found

      - `prices.py` names two things
      - *tea* is the dearer one

      | thing | price |
      |-------|------:|
      | tea   |   3.5 |
      | bread |   2.0 |

      ```python
      total(["tea", "bread"])
      ```
"""
ASKING = """
speed: 0
turns:
  - text: I raise the price of tea.
    calls:
      - read: {filePath: names.py}
  - calls:
      - edit: {filePath: names.py, oldString: "3.5", newString: "3.75"}
  - Done.
"""
SETUP = """
import asyncio
import struct
import zlib
from pathlib import Path

from opencode_jupyter import ToolError, tool


def png(width, height):
    line = lambda y: b"".join(bytes((255 * x // width, 255 * y // height, 160)) for x in range(width))
    rows = b"".join(b"\\0" + line(y) for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


Path("colours.png").write_bytes(png(240, 80))


@tool
async def train(epochs: int, *, ctx):
    '''Train the model.'''
    ctx.metadata(metadata={"progress": {"value": 3, "total": epochs, "message": f"epoch 3 of {epochs}"}})
    await asyncio.sleep(600)


@tool
async def fetch_all(place: str, *, ctx):
    '''Fetch everything.'''
    ctx.metadata(metadata={"progress": {"message": "asking the server"}})
    await asyncio.sleep(600)


DB = {"question": "Which database should the cache use?", "header": "Database", "options": [
    {"label": "SQLite (Recommended)", "description": "One file beside the notebook, nothing to install"},
    {"label": "PostgreSQL", "description": "A server"}]}
FORMATS = {"question": "Which formats are written?", "header": "Formats", "multiple": True, "options": [
    {"label": "CSV", "description": ""}, {"label": "Parquet", "description": "needs pyarrow"}]}
both = [DB, FORMATS]
todos = [{"content": text, "status": status, "priority": priority} for text, status, priority in (
    ("Read the prices", "completed", "high"), ("Clean the column", "in_progress", "high"),
    ("Write the report", "pending", "medium"), ("Ask for the key", "cancelled", "low"))]
patch = '''*** Begin Patch
*** Update File: till.py
@@
 alpha
-beta
+gamma
*** Add File: notes.md
+# Notes
+one
*** End Patch
'''
calls = [
    {"tool": "read", "parameters": {"filePath": "a.txt"}},
    {"tool": "read", "parameters": {"filePath": "missing.txt"}},
    {"tool": "glob", "parameters": {"pattern": "*.py"}},
]
asks = [
    calls[0],
    {"tool": "edit", "parameters": {"filePath": "costs.py", "oldString": "2.0", "newString": "2.5"}},
    {"tool": "question", "parameters": {"questions": [FORMATS]}},
]


def attempt(line):
    try:
        get_ipython().run_line_magic("tool", line)
    except ToolError as error:
        pass


def behind(line):
    waiting.append(get_ipython().run_line_magic("tool", "--bg " + line))


waiting = []
%tool -q read a.txt
%tool -q read prices.py
%tool -q read costs.py
"""

SETTLED: dict[str, str] = {
    "completed": "%tool read prices.py",
    "colours": r"%tool bash printf '\033[32m3 passed\033[0m \033[1;31m1 failed\033[0m \033[33m2 warnings\033[0m\n'",
    "change": "%tool edit a.txt beta 'gamma delta'",
    "patch": "%tool apply_patch patchText:={patch}",
    "found": "%tool grep PRICES include=*.py",
    "names": "%tool glob *.py",
    "cells": "%tool notebook_read tea.ipynb",
    "tasks": "%tool todowrite todos:={todos}",
    "picture": "%tool read colours.png",
    "cut": "%tool bash seq 5000",
    "batch": "%tool batch tool_calls:={calls}",
    "failed": 'attempt("read missing.txt")',
    "traceback": "attempt(\"python int('x')\")",
    "arguments": 'attempt("read prices.py offset=soon")',
    "timeout": 'attempt("--timeout 0.3 bash sleep 30")',
    "refused": 'attempt("bash rm prices.py")',
    "agent": "%%agent -m scripted:talk.yaml\nWhat costs what?",
}
"""Cells whose calls end by themselves; the name is the state's."""

WAITING: dict[str, str] = {
    "stopped": 'behind("bash echo working; sleep 600")',
    "denied": 'behind("bash pip download opencode")',
    "answered": 'behind("question questions:={both}")',
    "running": r"""behind(r"bash printf 'collecting ...\n\033[32mtest_prices.py ..\033[0m\n'; sleep 600")""",
    "progress": 'behind("train 8")',
    "unknown": 'behind("fetch_all shop")',
    "asking": 'behind("edit prices.py 3.5 3.75")',
    "session": 'behind("bash pip install requests")',
    "revise": 'behind("bash pip install numpy")',
    "question": 'behind("question questions:={both}")',
    "asking-batch": 'behind("batch tool_calls:={asks}")',
    "asking-agent": "%%agent --bg --new -o raised -m scripted:raise.yaml\nMake tea dearer",
}
"""Cells whose calls wait or run until somebody answers or stops them."""


@dataclass
class Scene:
    """The notebook, and where in it each state stands."""

    notebook: Notebook
    indices: dict[str, int]

    @property
    def page(self) -> Page:
        return self.notebook.page

    def output(self, name: str) -> Locator:
        """What the cell of a state shows."""
        return self.notebook.output(self.indices[name])

    def card(self, name: str) -> Locator:
        """The outermost card of a state."""
        return self.output(name).locator(".oc-card").first

    def theme(self, name: str) -> None:
        """Change JupyterLab's theme: ``JupyterLab Light``, ``JupyterLab Dark``, ``JupyterLab Dark High Contrast``."""
        change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
        self.notebook.evaluate(change, name)
        self.page.wait_for_selector(f'body[data-jp-theme-name="{name}"]', state="attached")

    def panel(self) -> Locator:
        """The side panel, open."""
        self.notebook.evaluate("() => { window.jupyterapp.commands.execute('opencode-jupyter:show-panel'); }")
        found = self.page.locator(PANEL)
        found.wait_for()
        return found

    def tabs(self) -> list[str]:
        """The ids of the panel's tabs."""
        tabs = self.panel().locator("[role=tab]")
        return [name.rsplit("-", 2)[1] for name in tabs.evaluate_all("all => all.map(tab => tab.id)")]

    def tab(self, name: str) -> Locator:
        """One tab's page of the panel, chosen and drawn."""
        self.page.locator(f"{PANEL}-{name}-tab").click()
        page = self.page.locator(f"{PANEL}-{name}")
        expect(page).to_be_visible()
        self.page.wait_for_timeout(800)  # what it asks of the kernel comes in
        return page

    def viewer(self) -> Locator:
        """The viewer of the cut output."""
        button(self.card("cut"), "Open the whole output").click()
        shown = self.page.locator(".oc-pages:visible")
        expect(shown.locator(".oc-here")).to_be_visible()
        return shown

    def leave_viewer(self) -> None:
        """Close it."""
        close = (
            "() => { for (const w of [...window.jupyterapp.shell.widgets('main')])"
            " if (w.id.startsWith('opencode-spill')) w.close(); }"
        )
        self.notebook.evaluate(close)
        expect(self.page.locator(".oc-pages")).to_have_count(0)


def build(browser: Browser) -> Scene:
    """Run all of it; the calls of `WAITING` are as they are named when it comes back."""
    cells = {**SETTLED, **WAITING}
    notebook = project(browser, "shop", SETUP, *cells.values(), config=CONFIG)
    folder = notebook.path.parent
    (folder / "tea.ipynb").write_text(json.dumps(TEA))
    files = {"prices.py": PRICES, "costs.py": PRICES, "names.py": PRICES, "till.py": "alpha\nbeta\n"}
    for name, text in {**files, "talk.yaml": SCRIPT, "raise.yaml": ASKING}.items():
        (folder / name).write_text(text)
    scene = Scene(notebook, {name: at for at, name in enumerate(cells, 2)})
    run(notebook, 1)
    for name, index in scene.indices.items():
        run(notebook, index)
        if name in ANSWERS:
            ANSWERS[name](scene.card(name))
    expect(button(scene.card("asking-batch"), "Dismiss")).to_be_enabled()
    expect(button(scene.output("asking-agent"), "Allow once")).to_be_enabled()
    scene.page.mouse.move(0, 0)
    scene.page.set_viewport_size(TALL)  # only now: drawing it all anew with each cell took half a minute
    return scene


def run(notebook: Notebook, index: int) -> None:
    """Run a cell and wait for its end, without a click: it may be far out of sight."""
    execute = (
        "i => { const a = window.jupyterapp; a.shell.currentWidget.content.activeCellIndex = i;"
        " a.commands.execute('notebook:run-cell'); }"
    )
    notebook.evaluate(execute, index)
    notebook.wait_idle(index)


def _stop(card: Locator) -> None:
    expect(card).to_contain_text("working")
    button(card, "Stop").click()
    expect(card.locator(".oc-state").first).to_contain_text("stopped")


def _deny(card: Locator) -> None:
    expect(button(card, "Deny")).to_be_enabled()
    button(card, "Deny").click()
    expect(card.locator(".oc-state").first).to_contain_text("denied")


def _answer(card: Locator) -> None:
    expect(button(card, "Dismiss")).to_be_enabled()
    card.get_by_label("SQLite").check()
    card.get_by_label("CSV").check()
    button(card, "Answer").click()
    expect(card.locator(".oc-answered")).to_be_visible()


def _session(card: Locator) -> None:
    expect(button(card, SESSION)).to_be_enabled()
    button(card, SESSION).click()
    expect(button(card, "Always in this project")).to_be_enabled()


def _change(card: Locator) -> None:
    expect(button(card, "Change…")).to_be_enabled()
    button(card, "Change…").click()
    expect(button(card, "Run with these changes")).to_be_visible()


ANSWERS: dict[str, Callable[[Locator], None]] = {
    "stopped": _stop,
    "denied": _deny,
    "answered": _answer,
    "session": _session,
    "revise": _change,
}
"""What a person does with the card of a state before the next one is made."""


def end(scene: Scene) -> None:
    """Restart the kernel: what waited is cancelled."""
    scene.notebook.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    expect(scene.card("asking").locator(".oc-state").first).to_contain_text("cancelled")
