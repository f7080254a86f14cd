"""The tab of calls: a batch with an ask and a question that wait, filters, the way to a card, totals, files to save."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.acts import ALLOW_ONCE, button, lab_only, project
from tests.support.browser import Browser

SETUP = """
one = {'questions': [{'question': 'Which database?', 'header': 'DB', 'options': [
    {'label': 'SQLite', 'description': 'a file'}, {'label': 'PostgreSQL', 'description': 'a server'}]}]}
both = {'tool_calls': [{'tool': 'bash', 'parameters': {'command': 'echo inside', 'description': 'says inside'}},
                       {'tool': 'question', 'parameters': one}]}
for i in range(3):
    %tool glob *.txt
%tool read a.txt"""
BATCH = "def f():\n    r = %tool batch --from both\n    return r\nprint(f().title)"


def tab(page: Page, section: str) -> Locator:
    """The side panel, at one of its tabs."""
    page.evaluate(
        "section => { window.jupyterapp.commands.execute('opencode-jupyter:show-panel', {section}); }", section
    )
    found = page.locator(f"#opencode-jupyter-panel .oc-{section}")
    found.wait_for()
    return found


def saved(page: Page, name: str) -> str:
    """What a button gives the browser to save."""
    with page.expect_download() as download:
        button(page.locator("#opencode-jupyter-panel"), name).click()
    return Path(download.value.path()).read_bytes().decode()


@lab_only
def test_calls_are_shown_chosen_found_and_saved(browser: Browser) -> None:
    notebook = project(browser, "calls", SETUP, BATCH, BATCH)
    page = notebook.page
    notebook.run(1)
    notebook.run(2, wait=False)
    notebook.cards(2).filter(has_text="waiting for approval").first.wait_for()
    calls = tab(page, "calls")
    rows = calls.locator(".oc-time-row")
    expect(rows).to_have_count(7)  # what waits is there too, inside its batch
    assert [text.split()[0] for text in rows.locator(":scope > :first-child").all_inner_texts()] == [
        *("glob", "glob", "glob", "read", "batch"),
        *("bash", "question"),
    ]
    expect(rows.nth(4)).to_contain_text("running")
    expect(rows.filter(has_text="waiting")).to_have_count(2)
    expect(calls.locator(".oc-time-wait")).to_have_count(2)
    # the question first, then the ask; both from the panel while the kernel is blocked
    asks = tab(page, "asks").locator("..")
    items = asks.locator(".oc-asks-item")
    expect(items).to_have_count(2)
    question, ask = items.filter(has_text="Which database?"), items.filter(has_text="echo inside")
    question.get_by_role("radio", name="PostgreSQL").check()
    button(question, "Answer").click()
    expect(items).to_have_count(1)
    button(ask, ALLOW_ONCE).click()
    notebook.wait_idle(2)
    notebook.wait_text(2, "2/2 successful")
    # the other order
    notebook.run(3, wait=False)
    expect(items).to_have_count(2)
    button(ask, ALLOW_ONCE).click()
    expect(items).to_have_count(1)
    question.get_by_role("radio", name="SQLite").check()
    button(question, "Answer").click()
    notebook.wait_text(3, "2/2 successful")

    calls = tab(page, "calls")
    said = calls.locator(".oc-calls-said")
    expect(said).to_contain_text("10 calls, waited")
    expect(calls.locator(".oc-time-row[data-tone=ok]")).to_have_count(10)
    expect(calls.locator(".oc-time-wait")).to_have_count(4)
    calls.locator(".oc-totals summary").click()
    cells = calls.locator(".oc-totals tbody tr", has_text="glob").locator("td")
    assert cells.nth(0).inner_text() == "3"
    # filters
    calls.get_by_label("Tool", exact=True).select_option("glob")
    expect(said).to_have_text("3 calls of 10")
    calls.get_by_label("Tool", exact=True).select_option("")
    calls.get_by_label("Filter by text").fill("INSIDE")
    expect(rows).to_have_count(2)
    # what is chosen is what is saved
    lines = list(csv.DictReader(saved(page, "Save CSV").splitlines()))
    assert [(one["tool"], one["state"], one["notebook"]) for one in lines] == [
        ("bash", "completed", notebook.path.name)
    ] * 2
    assert all(int(one["waited_ms"]) > 0 for one in lines)
    calls.get_by_label("Filter by text").fill("")
    expect(rows).to_have_count(10)
    told = [json.loads(line) for line in saved(page, "Save JSONL").splitlines()]
    batch = next(one for one in told if one["tool"] == "batch")
    assert [one["tool"] for one in told if one["parent"] == batch["id"]] == ["bash", "question"]
    # a call inside a batch leads to the batch's card, in its cell
    rows.nth(8).click()
    page.wait_for_function("() => document.activeElement.classList.contains('oc-card')")
    inside = "() => [...document.querySelectorAll('.jp-Cell')].findIndex(c => c.contains(document.activeElement))"
    assert page.evaluate(inside) == 3
    page.evaluate("() => { window.jupyterapp.shell.collapseRight(); }")
    assert notebook.errors == []
    notebook.close()
