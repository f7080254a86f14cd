"""Fixtures of the browser tests: for all of them a server of each application, one Chromium and its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser as PlaywrightBrowser
from playwright.sync_api import expect

from tests.support import browser as support

expect.set_options(timeout=15_000)  # a machine with other work draws a first card in five seconds

Servers = Callable[[support.Application], support.Server]
Browsers = Callable[[support.Application], support.Browser]
HERE = Path(__file__).parent


class Running:
    """The Chromium of this process, and a profile of it for each application; all started at their first use."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._chromium: PlaywrightBrowser | None = None
        self._profiles: dict[str, support.Browser] = {}

    def chromium(self) -> PlaywrightBrowser:
        """The Chromium."""
        if self._chromium is None:
            self._chromium = self._stack.enter_context(support.launch())
        return self._chromium

    def browser(self, server: support.Server) -> support.Browser:
        """The profile for the application of `server`: its page stays loaded, which takes longer than most tests."""
        if server.application not in self._profiles:
            opened = support.profile(self.chromium(), server)
            self._profiles[server.application] = self._stack.enter_context(opened)
        return self._profiles[server.application]

    def close(self) -> None:
        """End it; the next use starts another one."""
        self._profiles.clear()
        self._chromium = None
        self._stack.close()


RUNNING = Running()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End Chromium with the last test that uses it: Playwright's event loop must not run beside other tests."""
    if nextitem is None or nextitem.path.parent != HERE:
        RUNNING.close()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Gives the server of an application, started at its first use."""
    running: dict[str, support.Server] = {}
    with ExitStack() as stack:

        def get(application: support.Application) -> support.Server:
            if application not in running:
                support.chromium()  # before the server: without it there is nothing to do
                folder = tmp_path_factory.mktemp(application)
                running[application] = stack.enter_context(support.serve(application, folder))
            return running[application]

        yield get


@pytest.fixture(scope="module")
def browsers(servers: Servers) -> Iterator[Browsers]:
    """Gives the browser of an application; what a file leaves open in one is closed."""
    used: list[support.Browser] = []

    def get(application: support.Application) -> support.Browser:
        used.append(RUNNING.browser(servers(application)))
        return used[-1]

    yield get
    for opened in used:
        opened.close_pages()


@pytest.fixture(scope="module")
def launched() -> PlaywrightBrowser:
    """The Chromium, for a file with a server of its own."""
    return RUNNING.chromium()


@pytest.fixture(scope="module", params=["lab", "notebook"])
def application(request: pytest.FixtureRequest) -> support.Application:
    """JupyterLab and Notebook 7."""
    return request.param


@pytest.fixture(scope="module")
def browser(application: support.Application, browsers: Browsers) -> support.Browser:
    """The browser of an application."""
    return browsers(application)
