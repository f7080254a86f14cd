"""An agent in JupyterLab: edits allowed, denied with a word, allowed for the session; stopped; read with no kernel."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from tests.browser.acts import ALLOW_ONCE, DENY, SESSION, WORD, button, lab_only, project
from tests.support import browser as support
from tests.support.model_servers.openai import ScriptedServer

pytestmark = pytest.mark.browser

RUN = "application/vnd.opencode.run.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
FILES = {name: f"def {name[0]}():\n    return 0\n" for name in ("one.py", "two.py", "three.py", "four.py")}
WORDS = """Done. **Two of four** stand as you wanted them.

## What changed

- `one.py`, `three.py` and `four.py` return a number
- `two.py` stays: *you said so*

```python
def o():
    return 1
```

Not drawn: <img src=x onerror="document.title='hit'"> [x](javascript:alert(1))
"""


def edit(name: str, number: int) -> list[Any]:
    return ["edit", {"filePath": name, "oldString": "return 0", "newString": f"return {number}"}]


EDITS = (
    {
        "reasoning": "I read them first, then edit.",
        "text": "I look at the files.",
        "calls": [["read", {"filePath": name}] for name in FILES],
    },
    {"text": "Now the first.", "calls": [edit("one.py", 1)]},
    {"calls": [edit("two.py", 2)]},
    {"text": "Understood, I leave it.", "calls": [edit("three.py", 3)]},
    {"calls": [edit("four.py", 4)]},
    {"text": WORDS},
)  # fmt: skip


def at_work(browser: support.Browser, name: str, server: ScriptedServer, *cells: str) -> support.Notebook:
    """A notebook whose model is the scripted server."""
    entry = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": server.url, "apiKey": "none"},
        "models": {"m": {}},
    }
    config = {"model": "loop/m", "provider": {"loop": entry}, "permission": {"bash": "ask"}}
    notebook = project(browser, name, *cells, config=config)
    for file, text in FILES.items():
        (notebook.path.parent / file).write_text(text)
    return notebook


def ask_of(notebook: support.Notebook, index: int, file: str) -> Locator:
    """The card of the call that asks for a file, with its buttons alive."""
    cards = notebook.output(index).locator(".oc-call .oc-card")
    card = cards.filter(has_text=file).filter(has_text="waiting for approval")
    expect(button(card.last, ALLOW_ONCE)).to_be_enabled(timeout=20_000)
    time.sleep(0.6)  # a person takes a moment, and the buttons are shut for as long against a slip
    return card.last


def three_edits(notebook: support.Notebook, index: int) -> None:
    notebook.run(index, wait=False)
    card = ask_of(notebook, index, "one.py")
    button(card, ALLOW_ONCE).click()
    card = ask_of(notebook, index, "two.py")
    card.get_by_placeholder(WORD).fill("leave that one alone")
    button(card, DENY).click()
    card = ask_of(notebook, index, "three.py")
    button(card, SESSION).click()
    pattern = card.locator(".oc-patterns input").first
    pattern.fill("*.py")
    button(card, "Allow these for this session").click()
    notebook.wait_idle(index)


def check_edits(notebook: support.Notebook) -> None:
    folder = notebook.path.parent
    numbers = [(folder / name).read_text().split()[-1] for name in FILES]
    assert numbers == ["1", "0", "3", "4"]


@lab_only
def test_three_edits(browser: support.Browser) -> None:
    with ScriptedServer(EDITS, side={"text": "Numbers"}) as server:
        notebook = at_work(browser, "edits", server, "%%agent -o r\nLet each function return its number.", CHECK)
        three_edits(notebook, 1)
        check_edits(notebook)
        expect(notebook.output(1).locator(".oc-run")).to_have_count(1)
        expect(notebook.output(1).locator(".oc-call")).to_have_count(8)
        expect(notebook.output(1).locator(".oc-call[open]")).to_have_count(1)  # the one that was denied
        expect(notebook.output(1).locator(".oc-call[open]")).to_contain_text("leave that one alone")
        expect(notebook.output(1).locator(".oc-run > .oc-head")).to_contain_text("done")
        assert "leave that one alone" in json.dumps(server.requests[-1].body["messages"])
        notebook.run(2)
        notebook.wait_text(
            2, "read read read read edit edit edit edit / denied by you / Let each function return its number."
        )
        assert "hit" not in notebook.page.title()
        assert notebook.errors == []
        saved = notebook.save()
        name = notebook.name
        notebook.close()
        reopened(browser, saved, name)


CHECK = (
    "print(' '.join(c.tool for c in r.calls), '/', [c.outcome for c in r.calls][5], '/', r.session.title)\n"
    "assert len(r.calls.records) == 8 and r.steps == 6"
)


def reopened(browser: support.Browser, saved: nbformat.NotebookNode, name: str) -> None:
    """The saved notebook tells the whole story without a kernel, trusted or not, and as HTML."""
    data = saved.cells[1].outputs[0]["data"]
    assert set(data) == {"text/plain", "text/html", RUN}
    assert WIDGET not in json.dumps(saved)
    assert len(data["text/plain"].split("\n")) <= 60
    for form in (data["text/plain"], data["text/html"], json.dumps(data[RUN], ensure_ascii=False)):
        for words in ("one.py", "two.py", "leave that one alone", "Understood, I leave it.", "return a number"):
            assert words in form, words
    assert "<script" not in data["text/html"].lower()
    assert "<img" not in data["text/html"].lower()
    copy = browser.server.root / Path(name).with_name("copy.ipynb")
    saved.metadata["kernelspec"] = {"name": "none", "display_name": "None"}
    nbformat.write(saved, copy)
    again = browser.open(str(copy.relative_to(browser.server.root)), kernel=False)
    again.page.keyboard.press("Escape")
    dismiss = again.page.locator(".jp-Dialog button").filter(has_text="No Kernel")
    if dismiss.count():
        dismiss.first.click()
    expect(again.output(1).locator(".oc-run, .oc-s").first).to_be_visible()
    expect(again.output(1)).to_contain_text("leave that one alone")
    expect(again.output(1)).to_contain_text("Two of four")
    assert again.errors == []
    again.leave()


ANSWER = """The area is $\\pi r^2$, and

$$
\\int_0^1 x\\,dx = \\frac12
$$

It costs $5, not $6.

```python
print(6 * 7)
```

```rust
fn main() {}
```
"""


def check_answer(notebook: support.Notebook) -> None:
    """Its formulas are typeset, its code can be copied and put into a cell."""
    card = notebook.output(1)
    expect(card.locator(".oc-formula mjx-container")).to_have_count(2)
    expect(card).to_contain_text("It costs $5, not $6.")
    expect(button(card, "Copy code")).to_have_count(2)
    expect(button(card, "Insert as cell")).to_have_count(1)
    card.locator(".oc-fence").first.hover()
    count = notebook.page.locator(".jp-Notebook .jp-Cell").count()
    button(card, "Insert as cell").click()
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(count + 1)
    expect(notebook.cell(2).locator(".cm-content")).to_have_text("print(6 * 7)")
    assert notebook.count(2) is None
    assert notebook.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCellIndex") == 2


def test_code_and_formulas_of_an_answer(browser: support.Browser) -> None:
    with ScriptedServer(({"text": ANSWER},), side={"text": "Area"}) as server:
        notebook = at_work(browser, "answer", server, "%%agent\nWhat is the area?", "# the end")
        notebook.run(1)
        check_answer(notebook)
        notebook.page.keyboard.press("Shift+Enter")
        notebook.wait_text(2, "42")
        button(notebook.output(1), "Copy code").first.click()
        expect(notebook.output(1).locator(".oc-box").first).to_contain_text("Copied")
        notebook.save()
        notebook.leave()
        again = browser.open(notebook.name, kernel=False)
        check_answer(again)  # as the renderer of saved cards draws it
        assert notebook.errors == again.errors == []
        again.leave()


@lab_only
def test_stop_and_what_comes_next(browser: support.Browser) -> None:
    turns = ({"text": "I wait a while. " * 30, "delay": 0.1, "hold": 20}, {"text": "Here again."})
    with ScriptedServer(turns, side={"text": "Waiting"}) as server:
        notebook = at_work(
            browser,
            "stop-run",
            server,
            "%%agent\nGo.",
            "%%agent -o r\nAnd now?",
            "print(r.text, len(r.session.messages))",
        )
        notebook.run(1, wait=False)
        notebook.wait_text(1, "I wait a while")
        notebook.output(1).get_by_role("button", name="Stop the run").click()
        notebook.wait_idle(1)
        expect(notebook.output(1).locator(".oc-end")).to_contain_text("Interrupted by you")
        notebook.run(2)
        notebook.wait_text(2, "Here again.")
        notebook.run(3)
        notebook.wait_text(3, "Here again. 4")
        assert notebook.errors == []
        notebook.close()


@lab_only
def test_a_page_that_is_loaded_anew_shows_the_run_that_goes_on(browser: support.Browser) -> None:
    turns = (
        {"text": "Before. ", "calls": [["bash", {"command": "echo hi", "description": "Says hi"}]]},
        {"text": "After."},
    )
    with ScriptedServer(turns, side={"text": "Reloaded"}) as server:
        notebook = at_work(browser, "reload-run", server, "%%agent\nGo.")
        notebook.save()
        notebook.run(1, wait=False)
        ask_of(notebook, 1, "echo hi")
        notebook.save()
        notebook.leave()
        again = browser.open(notebook.name, kernel=False)
        card = ask_of(again, 1, "echo hi")
        expect(again.output(1)).to_contain_text("Before.")
        button(card, ALLOW_ONCE).click()
        expect(again.output(1)).to_contain_text("After.", timeout=15_000)
        expect(again.output(1).locator(".oc-run > .oc-head")).to_contain_text("done", timeout=15_000)
        again.close()
