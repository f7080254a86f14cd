"""Hostile outputs in the page: live and saved cards, the panel, exported HTML. No script runs, no request leaves."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Dialog, Page, Route, expect

from opencode_jupyter.jupyter.cards.call_mimebundle import settled_bundle
from tests.browser.acts import button, lab_only, project
from tests.support.browser import Browser

pytestmark = [pytest.mark.browser, lab_only]

HOSTILE = Path(__file__).parents[1] / "data" / "hostile.json"
SHOW = f"""
import json
from pathlib import Path
from opencode_jupyter import Attachment, ToolResult, tool
TEXTS = json.loads(Path({str(HOSTILE)!r}).read_text())
IMAGE = "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9InRvcC5fX2hpdD0xIi8+"
@tool(asks=True)
async def show(text: str, *, ctx):
    ctx.metadata(title=text, metadata={{text or "x": text}})
    await ctx.ask(permission="show", patterns=[text], always=[text], metadata={{"diff": "@@ -1 +1 @@\\n-" + text}})
    return ToolResult(title=text, output=text, metadata={{}}, attachments=[
        Attachment(mime="image/svg+xml", url=IMAGE, filename=text)])
"""
ASK = """
from opencode_jupyter import current
for text in TEXTS[{}:{}]:
    get_ipython().run_line_magic("tool", "--bg show " + json.dumps({{"text": text}}))
"""
AT_ONCE = 40
"""Calls of one cell: JupyterLab shows 50 outputs of a cell."""
ALLOW = """
permissions = current().workspace.permissions
for request in permissions.pending():
    permissions.reply(request.id, "once")
"""
ACTIVE = "script, iframe, object, embed, form:not([class^=oc-]), meta, base, link, math, video, audio, template, svg"
FAULTS = f"""() => [...document.querySelectorAll('.oc-card, .oc-s, #opencode-jupyter-panel')].flatMap(root =>
  [...root.querySelectorAll('{ACTIVE}')].concat([...root.querySelectorAll('*')].filter(node =>
    [...node.attributes].some(
    ({{name, value}}) => /^on|^srcdoc$|^action$|^ping$/.test(name) || (name === 'href' && !/^https?:/.test(value)) ||
      (name === 'src' && !value.startsWith('data:image/png')) || (name === 'style' && /url\\(/.test(value)))))
    .map(node => node.outerHTML.slice(0, 200)))"""


@contextmanager
def strangers(context: BrowserContext | Page, own: str) -> Iterator[list[str]]:
    """Addresses that are asked for and are not the server's, none of which is reached; and what dialogs say."""
    found: list[str] = []

    def look(address: str) -> bool:
        return not address.startswith((own, "data:", "blob:")) or "hostile.test" in address

    def refuse(route: Route) -> None:
        found.append(route.request.url)
        route.abort()

    def dismiss(dialog: Dialog) -> None:
        found.append(dialog.message)
        dialog.dismiss()

    context.route(look, refuse)
    context.on("dialog", dismiss)
    try:
        yield found
    finally:
        context.unroute(look, refuse)
        context.remove_listener("dialog", dismiss)


def show_panel(page: Page, section: str) -> None:
    page.evaluate("s => { window.jupyterapp.commands.execute('opencode-jupyter:show-panel', {section: s}); }", section)
    expect(page.locator(f"#opencode-jupyter-panel-{section}")).to_be_visible()


def harmless(page: Page) -> None:
    page.evaluate(
        "() => { for (const fold of document.querySelectorAll('details:not([open])')) { fold.open = true; } }"
    )
    page.evaluate("() => new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve)))")
    assert page.evaluate(FAULTS) == []
    assert page.evaluate("() => [window.__hit, ({}).polluted, document.title.includes('owned')]") == [None, None, False]


def test_hostile_texts_ask_end_and_are_saved_as_text(browser: Browser) -> None:
    count = len(json.loads(HOSTILE.read_text()))
    asks = [ASK.format(at, at + AT_ONCE) for at in range(0, count, AT_ONCE)]
    cells = range(2, 2 + len(asks))
    with strangers(browser.context, browser.server.url) as left:
        notebook = project(browser, "hostile", SHOW, *asks, ALLOW, config={"permission": {"show": "ask"}})
        page = notebook.page
        notebook.run(1)
        for index in cells:
            notebook.run(index)
            expect(notebook.cards(index).last).to_contain_text("waiting for approval")
            harmless(page)
        show_panel(page, "asks")
        expect(page.locator("#opencode-jupyter-panel .oc-asks-item")).to_have_count(count)
        harmless(page)
        notebook.run(cells.stop)
        for index in cells:
            expect(notebook.cards(index).filter(has_text="completed").last).to_be_visible()
        for name in ("tools", "rules", "calls", "servers"):
            show_panel(page, name)
            harmless(page)
        saved = notebook.save()
        assert sum(len(cell.outputs) for cell in saved.cells) == count
        notebook.close()
        opened = browser.open(notebook.name, kernel=False)
        for index in cells:
            opened.cell(index).scroll_into_view_if_needed()
            expect(button(opened.cards(index).first, "Copy output")).to_have_count(1)
            harmless(opened.page)
        assert opened.errors == []
        opened.close()
    assert left == []


def test_an_exported_page_is_harmless(browser: Browser, tmp_path: Path) -> None:
    texts = json.loads(HOSTILE.read_text())
    outputs = [nbformat.v4.new_output("display_data", data=settled_bundle(part(text))[0]) for text in texts]
    cell = nbformat.v4.new_code_cell("%tool show", outputs=outputs, execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "hostile.ipynb")
    export = [sys.executable, "-m", "nbconvert", "--to", "html", "--output", "page", tmp_path / "hostile.ipynb"]
    subprocess.run(export, check=True, capture_output=True)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        page = browser.context.new_page()
        with strangers(page, url) as left:  # of this page alone: another one may have a notebook's server
            page.goto(f"{url}/page.html")
            expect(page.locator(".oc-s")).to_have_count(len(texts))
            harmless(page)
        page.close()
        server.shutdown()
    # what nbconvert's own template asks for
    assert [address for address in left if "cdnjs.cloudflare.com" not in address] == []


def part(text: str) -> dict[str, Any]:
    """A call that ended, with the text wherever one may stand."""
    state = {"status": "completed", "input": {"text": text, text: text}, "output": text, "title": text}
    decision = {"permission": text, "patterns": [text], "action": "allow", "source": text}
    ui = {"label": text, "by": "model", "waited": 0, "decisions": [decision], "diff": "@@ -1 +1 @@\n-" + text}
    return {
        "v": 1, "id": "p", "callID": "c", "sessionID": "s", "messageID": "m", "tool": text,
        "state": state | {"metadata": {text: text}, "time": {"start": 1, "end": 2}}, "ui": ui,
    }  # fmt: skip
