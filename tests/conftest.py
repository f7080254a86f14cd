"""Fixtures for all tests."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.kernels import PINS

if TYPE_CHECKING:
    from opencode_jupyter import Workspace
    from tests.support.workspaces import OpenWorkspace

# Where it is installed, jsonschema (and nbformat with it) takes a second to import: it compiles 38 grammars of URIs.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]


@pytest.fixture
def anyio_backend() -> str:
    """Everything runs on asyncio: the notebook's loop is tornado over it."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests() -> None:
    """A process knows a secret for good once it was told; a test knows its own only."""
    from opencode_jupyter.core import secrets

    secrets.known.clear()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that `workspace` and `open_workspace` open; a file or folder of tests may have its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
async def open_workspace(project: Path, tmp_path: Path) -> AsyncIterator[OpenWorkspace]:
    """Opens workspaces in which nothing asks, unless their configuration says so; the end of the test closes them."""
    from opencode_jupyter import Workspace  # here: browser and kernel tests need none

    async with AsyncExitStack() as opened:

        async def enter(
            config: dict[str, Any] | None = None,
            *,
            directory: str | PathLike[str] | None = None,
            files: Mapping[str, str] | None = None,
            data_dir: str | PathLike[str] | None = None,
            **options: Any,
        ) -> Workspace:
            folder = Path(directory or project)
            for name, text in (files or {}).items():
                (folder / name).write_text(text)
            rules = {"permission": {"*": "allow"}} if config is None else config
            return await opened.enter_async_context(Workspace(folder, rules, data_dir or tmp_path / "data", **options))

        yield enter


@pytest.fixture
async def workspace(open_workspace: OpenWorkspace) -> Workspace:
    """A workspace in which nothing asks."""
    return await open_workspace()


# The same examples at each run, here as in CI, and no limit of time: the machine may be busy. `make fuzz` takes others.
settings.load_profile("ci")
settings.register_profile(
    "fuzz",
    max_examples=1000,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)

HERE = Path(__file__).parent
VERSIONS = frozenset(PINS)
MACHINES = ("browser", "install", "notebooks", "kernel", "terminal")
"""Folders whose tests drive other programs (browsers, kernels, installers), the slowest first."""

RERUN = ("browser", "kernel")
"""Folders whose tests are run again when they fail: what they drive can be late on a busy machine."""


def pytest_configure(config: pytest.Config) -> None:
    """Have interrupts heard, and let the workers share the work of rewriting the tests' asserts.

    That is two thirds of what collecting costs. Each keeps what it has rewritten for the others, also where Python is
    told to write no bytecode, and each begins with another part of the files.
    """
    # what a shell starts in the background ignores SIGINT, and Python then raises no KeyboardInterrupt; tests need one
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.dont_write_bytecode = False
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None or [Path(argument).resolve() for argument in config.args] != [HERE]:
        return
    files = sorted(str(path) for path in HERE.rglob("test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // int(worker["workercount"])
    config.args = [*files[first:], *files[:first]]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the tests over the workers; one that drives a kernel or a browser gets another try, which is reported."""
    ranks = {path: rank(path) for path in {item.path for item in items}}
    # the slowest first, so that no worker is left with a browser when the others are done; within a folder the order
    # that pytest-randomly has made from the seed, the same in every worker
    items.sort(key=lambda item: ranks[item.path])
    for item in items:
        if item.path.relative_to(HERE).parts[0] in RERUN:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))


def pytest_collection_finish() -> None:
    """Keep what importing and collecting made out of the garbage collector.

    IPython collects whenever one of its shells ends; going through half a million objects took half of such a test.
    """
    gc.collect()
    gc.freeze()


def rank(path: Path) -> int:
    """The place of a test file's folder among `MACHINES`; their number for all others."""
    folder = path.relative_to(HERE).parts[0]
    return MACHINES.index(folder) if folder in MACHINES else len(MACHINES)


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


BESIDE_NOTEBOOK = ("test_accessible.py", "test_focus.py", "test_hostile.py")
"""Files of browser tests with JupyterLab alone that go to the worker of Notebook 7, so that each has as much to do."""


def group_of(nodeid: str) -> str:
    """Which tests stay together in one worker: those of a file that share a kernel; and no more than three browsers."""
    path, _, test = nodeid.partition("::")
    parameters = test.partition("[")[2].rstrip("]").split("-")
    if "tests/browser/" in path:
        if "notebook" in parameters or path.endswith(BESIDE_NOTEBOOK):
            return "browser notebook"
        return f"browser lab {1 if Path(path).name < 'test_p' else 2}"
    return f"{path} {''.join(one for one in parameters if one in VERSIONS)}"
