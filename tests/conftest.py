"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.kernels import PINS


@pytest.fixture
def anyio_backend() -> str:
    """Everything runs on asyncio: the notebook's loop is tornado over it."""
    return "asyncio"


VERSIONS = frozenset(PINS)
MACHINES = ("browser", "install", "notebooks", "kernel", "terminal")
"""Folders whose tests drive other programs (browsers, kernels, installers), the slowest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the tests over the workers; a failed one is tried again, which the report says."""
    here = Path(__file__).parent
    # the slowest first, so that no worker is left with a browser when the others are done
    items.sort(
        key=lambda item: next((i for i, name in enumerate(MACHINES) if item.path.is_relative_to(here / name)), 9)
    )
    for item in items:
        machine = any(item.path.is_relative_to(here / folder) for folder in MACHINES)
        item.add_marker(pytest.mark.flaky(reruns=2 if machine else 1, reruns_delay=2))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep tests together that share a kernel or a server.

    Not by ``--dist loadgroup``: with pytest 9.2 xdist 3.8 passes over its marks without a word.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False  # the slowest first, as they were collected
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = group_of
    return scheduler


def group_of(nodeid: str) -> str:
    """Which tests stay together in one worker: those of a file that share a kernel; and no more than two browsers."""
    path, _, test = nodeid.partition("::")
    parameters = test.partition("[")[2].rstrip("]").split("-")
    if "tests/browser/" in path:
        return "browser notebook" if "notebook" in parameters else "browser lab"
    return f"{path} {''.join(one for one in parameters if one in VERSIONS)}"
