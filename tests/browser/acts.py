"""What several browser tests do: a notebook with the extension loaded, in a project folder of its own."""

from __future__ import annotations

import json
import os
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.support.browser import Browser, Notebook

ALLOW_ONCE = "Allow once"
SESSION = "Allow for this session…"
DENY = "Deny"
STOP = "Stop"
WORD = "Reason (sent to the model)"


lab_only = pytest.mark.parametrize("application", ["lab"], indirect=True, scope="module")
"""For tests of what both applications do by the same code, or of what only JupyterLab has."""


def project(
    browser: Browser, name: str, *cells: str, config: dict[str, Any] | None = None, runs: bool = True
) -> Notebook:
    """A notebook in a fresh git project whose bash asks; cell 0 loads the extension (is run), `cells` follow it."""
    # a second try of a test needs a folder of its own: the first one's kernel may still live in its
    name = next(n for i in count() if not (browser.server.root / (n := f"{name}-{i}" if i else name)).exists())
    folder = browser.server.root / name
    (folder / ".git").mkdir(parents=True)
    (folder / "a.txt").write_text("alpha\nbeta\n")
    (folder / "opencode.json").write_text(json.dumps({"permission": {"bash": "ask"}} if config is None else config))
    load = "%load_ext opencode_jupyter" + ("" if config is None else "\n_ = %tools trust --project")
    notebook = browser.notebook(load, *cells, name=f"{name}/{name}.ipynb")
    if runs:
        notebook.run(0)
    return notebook


def button(place: Locator, name: str) -> Locator:
    """A button by its accessible name."""
    return place.get_by_role("button", name=name)


def asking(notebook: Notebook, index: int) -> Locator:
    """The card of a cell that waits for an answer, with its buttons alive."""
    card = notebook.cards(index).filter(has_text="waiting for approval").first
    card.wait_for()
    expect(button(card, ALLOW_ONCE)).to_be_enabled()
    return card


def answer(notebook: Notebook, index: int, name: str = ALLOW_ONCE, word: str = "") -> None:
    """Click an answer and wait until the cell is over."""
    card = asking(notebook, index)
    if word:
        card.get_by_placeholder(WORD).fill(word)
    # A person takes a second; a click that comes at once would also reach a kernel that still handles messages.
    time.sleep(1)
    button(card, name).click()
    notebook.wait_idle(index)


def processes(mark: str) -> list[int]:
    """Processes whose command line holds `mark`, this one's own search aside."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if mark in command:
                found.append(int(entry.name))
    return found
