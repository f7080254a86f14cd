"""Fixtures of the browser tests: a server for all of them, a browser for each module.

Playwright's loop must not outlive a module of sync tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from tests.support import browser as support

expect.set_options(timeout=15_000)  # a machine with other work draws a first card in five seconds

Servers = Callable[[support.Application], support.Server]


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


@pytest.fixture(scope="module", params=["lab", "notebook"])
def application(request: pytest.FixtureRequest) -> support.Application:
    """JupyterLab and Notebook 7."""
    return request.param


@pytest.fixture(scope="module")
def browser(application: support.Application, servers: Servers) -> Iterator[support.Browser]:
    """A browser with a fresh profile, for a whole module."""
    with support.browse(servers(application)) as opened:
        yield opened
