"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Everything runs on asyncio: the notebook's loop is tornado over it."""
    return "asyncio"


MACHINES = ("browser", "install", "notebooks", "kernel", "terminal")
"""Folders whose tests drive other programs (browsers, kernels, installers), the slowest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the tests over the workers; those that hang on the machine get two more tries, and the report says so."""
    here = Path(__file__).parent
    # the slowest first, so that no worker is left with a browser when the others are done
    items.sort(
        key=lambda item: next((i for i, name in enumerate(MACHINES) if item.path.is_relative_to(here / name)), 9)
    )
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
        if any(item.path.is_relative_to(here / folder) for folder in MACHINES):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))


def _group(item: pytest.Item) -> str:
    """Which tests stay together in one worker: those of a file that share a kernel; and no more than two browsers."""
    given = getattr(item, "callspec", None)
    which = [str(given.params[name]) for name in ("version", "application") if given and name in given.params]
    if item.path.is_relative_to(Path(__file__).parent / "browser"):
        return ":".join(["browser", *(which or ["lab"])])
    return ":".join([str(item.path), *which])
