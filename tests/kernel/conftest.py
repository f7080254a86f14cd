"""Fixtures of the kernel tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import kernels


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on the newest ipykernel, or on those that its mark `releases` names."""
    if "version" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("releases")
        metafunc.parametrize("version", mark.args if mark else [kernels.NEWEST], scope="module")


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
