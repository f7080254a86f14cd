"""An answer reaches a cell that waits, however the cell waits and however the answer travels."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.kernel import acts
from tests.support.kernels import Execution, Kernel

pytestmark = acts.EVERY_RELEASE

BOUND = 2.0
"""Seconds; generous, for a loaded machine. What is aimed at is 0.5."""

GIVEN = "{'filePath': '.env', 'limit': time.monotonic_ns() % 100_000 + 10}"
"""Arguments of a call by code: never the same ones, since the third same call asks for that."""
STYLES = {
    "top": "r = %tool read .env\nprint('went on', r.output.count('A=1'))",
    "echo": "%tool read .env",
    "loop": "for i in range(1):\n    r = %tool read .env\nprint('went on', r.output.count('A=1'))",
    "def": "def f():\n    r = %tool read .env\n    return r\nprint('went on', f().output.count('A=1'))",
    "async def": (
        "async def f():\n    r = %tool read .env\n    return r\nprint('went on', (await f()).output.count('A=1'))"
    ),
    "gather": (
        "async def f():\n    r = %tool read .env\n    return r\n"
        "a, b = await asyncio.gather(f(), f())\nprint('went on', (a.output + b.output).count('A=1'))"
    ),
    "background": "h = %tool --bg read .env\nprint('went on', h.result().output.count('A=1'))",
    "background awaited": "h = %tool --bg read .env\nprint('went on', (await h).output.count('A=1'))",
    "code": f"r = await current().workspace.call('read', {GIVEN})\nprint('went on', r.output.count('A=1'))",
    "code in def": (
        f"def f():\n    return current().workspace.call_sync('read', {GIVEN})\n"
        "print('went on', f().output.count('A=1'))"
    ),
    "code by itself": (  # on the cell's own loop: its card comes with its first ask
        f"r = await current().workspace.start('read', {GIVEN}).run()\nprint('went on', r.output.count('A=1'))"
    ),
    "code in a tool": (
        "from opencode_jupyter import ToolContext, tool\n"
        "async def outer(n: int, *, ctx: ToolContext) -> str:\n"
        f"    return (await ctx.workspace.call('read', {GIVEN})).output\n"
        "current().register(tool('outer', description='Reads.')(outer))\n"
        "r = %tool outer 1\nprint('went on', r.output.count('A=1'))"
    ),
    "code in the engine": (
        f"ws = current().workspace\nr = current().on_engine(lambda: ws.call('read', {GIVEN}))\n"
        "print('went on', r.output.count('A=1'))"
    ),
    "cell magic": "%%tool read\n.env",
    "thread": (
        "def f():\n    r = %tool read .env\n    return r\nimport concurrent.futures as cf\n"
        "print('went on', (await asyncio.get_running_loop().run_in_executor(None, f)).output.count('A=1'))"
    ),
}
ENDINGS = {
    "reject": ("PermissionRejectedError", None),
    "why": ("PermissionCorrectedError", "use the sample file"),
    "stop": ("ToolAbortedError", None),
}


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> Iterator[None]:
    acts.prepare_once(shared_kernel)
    yield
    shared_kernel.run(
        "from opencode_jupyter.jupyter.extension_state import current; current().workspace.permissions.approved.clear()"
    )


def begin(kernel: Kernel, code: str, route: str, asks: int = 1) -> tuple[Execution, list[dict]]:
    """Run a cell up to its asks, seen by a front end."""
    cell = kernel.submit(code)
    parts = acts.asking(kernel, asks, cell=cell)
    for part in parts:
        acts.see(kernel, part, route)
    assert not cell.done
    return cell, parts


@pytest.mark.parametrize("style", STYLES)
def test_allowed_once(shared_kernel: Kernel, version: str, style: str) -> None:
    for route in acts.routes(version):
        asks = 2 if style == "gather" else 1
        cell, parts = begin(shared_kernel, STYLES[style], route, asks)
        clicked = time.monotonic()
        for part in reversed(parts):
            acts.click(shared_kernel, part, "once", route=route)
        shared_kernel.finish(cell, BOUND + 8).check()
        took = time.monotonic() - clicked
        print(f"MEASURED {version} {style} {route} once {took:.3f}")
        if style not in ("echo", "cell magic"):
            assert cell.stdout == f"went on {asks}\n"
        assert took < BOUND, route
        assert not shared_kernel.inputs
        acts.settled(shared_kernel)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("style", ["top", "def", "gather", "background"])
def test_refused_or_stopped(shared_kernel: Kernel, version: str, style: str, ending: str) -> None:
    name, word = ENDINGS[ending]
    for route in acts.routes(version):
        asks = 2 if style == "gather" else 1
        cell, parts = begin(shared_kernel, STYLES[style], route, asks)
        clicked = time.monotonic()
        reply = "stop" if ending == "stop" else "reject"
        acts.click(shared_kernel, parts[0], reply, word, route=route)
        shared_kernel.finish(cell, BOUND + 8)
        took = time.monotonic() - clicked
        print(f"MEASURED {version} {style} {route} {ending} {took:.3f}")
        assert cell.error is not None
        assert cell.error.startswith(name + ": ")
        if word:
            assert word in cell.error
        assert took < BOUND
        shared_kernel.run("1")
        if style == "gather":  # gather leaves the other one running: it is told off, or answered now
            for comm in list(shared_kernel.comms):
                acts.send(shared_kernel, comm, {"kind": "stop"}, route)
        acts.settled(shared_kernel)


@pytest.mark.parametrize("style", ["top", "def"])
def test_allowed_for_the_session(shared_kernel: Kernel, version: str, style: str) -> None:
    for route in acts.routes(version):
        cell, (part,) = begin(shared_kernel, STYLES[style], route)
        acts.click(shared_kernel, part, "always", route=route)
        shared_kernel.finish(cell, BOUND).check()
        again = shared_kernel.run(STYLES[style], BOUND)  # asks no more
        assert again.stdout == "went on 1\n"
        shared_kernel.run("current().workspace.permissions.approved.clear()")
    acts.settled(shared_kernel)


def test_edited_patterns_are_what_is_remembered(shared_kernel: Kernel) -> None:
    cell, (part,) = begin(shared_kernel, STYLES["top"], "shell")
    acts.click(shared_kernel, part, "always", patterns=["*.env", "x y"])
    shared_kernel.finish(cell, BOUND).check()
    rules = shared_kernel.run("[r.pattern for r in current().workspace.permissions.approved]").result
    assert rules == "['*.env', 'x y']"


def test_an_answer_to_something_else_is_none(shared_kernel: Kernel) -> None:
    """A stale card, another ask's id, a wrong word, a comm nobody made: the ask goes on waiting."""
    cell, (part,) = begin(shared_kernel, STYLES["top"], "shell")
    comm = shared_kernel.card_comm(part["callID"])
    ask = part["ui"]["ask"]
    for content in (
        {"kind": "reply", "id": ask["id"], "digest": "0" * 16, "reply": "once"},
        {"kind": "reply", "id": "per_other", "digest": ask["digest"], "reply": "once"},
        {"kind": "reply", "id": ask["id"], "digest": ask["digest"], "reply": "maybe"},
        {"kind": "reply", "id": ask["id"], "digest": ask["digest"], "reply": ["once"]},
        {"kind": "reply", "id": ask["id"], "digest": ask["digest"], "reply": "always", "patterns": [1]},
        {"kind": "reply", "id": {}, "digest": [], "reply": None, "message": 7},
        {"kind": 7},
        {"other": "x"},
    ):
        for route in ("shell", "control", "own"):
            acts.send(shared_kernel, comm, content, route)
    acts.send(shared_kernel, "nobody", {"kind": "reply", "reply": "once"}, "shell")
    shared_kernel.send("control", "opencode_jupyter", {"comm_id": comm, "data": "text"})
    shared_kernel.send("control", "opencode_jupyter", {"nothing": 1})
    shared_kernel.comm_msg(comm, {"method": "update", "state": {"kind": "reply"}})
    shared_kernel.idle_for(0.4)
    assert not cell.done
    acts.click(shared_kernel, part, "once")
    assert shared_kernel.finish(cell, BOUND).check().stdout == "went on 1\n"


@pytest.mark.parametrize("style", ["top", "def"])
def test_the_kernel_is_busy_while_a_cell_waits_whatever_else_it_handles(
    kernel: Kernel, version: str, style: str
) -> None:
    """A front end shows the last status, though it be that of a card's message."""
    kernel.run("import os, time, pathlib\n_ = pathlib.Path('.env').write_text('A=1')")
    for code in (f"{acts.LOAD}\n{STYLES[style]}", STYLES[style]):
        cell = kernel.submit(code)
        (part,) = acts.asking(kernel, cell=cell)
        for route in acts.routes(version):
            acts.see(kernel, part, route)
            kernel.request("control", "opencode_jupyter", {"comm_id": "", "data": {"kind": "panel", "what": "asks"}})
            kernel.idle_for(0.2)
            assert kernel.status == "busy", route
        acts.click(kernel, part, "once")
        kernel.finish(cell).check()
        kernel.idle_for(0.2)
        assert kernel.status == "idle"


def test_cells_that_run_one_after_another_beside_widget_messages_all_end(kernel: Kernel) -> None:
    """ipykernel 7.4 by itself lets a widget's message make an ended cell the parent of what the next one publishes."""
    kernel.run(f"{acts.LOAD}\n%tool -q list .")
    kernel.run("import asyncio\nfrom comm import create_comm\nc = create_comm('test')\nc.on_msg(lambda message: None)")
    comm = list(kernel.comms)[-1]
    cells = [kernel.submit(f"await asyncio.sleep(0.002)\nprint({number})") for number in range(100)]
    for number in range(300):
        kernel.comm_msg(comm, {"number": number})
        time.sleep(0.002)
    kernel.pump(lambda: all(cell.done for cell in cells), 20, "the end of all cells")
    assert [cell.stdout for cell in cells] == [f"{number}\n" for number in range(100)]
    kernel.idle_for(0.5)
    assert kernel.status == "idle"
