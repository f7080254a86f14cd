"""What a person does in front of a kernel: load the extension, see a card, click on it by one of the routes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.kernels import NEWEST, OLDEST, PINS, WIDGET_MIME, Execution, Kernel

LOAD = "%load_ext opencode_jupyter"
SECRET = "%tool read .env"
"""A call that asks under the default rules."""
EVERY_RELEASE = pytest.mark.releases(*PINS)
"""For tests of how messages and signals travel, which differs between releases of ipykernel."""
OLDEST_AND_NEWEST = pytest.mark.releases(OLDEST, NEWEST)
"""For tests that meet the kernel's main thread or its handlers."""
NEWEST_ONLY = pytest.mark.releases(NEWEST)
"""For a test that its module's mark would run on more."""
ROUTES = ("shell", "subshell", "control", "own")
"""How a front end's message travels: as VS Code sends it, as JupyterLab does, and the control channel's two types."""


def prepare(kernel: Kernel) -> None:
    """Load the extension and lay a file whose reading asks."""
    kernel.run(LOAD)
    kernel.run("import asyncio, os, time, pathlib\nfrom opencode_jupyter.jupyter.extension_state import current")
    kernel.run("_ = pathlib.Path('.env').write_text('A=1')")


def prepare_once(kernel: Kernel, *cells: str) -> None:
    """Prepare a kernel that tests share, and run these cells, at the first of the tests."""
    if not hasattr(kernel, "test_ready"):
        prepare(kernel)
        for cell in cells:
            kernel.run(cell)
        kernel.test_ready = True  # type: ignore[attr-defined]


def routes(version: str) -> tuple[str, ...]:
    """The routes that an ipykernel has."""
    return tuple(r for r in ROUTES if r != "subshell" or not version.startswith("6"))


def send(kernel: Kernel, comm_id: str, content: dict[str, Any], route: str) -> None:
    """Send what the card's front end would."""
    if route == "shell":
        kernel.widget_message(comm_id, content)
    elif route == "subshell":
        if not hasattr(kernel, "test_subshell"):
            kernel.test_subshell = kernel.create_subshell()  # type: ignore[attr-defined]
        kernel.widget_message(comm_id, content, subshell_id=kernel.test_subshell)  # type: ignore[attr-defined]
    elif route == "control":
        kernel.widget_message(comm_id, content, channel="control")
    elif route == "own":
        kernel.send("control", "opencode_jupyter", {"comm_id": comm_id, "data": content})
    else:
        raise ValueError(route)


def displayed(kernel: Kernel) -> list[dict[str, Any]]:
    """The parts of the live cards on display; a front end draws none before, so nobody clicks there."""
    views = [d[WIDGET_MIME]["model_id"] for d in kernel.displays.values() if WIDGET_MIME in d]
    return [kernel.comms[v]["part"] for v in views if kernel.comms.get(v, {}).get("part")]


def asking(
    kernel: Kernel, count: int = 1, timeout: float = 10.0, *, cell: Execution | None = None
) -> list[dict[str, Any]]:
    """Wait until `count` live cards ask; `cell` is expected to wait for them."""

    def found() -> list[dict[str, Any]]:
        return [p for p in displayed(kernel) if p["ui"].get("ask")]

    def over() -> bool:
        return cell is not None and cell.done

    kernel.pump(lambda: len(found()) >= count or over(), timeout, lambda: f"{count} asks; there are {kernel.states()}")
    assert not over(), f"the cell ended without an ask: {cell and cell.error} {kernel.states()}"
    return found()


def see(kernel: Kernel, part: dict[str, Any], route: str = "shell") -> str:
    """A front end draws the card and says so; returns the card's comm id."""
    comm_id = kernel.card_comm(part["callID"])
    send(kernel, comm_id, {"kind": "hello"}, route)
    return comm_id


def click(
    kernel: Kernel, part: dict[str, Any], reply: str, message: str | None = None, route: str = "shell", **more: Any
) -> None:
    """Answer the ask of a card; ``stop`` is the card's other button."""
    comm_id = kernel.card_comm(part["callID"])
    if reply == "stop":
        send(kernel, comm_id, {"kind": "stop"}, route)
        return
    ask = part["ui"]["ask"]
    content = {"kind": "reply", "id": ask["id"], "digest": ask["digest"], "reply": reply, "message": message, **more}
    send(kernel, comm_id, content, route)


def processes(mark: str) -> list[int]:
    """The processes whose command line holds `mark`."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def parents(mark: str) -> set[int]:
    """The parents of those processes, but for ones that have the mark themselves."""
    found = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in processes(mark)}
    return found - set(processes(mark))


def wait_processes(mark: str, there: bool, seconds: float = 5.0) -> float:
    """Wait until processes with `mark` are there, or gone; returns how long that took."""
    start = time.monotonic()
    while bool(processes(mark)) != there:
        assert time.monotonic() - start < seconds, f"{'no' if there else 'still a'} process {mark}"
        time.sleep(0.02)
    return time.monotonic() - start


def settled(kernel: Kernel) -> None:
    """Nothing live is left: every comm closed, no display shows a widget."""
    kernel.pump(lambda: not kernel.comms, 1.5, lambda: f"comms to close: {list(kernel.comms)}")
    views = [d for d in kernel.displays.values() if WIDGET_MIME in d]
    assert not views
