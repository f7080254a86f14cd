"""Fixtures of the kernel tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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


class _SharedKernels:
    """One running kernel of a module: the next one once it no longer answers.

    Args:
        start: starts a kernel in a new folder.
    """

    def __init__(self, start: Callable[[], kernels.Kernel]) -> None:
        self._start = start
        self._kernel: kernels.Kernel | None = None

    def get(self) -> kernels.Kernel:
        """Return the running kernel; start one if there is none."""
        if self._kernel is None:
            self._kernel = self._start()
        return self._kernel

    def forget(self) -> None:
        """Give up the running kernel, which no longer answers."""
        self._kernel = None


@pytest.fixture(scope="module")
def _shared_kernels(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_SharedKernels]:
    with ExitStack() as started:
        yield _SharedKernels(lambda: started.enter_context(_started(version, tmp_path_factory.mktemp("kernel"))))


@pytest.fixture
def shared_kernel(_shared_kernels: _SharedKernels) -> Iterator[kernels.Kernel]:
    """One kernel of `version` for a whole module: quicker, for tests that leave nothing behind.

    A test that leaves a cell waiting fails alone: the cell is interrupted, or the next test has a new kernel.
    """
    running = _shared_kernels.get()
    yield running
    if any(not cell.done for cell in running.executions.values()):
        running.interrupt()
        if not running.pump(lambda: all(cell.done for cell in running.executions.values()), 5, strict=False):
            _shared_kernels.forget()
            pytest.fail("the shared kernel no longer answers")
        running.executions = {i: cell for i, cell in running.executions.items() if cell.done}
        running.inputs.clear()
