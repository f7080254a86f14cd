"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Everything runs on asyncio: the notebook's loop is tornado over it."""
    return "asyncio"


MACHINES = ("browser", "install", "kernel", "terminal", "notebooks")
"""Folders whose tests drive other programs (browsers, kernels, installers) and hang on how busy the machine is."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Such a test gets a second try; the report says so (R), and a fault that is there fails twice."""
    here = Path(__file__).parent
    for item in items:
        if any(item.path.is_relative_to(here / folder) for folder in MACHINES):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=2))
