"""The whole of a cut output opens at the cut line, read through the kernel, also a busy one; what happens without one.

And the other things that only the JupyterLab extension does: an answer by the control channel alone, and words in
place of a live card whose kernel was killed.
"""

from __future__ import annotations

import os
import re
import signal

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.acts import ALLOW_ONCE, asking, button, lab_only, processes, project
from tests.support.browser import Browser, Notebook

pytestmark = pytest.mark.browser

WIDGET = "application/vnd.jupyter.widget-view+json"
PART = "application/vnd.opencode.toolpart.v1+json"
LOST = "the kernel ended before the call did"
VIEWER = ".oc-pages:visible:not([style*='content-visibility'])"
"""Of a viewer that another tab hides, Lumino keeps the layout."""
BUSY = "import time\nprint('busy')\ntime.sleep(120)"


def viewer(notebook: Notebook, index: int) -> Locator:
    """Click the link of a cell's card; the viewer."""
    button(notebook.cards(index).first, "Open the whole output").click()
    shown = notebook.page.locator(VIEWER)
    shown.wait_for()
    return shown


def leave(notebook: Notebook) -> None:
    """Back to the notebook, the viewer closed."""
    if notebook.browser.server.application == "notebook":
        button(notebook.page.locator(".oc-dialog"), "Close").click()
    else:
        notebook.evaluate(
            "() => { for (const w of [...window.jupyterapp.shell.widgets('main')])"
            " if (w.id.startsWith('opencode-spill')) w.close(); }"
        )
    expect(notebook.page.locator(".oc-pages")).to_have_count(0)


def test_opens_at_the_cut_and_pages_while_the_kernel_is_busy(browser: Browser) -> None:
    source = "%tool bash for i in $(seq 1 30000); do printf '\\033[31mrow\\033[0m <b>%d</b>\\n' $i; done"
    notebook = project(browser, "cut", source, BUSY, "%unload_ext opencode_jupyter", config={})
    notebook.run(1)
    notebook.wait_text(1, "30,000 lines")
    notebook.run(2, wait=False)
    notebook.wait_text(2, "busy")
    pages = viewer(notebook, 1)
    here = pages.locator(".oc-here")
    expect(here).to_contain_text(re.compile(r"row <b>\d+</b>"))
    number = int(re.search(r"<b>(\d+)</b>", here.inner_text())[1])  # type: ignore[index]
    expect(button(notebook.cards(1).first, f"at line {number}")).to_have_count(1)
    assert 500 < number < 2500
    expect(here).to_be_in_viewport()
    assert here.locator(".oc-text span").first.evaluate("node => getComputedStyle(node).color") != here.evaluate(
        "node => getComputedStyle(node).color"
    ), "the red of the output is drawn"
    button(pages, "End").click()
    expect(pages.locator(".oc-row").last).to_have_text("row <b>30000</b>")
    expect(pages.locator(".oc-n").last).to_have_attribute("data-n", "30000")
    expect(pages.locator(".oc-place")).to_contain_text("of 30,000 lines")
    expect(pages.locator(".oc-row").last).to_be_in_viewport()
    pages.locator(".oc-line").fill("12345")
    pages.locator(".oc-line").press("Enter")
    expect(pages.locator(".oc-here")).to_have_text("row <b>12345</b>")
    expect(pages.locator(".oc-lines")).to_be_focused()
    pages.locator(".oc-lines").hover()
    for _ in range(12):
        notebook.page.mouse.wheel(0, 1500)
        notebook.page.wait_for_timeout(60)
    numbers = [int(n) for n in pages.evaluate("node => [...node.querySelectorAll('.oc-n')].map(n => n.dataset.n)")]
    assert numbers[-1] > 12900 and numbers == list(range(numbers[0], numbers[-1] + 1))
    rail = pages.locator(".oc-rail").bounding_box()
    assert rail is not None
    notebook.page.mouse.move(rail["x"] + 5, rail["y"] + 3)
    notebook.page.mouse.down()
    notebook.page.mouse.move(rail["x"] + 5, rail["y"] + rail["height"] / 2, steps=6)
    notebook.page.mouse.up()
    expect(pages.locator(".oc-place")).to_have_text(re.compile(r"^line 1[45],\d{3} of 30,000 lines"))
    search_by_keys(notebook, pages)
    take_along(notebook, pages)
    leave(notebook)
    notebook.interrupt()
    notebook.wait_idle(2)
    notebook.run(3)
    pages = viewer(notebook, 1)
    expect(pages.locator(".oc-trouble")).to_contain_text("not loaded in this kernel")
    expect(pages.locator(".oc-trouble")).to_contain_text(re.compile(r"%tool read /.*tool_\w+ offset="))
    assert notebook.errors == []
    notebook.close()


def search_by_keys(notebook: Notebook, pages: Locator) -> None:
    """Find lines while the kernel is busy, without the mouse; colours stay."""
    keyboard = notebook.page.keyboard
    pages.locator(".oc-lines").focus()
    keyboard.press("Control+f")
    expect(pages.get_by_role("textbox", name="Find")).to_be_focused()
    keyboard.type("row <b>2999")  # it is looked for as it is typed
    expect(pages.locator(".oc-here")).to_have_text("row <b>29990</b>")
    expect(pages.locator(".oc-here .oc-hit")).to_have_text(["row", " <b>2999"])
    expect(pages.locator(".oc-found")).to_have_text("2 of 11 lines")
    keyboard.press("Shift+Enter")
    expect(pages.locator(".oc-here")).to_have_text("row <b>2999</b>")
    keyboard.press("Escape")
    expect(pages.locator(".oc-hit")).to_have_count(0)
    keyboard.press("g")
    expect(pages.locator(".oc-line")).to_be_focused()
    keyboard.press("Escape")
    expect(pages.locator(".oc-lines")).to_be_focused()
    keyboard.press("Home")
    expect(pages.locator(".oc-row").first).to_have_text("row <b>1</b>")


def take_along(notebook: Notebook, pages: Locator) -> None:
    """Copy what is chosen, copy all, download all: through the kernel, which is busy; with the escapes."""
    whole = "".join(f"\033[31mrow\033[0m <b>{n}</b>\n" for n in range(1, 30_001))
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    pages.locator(".oc-row").nth(1).click(click_count=3)
    button(pages, "Copy").click()
    expect(pages.locator(".oc-said-now")).to_have_text("Selection copied.")
    assert notebook.evaluate("() => navigator.clipboard.readText()").strip() == "row <b>2</b>"
    notebook.evaluate("() => getSelection().removeAllRanges()")
    button(pages, "Copy").click()
    expect(pages.locator(".oc-said-now")).to_have_text("Whole output copied.")
    assert notebook.evaluate("() => navigator.clipboard.readText()") == whole
    with notebook.page.expect_download() as download:
        button(pages, "Download").click()
    assert re.fullmatch(r"tool_\w+\.txt", download.value.suggested_filename)
    assert download.value.path().read_text() == whole
    expect(button(pages, "Download")).to_have_text("Download")


@lab_only
def test_a_running_command_is_followed(browser: Browser) -> None:
    source = "%tool bash seq 1 20000; for i in $(seq 1 200); do echo late $i; sleep 0.1; done"
    notebook = project(browser, "follow", source, "%tool bash seq 7000001 7005000", config={})
    notebook.run(2)
    notebook.run(1, wait=False)
    button(notebook.cards(1).first, "Open the whole output so far").click()
    pages = notebook.page.locator(VIEWER)
    expect(pages.locator(".oc-writing")).to_have_text("still being written, following")
    expect(pages.locator(".oc-row").last).to_have_text(re.compile(r"late \d+"))
    before = pages.locator(".oc-row").last.inner_text()
    expect(pages.locator(".oc-row").last).not_to_have_text(before)
    expect(pages.locator(".oc-row").last).to_be_in_viewport()
    pages.locator(".oc-lines").hover()
    notebook.page.mouse.wheel(0, -400)
    expect(pages.locator(".oc-writing")).to_have_text("still being written")
    expect(button(pages, "Follow")).to_have_attribute("aria-pressed", "false")
    button(pages, "Follow").click()
    expect(pages.locator(".oc-writing")).to_have_text("still being written, following")
    beside_another(notebook)
    leave(notebook)
    button(notebook.cards(1).first, "Stop").click()
    notebook.wait_cards("stopped")
    button(notebook.cards(1).first, "Open the whole output").click()
    expect(notebook.page.locator(f"{VIEWER} .oc-row").first).to_have_text("1")
    expect(notebook.page.locator(f"{VIEWER} .oc-writing")).to_have_text("")
    assert notebook.errors == []
    leave(notebook)
    notebook.close()


def beside_another(notebook: Notebook) -> None:
    """A second viewer, beside the one that follows: each keeps its place, its search and what it follows."""
    button(notebook.cards(2).first, "Open the whole output").click()
    tabs = notebook.page.locator(".lm-TabBar-tab").filter(has_text=re.compile(r"^bash: "))
    expect(tabs).to_have_count(2)
    pages = notebook.page.locator(VIEWER)
    expect(pages.locator(".oc-here")).to_have_text(re.compile(r"^700\d{4}$"))
    button(pages, "Find").click()
    notebook.page.keyboard.type("7004567")
    notebook.page.keyboard.press("Enter")
    expect(pages.locator(".oc-here .oc-hit")).to_have_text("7004567")
    tabs.first.click()
    expect(pages.locator(".oc-row").last).to_have_text(re.compile(r"^late \d+"))
    expect(pages.locator(".oc-row").last).to_be_in_viewport()
    before = pages.locator(".oc-row").last.inner_text()
    expect(pages.locator(".oc-row").last).not_to_have_text(before)
    expect(pages.locator(".oc-writing")).to_have_text("still being written, following")
    expect(pages.locator(".oc-find")).to_be_hidden()
    tabs.last.click()
    expect(pages.locator(".oc-here")).to_have_text("7004567")
    expect(pages.locator(".oc-here")).to_be_in_viewport()
    expect(pages.locator(".oc-found")).to_have_text("1 of 1 line")


@lab_only
def test_files_open_at_their_line(browser: Browser) -> None:
    notebook = project(browser, "files", "%tool grep needle", "%tool read long.txt offset=40 limit=3", config={})
    lines = [f"line {n}" for n in range(1, 301)]
    lines[249] = "the needle"
    notebook.path.with_name("long.txt").write_text("\n".join(lines))
    notebook.run(1)
    notebook.run(2)
    tab = "[...window.jupyterapp.shell.widgets('main')].find(w => w.context?.path?.endsWith('long.txt'))"
    for cell, line, text in ((1, 250, "the needle"), (2, 40, "line 40")):
        button(notebook.cards(cell).first, f"at line {line}").first.click()
        notebook.page.wait_for_function(
            f"line => {tab}?.content.editor.getCursorPosition().line === line", arg=line - 1
        )
        expect(notebook.page.locator(".jp-FileEditor").get_by_text(text, exact=True)).to_be_in_viewport()
        notebook.evaluate(
            "() => { const { shell } = window.jupyterapp;"
            " shell.activateById([...shell.widgets('main')].find(w => w.context?.path?.endsWith('.ipynb')).id); }"
        )
    notebook.evaluate(f"() => {tab}.dispose()")
    assert notebook.errors == []
    notebook.close()


@lab_only
def test_a_big_file_opens_at_a_far_line(browser: Browser) -> None:
    notebook = project(browser, "big", "%tool bash seq 1 26000000", config={})  # 223 MB
    notebook.run(1, timeout=90)
    pages = viewer(notebook, 1)
    expect(pages.locator(".oc-here")).to_be_visible()
    for line in ("1000000", "25000000"):
        pages.locator(".oc-line").fill(line)
        pages.locator(".oc-line").press("Enter")
        expect(pages.locator(".oc-here")).to_have_text(line)
    leave(notebook)
    notebook.evaluate("() => window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
    pages = viewer(notebook, 1)
    expect(pages.locator(".oc-trouble")).to_contain_text("No kernel is running here")
    notebook.close()


@lab_only
def test_an_answer_by_the_control_channel_alone(browser: Browser) -> None:
    source = "def f():\n    r = %tool bash echo by-control\n    return r\nprint('got', f().output)"
    notebook = project(browser, "control", source)
    # From now on nothing that a widget sends reaches the kernel.
    notebook.evaluate(
        """() => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            for (let at = kernel; at; at = Object.getPrototypeOf(at)) {
                const send = Object.getOwnPropertyDescriptor(at, 'sendShellMessage')?.value;
                if (send) {
                    at.sendShellMessage = function (message, ...rest) {
                        const type = message.header.msg_type;
                        window.blocked = (window.blocked ?? 0) + (type === 'comm_msg');
                        const sent = {msg: message, done: Promise.resolve(), dispose() {}};
                        return type === 'comm_msg' ? sent : send.call(this, message, ...rest);
                    };
                }
            }
        }"""
    )
    notebook.run(1, wait=False)
    button(asking(notebook, 1), ALLOW_ONCE).click()
    notebook.wait_idle(1)
    notebook.wait_text(1, "got by-control")
    assert notebook.evaluate("() => window.blocked") >= 2, "hello and reply were not kept from the widget's way"
    part = next(o["data"][PART] for o in notebook.save().cells[1].outputs if PART in o.get("data", {}))
    assert [d["by"] for d in part["ui"]["decisions"] if d.get("reply")] == ["control"]
    notebook.close()


@lab_only
def test_a_killed_kernel_leaves_words(browser: Browser) -> None:
    notebook = project(browser, "killed", "import os\nprint('pid', os.getpid())", "%tool bash sleep 6543", config={})
    notebook.run(1)
    pid = int(re.search(r"pid (\d+)", notebook.text(1))[1])  # type: ignore[index]
    notebook.run(2, wait=False)
    notebook.wait_cards("running")
    before = notebook.save()
    assert set(next(o["data"] for o in before.cells[2].outputs)) == {"text/plain", "text/html", WIDGET, PART}
    copy = notebook.path.with_name("copy.ipynb")
    copy.write_text(notebook.path.read_text())
    os.kill(pid, signal.SIGKILL)
    notebook.wait_text(2, LOST, timeout=20)
    expect(notebook.cards(2)).to_have_count(1)
    expect(notebook.cards(2)).to_contain_text("ended")
    notebook.page.wait_for_timeout(1000)
    if notebook.page.locator(".jp-Dialog").count():  # “Kernel Restarting”
        notebook.page.locator(".jp-Dialog button.jp-mod-accept").first.click()
    saved = notebook.save()
    assert WIDGET not in str(saved)
    notebook.close()
    # What was saved before the kernel died, opened with a new kernel.
    again = browser.open(f"{copy.parent.name}/copy.ipynb")
    again.wait_text(2, LOST)
    assert "model not found" not in again.text(2).lower()
    assert again.errors == []
    again.close()
    assert processes("sleep 6543") == []
