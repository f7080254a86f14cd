"""JupyterLab or Notebook 7 on a free loopback port, and a Chromium that uses it as a person does.

Everything the servers and the browser keep is in a temporary folder; default settings, but: no token, no
xsrf check, no look at the news, and the application object reachable from the page (for cells' state).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import nbformat
import pytest
from playwright.sync_api import Browser as PlaywrightBrowser
from playwright.sync_api import BrowserContext, Locator, Page, Route, ViewportSize, expect, sync_playwright

CHECKOUT = Path(__file__).parents[2]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
Application = Literal["lab", "notebook"]
START_TIMEOUT = 60.0
POLL = 50.0
"""Milliseconds between two looks at the page; by default Playwright looks, and has it drawn, 60 times a second."""
VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
SPARED: dict[str, Any] = {
    "**/api/build*": {"status": "stable", "message": ""},
    "**/lsp/status*": {"version": 2, "sessions": {}, "specs": {}},
    "**/api/nbconvert*": {},
}
"""What each page makes the server work on for a second, and no test looks at: the state of JupyterLab's build, which
language servers are installed, what a notebook can be exported to."""
KNOWN_ERRORS = (
    # Notebook 7.6 meets this one itself while it loads its settings, with no extension installed too
    "Cannot read properties of undefined (reading 'schema')",
    # anywidget, when a page takes two seconds to set a card up; the card is drawn and heard all the same
    "[anywidget] Failed to initialize model.",
)


@cache
def chromium() -> str:
    """The Chromium on the PATH, else Playwright's own, fetched if it can be.

    Without any the test fails where ``CI`` is set, and is skipped elsewhere.
    """
    for name in CHROMIUM_NAMES:
        program = shutil.which(name)
        if program:
            return program
    own = _playwrights_own()
    if own is not None:
        return own
    message = "no Chromium on the PATH (Debian and Ubuntu: apt-get install chromium), and Playwright could fetch none"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip("BROWSER TESTS NOT RUN: " + message)


def _playwrights_own() -> str | None:
    """Playwright's Chromium; it is downloaded once if the machine may."""
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    if not Path(path).exists():
        install = [sys.executable, "-m", "playwright", "install", "chromium"]
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(install, check=False, capture_output=True, timeout=300)
    return path if Path(path).exists() else None


@dataclass
class Server:
    """A running Jupyter server."""

    application: Application
    url: str
    root: Path
    """The folder whose files it shows."""
    data: Path
    """``XDG_DATA_HOME`` of its kernels."""
    log: Path


@contextmanager
def serve(
    application: Application,
    folder: Path,
    env: dict[str, str] | None = None,
    python: Path | None = None,
    *,
    installed: bool = False,
) -> Iterator[Server]:
    """Run the application with all its folders below `folder`; ended with every kernel at the end.

    Args:
        application: which one.
        folder: where it keeps everything.
        env: more environment variables.
        python: another environment's Python, which has the application.
        installed: our package is installed in that environment; the checkout is then left out.

    Raises:
        RuntimeError: it did not come up; with the end of its log.
    """
    port = _free_port()
    root = folder / "root"
    root.mkdir(parents=True)
    # Python's own environment must not go before the folders of this server: an installed front end is another one
    environment = {**os.environ, **_folders(folder), "JUPYTER_PREFER_ENV_PATH": "0", **(env or {})}
    if installed:
        environment.pop("PYTHONPATH", None)
    else:
        environment["PYTHONPATH"] = os.pathsep.join([str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    if python is not None:
        environment["PATH"] = os.pathsep.join([str(python.parent), environment["PATH"]])
    _configure(folder, root, port, installed=installed)
    module = {"lab": "jupyterlab", "notebook": "notebook"}[application]
    log = folder / "server.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [str(python or sys.executable), "-m", module, "--no-browser", "--allow-root"],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _await_server(process, url, log)
        yield Server(application, url, root, folder / "data", log)
    finally:
        _end(process)


def _folders(folder: Path) -> dict[str, str]:
    names = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "jupyter",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
        "XDG_DATA_HOME": "data",
        "XDG_CONFIG_HOME": "xdg-config",
        "XDG_CACHE_HOME": "cache",
    }
    return {variable: str(folder / name) for variable, name in names.items()}


def _configure(folder: Path, root: Path, port: int, *, installed: bool) -> None:
    expose = {"expose_app_in_browser": True}
    config = {
        "ServerApp": {
            "ip": "127.0.0.1",
            "port": port,
            "port_retries": 0,
            "root_dir": str(root),
            "disable_check_xsrf": True,
            "open_browser": False,
        },
        "IdentityProvider": {"token": ""},
        "LabApp": {
            **expose,
            "news_url": None,
            "check_for_updates_class": "jupyterlab.handlers.announcements.NeverCheckForUpdate",
        },
        "JupyterNotebookApp": expose,
    }
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "jupyter_server_config.json").write_text(json.dumps(config))
    notices = {"fetchNews": "false", "checkForUpdates": False}
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(notices))
    # The front end of this checkout, whatever may be installed.
    built = CHECKOUT / "opencode_jupyter" / "labextension"
    extensions = folder / "jupyter" / "labextensions"
    extensions.mkdir(parents=True)
    if built.is_dir() and not installed:
        (extensions / "opencode-jupyter").symlink_to(built, target_is_directory=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_server(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url + "/api/status", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the server did not come up:\n{log.read_text(errors='replace')[-3000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)  # shuts its kernels down too
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def launch() -> Iterator[PlaywrightBrowser]:
    """A running Chromium."""
    executable = chromium()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            yield launched
        finally:
            launched.close()


@contextmanager
def profile(launched: PlaywrightBrowser, server: Server) -> Iterator[Browser]:
    """A fresh profile of a Chromium for `server`."""
    context = launched.new_context(viewport=VIEWPORT, reduced_motion="reduce")
    context.set_default_timeout(20_000)
    for address, answer in SPARED.items():
        context.route(address, partial(_tell, answer))
    try:
        yield Browser(server, context)
    finally:
        context.close()


@contextmanager
def browse(server: Server) -> Iterator[Browser]:
    """A Chromium of its own for `server`."""
    with launch() as launched, profile(launched, server) as opened:
        yield opened


def _tell(answer: Any, route: Route) -> None:
    route.fulfill(json=answer)


class Browser:
    """A browser on one server."""

    def __init__(self, server: Server, context: BrowserContext) -> None:
        self.server = server
        self.context = context
        self._page: Page | None = None
        """JupyterLab with nothing open, left by the last notebook: loading the page takes longer than most tests."""

    def notebook(self, *cells: str, name: str = "test.ipynb") -> Notebook:
        """Write a new notebook with these code cells, open it in a tab of its own and wait for its kernel."""
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells or ("",)])
        made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = self.server.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(made, path)
        return self.open(name) if self._page is None else self._open_in_page(name)

    def _open_in_page(self, name: str, *, kernel: bool = True) -> Notebook:
        page, self._page = self._page, None
        assert page is not None
        opened = Notebook(self, page, name)
        page.evaluate("path => { window.jupyterapp.commands.execute('docmanager:open', {path}); }", name)
        # other notebooks may be open behind it
        page.locator(".jp-Notebook .jp-Cell").filter(visible=True).first.wait_for()
        page.wait_for_function(
            "path => { const { context } = window.jupyterapp.shell.currentWidget ?? {};"
            " return context?.isReady && context.path === path; }",
            arg=name,
            polling=POLL,
        )
        if kernel:
            opened.wait_kernel("idle")
        return opened

    def keep(self, page: Page) -> bool:
        """Keep a page of JupyterLab for the next notebook; False if it can't be used again."""
        if self._page is not None or self.server.application != "lab":
            return False
        page.evaluate(_CLOSE_ALL)
        page.wait_for_function("() => !document.querySelector('.jp-Notebook')", polling=POLL)
        page.set_viewport_size(VIEWPORT)
        self._page = page
        return True

    def close_pages(self) -> None:
        """Close every page but the one that is kept: what a failed test left open must not disturb the next file."""
        for page in self.context.pages:
            if page is not self._page:
                page.close(run_before_unload=False)

    def open(self, name: str, *, kernel: bool = True, kept: bool = False) -> Notebook:
        """Load a page with a notebook that is there.

        Args:
            name: its path.
            kernel: wait until its kernel is idle.
            kept: the page that the last notebook left will do, if it left one.
        """
        if kept and self._page is not None:
            return self._open_in_page(name, kernel=kernel)
        page = self.context.new_page()
        opened = Notebook(self, page, name)
        # A workspace of its own keeps JupyterLab from bringing back other tabs.
        area = f"/lab/workspaces/w{time.monotonic_ns()}/tree/" if self.server.application == "lab" else "/notebooks/"
        page.goto(self.server.url + area + name)
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=START_TIMEOUT * 1000)
        page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.context?.isReady", polling=POLL)
        if kernel:
            opened.wait_kernel("idle")
        return opened


class Notebook:
    """An open notebook, in a page of its own. Cells count from 0."""

    def __init__(self, browser: Browser, page: Page, name: str) -> None:
        self.browser = browser
        self.page = page
        self.name = name
        self.errors: list[str] = []
        """Errors of the page's scripts, without `KNOWN_ERRORS`."""
        page.on(
            "pageerror", lambda error: self.errors.append(error.message) if error.message not in KNOWN_ERRORS else None
        )

    @property
    def path(self) -> Path:
        """The file."""
        return self.browser.server.root / self.name

    def cell(self, index: int) -> Locator:
        """The element of a cell."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        """The output area of a cell."""
        return self.cell(index).locator(".jp-Cell-outputArea")

    # Cells.

    def set_cell(self, index: int, source: str) -> None:
        """Replace a cell's text by typing over it."""
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)
        shown = self._app(f"content.model.cells.get({index}).sharedModel.getSource()")
        assert shown == source, f"the cell holds {shown!r}"

    def add_cell(self, source: str) -> int:
        """Append a code cell; returns its index."""
        count = int(self._app("content.model.cells.length"))
        cell = json.dumps({"cell_type": "code", "source": source})
        self._app(f"content.model.sharedModel.insertCell({count}, {cell}) && null")
        self.cell(count).wait_for()
        return count

    def run(self, index: int, *, wait: bool = True, timeout: float = 30.0) -> None:
        """Run a cell with Ctrl+Enter; `wait` until it is done."""
        before = self.count(index)
        self.cell(index).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        if wait:
            self.wait_idle(index, after=before, timeout=timeout)
        else:
            self.page.wait_for_function(_PROMPT_CHANGED, arg=[index, before], polling=POLL)

    def prompt(self, index: int) -> str:
        """What stands before a cell: ``[3]:``, ``[*]:``, ``[ ]:``."""
        return self.cell(index).locator(".jp-InputPrompt").first.inner_text()

    def count(self, index: int) -> int | None:
        """Execution count of a cell; None before its first run and while it runs."""
        match = re.search(r"\d+", self.prompt(index))
        return int(match.group()) if match else None

    def wait_idle(self, index: int, *, after: int | None = None, timeout: float = 30.0) -> None:
        """Wait until a cell has an execution count (other than `after`)."""
        self.page.wait_for_function(_PROMPT_COUNTED, arg=[index, after], timeout=timeout * 1000, polling=POLL)

    def text(self, index: int) -> str:
        """The text of a cell's outputs, as shown."""
        return self.output(index).inner_text()

    def wait_text(self, index: int, text: str | re.Pattern[str], timeout: float = 20.0) -> None:
        """Wait until a cell's outputs show `text`."""
        expect(self.output(index)).to_contain_text(text, timeout=timeout * 1000)

    # Cards.

    def cards(self, index: int | None = None) -> Locator:
        """The cards of a cell, or of the whole notebook: live ones and settled ones."""
        area = self.page.locator(".jp-Notebook") if index is None else self.output(index)
        return area.locator(".oc-card")

    def wait_cards(self, words: str | re.Pattern[str], count: int = 1, timeout: float = 20.0) -> Locator:
        """Wait until `count` cards contain `words` (``waiting for you``, ``running``, ``completed``, ...)."""
        cards = self.cards().filter(has_text=words)
        expect(cards).to_have_count(count, timeout=timeout * 1000)
        return cards

    # Kernel and file.

    def wait_kernel(self, status: str = "idle", timeout: float = START_TIMEOUT) -> None:
        """Wait for the kernel's status: idle or busy."""
        kernel = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel"
        self.page.wait_for_function(f"s => {kernel}?.status === s", arg=status, timeout=timeout * 1000, polling=POLL)

    def interrupt(self) -> None:
        """The notebook's stop button."""
        self.page.locator('[data-command="notebook:interrupt-kernel"], [data-jp-item-name="interrupt"]').first.click()

    def save(self) -> nbformat.NotebookNode:
        """Save with Ctrl+S; returns the saved notebook, which is valid."""
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        self.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty", polling=POLL)
        saved = nbformat.read(self.path, as_version=4)
        nbformat.validate(saved)
        return saved

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Run JavaScript in the page."""
        return self.page.evaluate(script, argument)

    def close(self, *, keep: bool = True) -> None:
        """Close the notebook without saving, and end its kernel; `keep`: the page may be used again."""
        self.page.evaluate(f"() => window.jupyterapp?.shell?.currentWidget?.{_SHUT_DOWN}")
        if self.errors or not keep or not self.browser.keep(self.page):
            self.leave()

    def leave(self) -> None:
        """Close the page without saving, as a person closes a tab: the kernel goes on."""
        self.page.close(run_before_unload=False)

    def _app(self, expression: str) -> Any:
        return self.page.evaluate(f"() => window.jupyterapp.shell.currentWidget.{expression}")


_SHUT_DOWN = "context?.sessionContext?.shutdown().catch(() => null)"
_CLOSE_ALL = """() => {
    const { shell } = window.jupyterapp;
    for (const widget of [...shell.widgets('main')]) { widget.dispose(); }
    shell.collapseRight();
}"""
_PROMPT = "document.querySelectorAll('.jp-Notebook .jp-Cell')[index].querySelector('.jp-InputPrompt').textContent"
_PROMPT_CHANGED = f"""([index, before]) => {{
    const prompt = {_PROMPT};
    return prompt.includes('*') || (/\\d/.test(prompt) && !prompt.includes(`[${{before}}]`));
}}"""
_PROMPT_COUNTED = f"""([index, after]) => {{
    const count = /\\d+/.exec({_PROMPT});
    return count !== null && Number(count[0]) !== after;
}}"""
