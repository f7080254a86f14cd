"""What is saved: settled cards, readable with no kernel, trusted or not; fifty in one cell; a cut output."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.acts import answer, lab_only, project
from tests.support.browser import Browser

pytestmark = pytest.mark.browser

WIDGET = "application/vnd.jupyter.widget-view+json"
PART = "application/vnd.opencode.toolpart.v1+json"


def bundles(saved: nbformat.NotebookNode) -> list[dict[str, object]]:
    return [o["data"] for c in saved.cells for o in c.get("outputs", []) if "data" in o]


@lab_only
def test_fifty_calls_leave_fifty_settled_cards(browser: Browser) -> None:
    # 50 outputs are what JupyterLab shows of one cell before it asks whether to show more
    notebook = project(browser, "fifty", "for i in range(50):\n    %tool read a.txt", config={})
    notebook.run(1, timeout=60)
    expect(notebook.cards(1)).to_have_count(50)
    saved = notebook.save()
    assert len(bundles(saved)) == 50
    assert not any(WIDGET in b for b in bundles(saved))
    notebook.close()


def test_reopened_without_a_kernel_trusted_and_not(browser: Browser) -> None:
    notebook = project(
        browser,
        "saved",
        "r = %tool bash echo from-the-command",
        "%tool edit a.txt oldString=alpha newString=ALPHA",
        "%tool bash seq 5000",
        "%tool read missing.txt",
        config={"permission": {"bash": {"*": "allow", "echo *": "ask"}}},
    )
    notebook.run(1, wait=False)
    answer(notebook, 1)
    for index in (2, 3, 4):
        notebook.run(index)
    saved = notebook.save()
    notebook.close()
    data = bundles(saved)
    assert len(data) == 4
    for bundle in data:
        assert set(bundle) == {"text/plain", "text/html", PART}
        assert "<script" not in str(bundle["text/html"]).lower()
    path = notebook.path
    words = [
        (1, "from-the-command"), (1, "allowed once by you"), (2, "ALPHA"), (3, "Open the whole output"),
        (4, "File not found"),
    ]  # fmt: skip
    # With the kernel gone: once as the trusted file, once as a stranger's copy.
    copy = path.with_name("copy.ipynb")
    text = path.read_text()
    copy.write_text(text.replace("from-the-command", "from-the-command "))
    for file in (path, copy) if browser.server.application == "lab" else (copy,):
        opened = browser.open(f"{file.parent.name}/{file.name}", kernel=False, kept=True)
        for index, word in words:
            opened.wait_text(index, word)
        shown = opened.page.locator(".jp-Notebook").inner_text().lower()
        assert "model not found" not in shown and "error displaying" not in shown
        assert opened.errors == []
        opened.wait_kernel()  # JupyterLab itself stumbles over a notebook that is closed while its session starts
        opened.close()
    html = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "--stdout", str(path)], capture_output=True, check=True
    ).stdout.decode()
    for word in ("from-the-command", "allowed once by you", "ALPHA", "File not found"):
        assert word in html
    assert json.loads(text)["metadata"].get("widgets") is None


AGENT = """
speed: 0
turns:
  - text: I read it.
    calls:
      - read: {filePath: a.txt}
      - read: {filePath: a.txt, limit: 1}
      - glob: {pattern: "*.txt"}
  - I have read it.
"""
BATCH = """
calls = [{"tool": "read", "parameters": {"filePath": "a.txt", "limit": n}} for n in (2, 1, 3)]
%tool batch tool_calls:={calls}
"""


@lab_only
def test_calls_inside_cards_are_on_paper_and_heads_are_aligned(browser: Browser) -> None:
    notebook = project(browser, "paper", "%%agent -m scripted:talk.yaml\nRead it", BATCH, config={})
    notebook.path.with_name("talk.yaml").write_text(AGENT)
    for index in (1, 2):
        notebook.run(index)
        expect(notebook.cards(index).first.locator(".oc-state").first).to_have_text(re.compile("done|completed"))
    page = notebook.page
    agent, batch = notebook.output(1), notebook.output(2)
    assert agent.locator(".oc-card .oc-card").count() == 0, "folded calls are drawn when they are opened"
    expect(batch.locator(".oc-nest .oc-card").first).not_to_be_visible()
    page.emulate_media(media="print")
    page.evaluate("() => { dispatchEvent(new Event('beforeprint')); }")
    expect(agent.get_by_text("1: alpha").first).to_be_visible()
    expect(batch.locator(".oc-nest .oc-card").first).to_be_visible()
    page.emulate_media(media="screen")
    expect(agent.get_by_text("1: alpha").first).not_to_be_visible()
    notebook.save()
    notebook.close()
    run = ["-m", "nbconvert", "--to", "html", str(notebook.path)]
    subprocess.run([sys.executable, *run], capture_output=True, check=True)
    page = browser.context.new_page()
    page.goto(notebook.path.with_suffix(".html").as_uri())
    outputs = page.locator(".oc-s")
    texts = outputs.get_by_text("1: alpha")
    assert texts.count() >= 4
    for text in texts.all():
        expect(text).not_to_be_visible()
    page.emulate_media(media="print")
    for text in texts.all():
        expect(text).to_be_visible()
    # the state and the time of a run stand at the right, where those of a call do
    right = "node => node.parentElement.getBoundingClientRect().right - node.getBoundingClientRect().right"
    head = page.locator(".oc-s > div:first-child > small:last-child")
    distances = {round(head.nth(n).evaluate(right)) for n in range(head.count())}
    assert distances == {10}
    page.close()
