"""Fixtures of the kernel tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import kernels


@pytest.fixture(scope="module", params=list(kernels.PINS))
def version(request: pytest.FixtureRequest) -> str:
    """Every ipykernel version that is tested."""
    return str(request.param)


ROUTES = {"test_delivery", "test_interrupt", "test_panel", "test_protocol", "test_question", "test_stdin_and_policy"}
"""Tests of what differs between releases of ipykernel; the others run on the oldest and the newest only."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the releases between out where they make no difference: each costs minutes."""
    between = list(kernels.PINS)[1:-1]

    def spared(item: pytest.Item) -> bool:
        given = getattr(item, "callspec", None)
        in_folder = item.path.parent == Path(__file__).parent
        return in_folder and item.path.stem not in ROUTES and bool(given) and given.params.get("version") in between

    left_out = [item for item in items if spared(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not spared(item)]


@contextmanager
def _started(version: str, folder: Path) -> Iterator[kernels.Kernel]:
    env = {
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
    }
    work = folder / "work"
    work.mkdir()
    with kernels.start(version, cwd=work, env=env) as running:
        yield running


@pytest.fixture
def kernel(version: str, tmp_path: Path) -> Iterator[kernels.Kernel]:
    """A fresh kernel of `version`, in the folder ``work`` of `tmp_path`, with data and config folders of its own."""
    with _started(version, tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def shared_kernel(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[kernels.Kernel]:
    """One kernel of `version` for a whole module: quicker, for tests that leave nothing behind."""
    with _started(version, tmp_path_factory.mktemp("kernel")) as running:
        yield running


@pytest.fixture(autouse=True)
def _freed(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that failed with a cell still waiting must not hang the kernel of the next, nor cost it its waits."""
    running: kernels.Kernel | None = None
    if "shared_kernel" in request.fixturenames:
        running = request.getfixturevalue("shared_kernel")
        lost = getattr(running, "test_lost", None)
        if lost is not None:
            pytest.fail(f"the shared kernel has not answered since {lost}")
    yield
    if running is None:
        return
    if any(not cell.done for cell in running.executions.values()):
        running.interrupt()
        if not running.pump(lambda: all(cell.done for cell in running.executions.values()), 5, strict=False):
            running.test_lost = request.node.nodeid  # type: ignore[attr-defined]
        running.executions = {i: cell for i, cell in running.executions.items() if cell.done}
        running.inputs.clear()
