"""Fixtures of the browser tests. Module scope: Playwright's loop must not outlive a module of sync tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import browser as support


@pytest.fixture(scope="module", params=["lab", "notebook"])
def application(request: pytest.FixtureRequest) -> support.Application:
    """JupyterLab and Notebook 7."""
    return request.param


@pytest.fixture(scope="module")
def browser(application: support.Application, tmp_path_factory: pytest.TempPathFactory) -> Iterator[support.Browser]:
    """A browser on a fresh server, for a whole module."""
    support.chromium()  # before the server: without it there is nothing to do
    with support.serve(application, tmp_path_factory.mktemp(application)) as server, support.browse(server) as opened:
        yield opened
