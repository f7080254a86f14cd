"""Stop, by the kernel's interrupt or the card's button: at once, with no process left, and the kernel goes on."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Iterator

import pytest

from tests.kernel import acts
from tests.support.kernels import Execution, Kernel

pytestmark = acts.EVERY_RELEASE

BOUND = 2.0
"""Seconds until the cell is over; generous, for a loaded machine. What is aimed at is 1."""
MARKS = itertools.count(os.getpid() * 1000)
"""Each sleep has a length of its own, to be told from others in the process list, those of other workers too."""

RUNNING = {
    "top": "%tool bash sleep {mark}",
    "assigned": "for _ in range(2):\n    r = %tool bash sleep {mark}",
    "def": "def f():\n    %tool bash sleep {mark}\nf()",
    "async def": "async def f():\n    r = %tool bash sleep {mark}\nawait f()",
    "gather": ("async def f():\n    r = %tool bash sleep {mark}\nawait asyncio.gather(f(), f())"),
    "def in an awaiting cell": "r = %tool glob *.none\ndef f():\n    %tool bash sleep {mark}\nf()",
    "def in a task": (
        "async def g():\n    def f():\n        %tool bash sleep {mark}\n    f()\nawait asyncio.create_task(g())"
    ),
    "children": "%tool bash (sleep {mark} & sleep {mark}; trap '' TERM; sleep {mark}) & sleep {mark}; sleep {mark}",
}
ASKING = {"top": acts.SECRET, "def": f"def f():\n    {acts.SECRET}\nf()"}


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> Iterator[None]:
    acts.prepare_once(shared_kernel, "%tool bash true")
    yield
    shared_kernel.execute(
        "from opencode_jupyter.jupyter.extension_state import current\n"
        "for c in list(current().workspace.calls.values()): c.abort()"
    )


def mark() -> str:
    """The length of a sleep nobody else sleeps."""
    return f"{next(MARKS)}.25"


def check_over(kernel: Kernel, cell: Execution, since: float, sleeper: str, what: str) -> None:
    """The cell ended in time, nothing runs, the next cells run."""
    took = time.monotonic() - since
    acts.wait_processes(f"sleep\0{sleeper}", False, BOUND)
    gone = time.monotonic() - since
    print(f"MEASURED {what} gone {gone:.3f} cell {took:.3f}")
    assert took < BOUND
    assert gone < BOUND
    assert kernel.run("6 * 7").result == "42"
    assert "hi" in kernel.run("r = %tool bash echo hi\nprint(r.output)").stdout
    acts.settled(kernel)


@pytest.mark.parametrize("style", RUNNING)
def test_interrupted_command(shared_kernel: Kernel, version: str, style: str) -> None:
    sleeper = mark()
    cell = shared_kernel.submit(RUNNING[style].format(mark=sleeper))
    acts.wait_processes(f"sleep\0{sleeper}", True)
    shared_kernel.idle_for(0.3)
    start = time.monotonic()
    shared_kernel.interrupt()
    shared_kernel.finish(cell, 8)
    assert cell.error is not None
    expected = ("CancelledError", "KeyboardInterrupt") if style in ("gather", "def in a task") else "KeyboardInterrupt"
    assert cell.error.startswith(expected)
    assert cell.contents("error") == [], "the card shows it; an error box says nothing more"
    check_over(shared_kernel, cell, start, sleeper, f"{version} {style}")
    part = next(c for c in shared_kernel.cards() if sleeper in str(c["state"]["input"]))
    assert part["state"]["status"] == "error"
    assert part["ui"]["outcome"] == "interrupted"


@pytest.mark.parametrize("style", ["top", "def"])
def test_interrupted_twice_and_thrice(shared_kernel: Kernel, version: str, style: str) -> None:
    """The second comes while the first is being dealt with; at the latest the cell's end takes it."""
    for pauses in ([0.0], [0.02], [0.05], [0.1, 0.01], [0.2]):
        sleeper = mark()
        cell = shared_kernel.submit(RUNNING[style].format(mark=sleeper))
        acts.wait_processes(f"sleep\0{sleeper}", True)
        shared_kernel.idle_for(0.25)
        start = time.monotonic()
        shared_kernel.interrupt()
        for pause in pauses:
            time.sleep(pause)
            shared_kernel.interrupt()
        shared_kernel.finish(cell, 8)
        assert cell.error is not None
        assert cell.error.startswith("KeyboardInterrupt")
        shared_kernel.idle_for(0.2)  # an interrupt that came late hits the idle kernel, which shrugs
        check_over(shared_kernel, cell, start + 0.2, sleeper, f"{version} {style} {pauses}")
        part = next(c for c in shared_kernel.cards() if sleeper in str(c["state"]["input"]))
        assert part["ui"]["outcome"] == "interrupted"


def test_a_burst_of_interrupts_does_not_cost_the_kernel(shared_kernel: Kernel) -> None:
    """One that comes while another is dealt with finds no lock that is taken."""
    pid = int(shared_kernel.run("import os; print(os.getpid())").stdout)
    for style in ("top", "def"):
        sleeper = mark()
        cell = shared_kernel.submit(RUNNING[style].format(mark=sleeper))
        acts.wait_processes(f"sleep\0{sleeper}", True)
        shared_kernel.idle_for(0.25)
        for _ in range(3000):
            os.kill(pid, signal.SIGINT)
        shared_kernel.finish(cell, 8)
        assert cell.error is not None
        assert cell.error.startswith("KeyboardInterrupt")
        assert shared_kernel.run("6 * 7").result == "42"


HIT = """
import os, signal

def hit(record):
    if record.getMessage().startswith("Aborting queue"):
        kernel.log.removeFilter(hit)
        kernel.log.setLevel("WARNING")
        os.kill(os.getpid(), signal.SIGINT)
    return False

kernel = get_ipython().kernel
kernel.log.setLevel("INFO")
kernel.log.addFilter(hit)
"""


@pytest.mark.parametrize("cell", ["%tool read not-there.txt", "await __import__('asyncio').sleep(0)\n1 / 0"])
def test_an_interrupt_after_a_failed_cell_does_not_cost_the_kernel(
    shared_kernel: Kernel, version: str, cell: str
) -> None:
    """Ipykernel alone answers "aborted" for ever when one hits it where it begins to abort what is queued."""
    shared_kernel.run(HIT)
    failed = shared_kernel.execute(cell)
    assert failed.error is not None
    assert failed.reply is not None
    assert shared_kernel.run("6 * 7").result == "42"


@pytest.mark.parametrize("style", ASKING)
def test_interrupted_while_it_asks(shared_kernel: Kernel, version: str, style: str) -> None:
    for seen in (True, False):
        cell = shared_kernel.submit(ASKING[style], allow_stdin=True)
        (part,) = acts.asking(shared_kernel, cell=cell)
        if seen:
            acts.see(shared_kernel, part)
        shared_kernel.idle_for(0.3)
        start = time.monotonic()
        shared_kernel.interrupt()
        shared_kernel.finish(cell, 8)
        took = time.monotonic() - start
        print(f"MEASURED {version} asking {style} {took:.3f}")
        assert cell.error is not None
        assert cell.error.startswith("KeyboardInterrupt")
        assert cell.contents("error") == []
        assert took < BOUND
        assert shared_kernel.run("current().broker.pending()").result == "[]"
        shown = next(c for c in shared_kernel.cards() if c["callID"] == part["callID"])
        assert shown["ui"]["outcome"] == "interrupted"
        acts.settled(shared_kernel)
    assert not shared_kernel.inputs


def test_interrupted_while_the_box_is_open(shared_kernel: Kernel) -> None:
    shared_kernel.run("current().broker.has_page, current().broker.silent_cards = False, 1")
    for code in ASKING.values():
        cell = shared_kernel.submit(code, allow_stdin=True)
        shared_kernel.pump(lambda: bool(shared_kernel.inputs))
        start = time.monotonic()
        shared_kernel.interrupt()
        shared_kernel.finish(cell, 8)
        assert time.monotonic() - start < BOUND
        assert cell.error is not None
        assert cell.error.startswith("KeyboardInterrupt")
        shared_kernel.inputs.clear()
    second = shared_kernel.submit("print(input('name? '))", allow_stdin=True)
    shared_kernel.answer("Ada")
    assert shared_kernel.finish(second).check().stdout == "Ada\n"


@pytest.mark.parametrize("style", ["h.result()", "await h"])
def test_interrupted_wait_for_a_background_call(shared_kernel: Kernel, version: str, style: str) -> None:
    """The waiting ends, the call goes on; `cancel` ends it."""
    sleeper = mark()
    shared_kernel.run(f"h = %tool --bg bash sleep {sleeper}")
    acts.wait_processes(f"sleep\0{sleeper}", True)
    cell = shared_kernel.submit(f"print('go', flush=True)\n{style}")
    shared_kernel.pump(lambda: cell.stdout == "go\n")
    shared_kernel.idle_for(0.2)
    start = time.monotonic()
    shared_kernel.interrupt()
    shared_kernel.finish(cell, 8)
    took = time.monotonic() - start
    print(f"MEASURED {version} background {style} {took:.3f}")
    assert took < BOUND
    assert cell.error is not None
    assert cell.error.startswith("KeyboardInterrupt")
    assert cell.contents("error") == []
    assert cell.stdout == "go\nNo longer waiting. The bash call continues in the background.\n"
    assert acts.processes(f"sleep\0{sleeper}")
    cell = shared_kernel.execute(f"h.cancel()\n{style}")
    assert cell.error is not None
    assert cell.error.startswith("ToolAbortedError")
    acts.wait_processes(f"sleep\0{sleeper}", False, BOUND)
    acts.settled(shared_kernel)


@pytest.mark.parametrize("style", ["top", "def", "children"])
def test_the_cards_stop(shared_kernel: Kernel, version: str, style: str) -> None:
    for route in acts.routes(version):
        sleeper = mark()
        cell = shared_kernel.submit(RUNNING[style].format(mark=sleeper))
        acts.wait_processes(f"sleep\0{sleeper}", True)
        shared_kernel.pump(lambda: len(shared_kernel.comms) == 2, 5, "the live card and its layout")
        (part,) = shared_kernel.wait_card("running")
        start = time.monotonic()
        acts.click(shared_kernel, part, "stop", route=route)
        shared_kernel.finish(cell, 8)
        assert cell.error is not None
        assert cell.error.startswith("ToolAbortedError")
        assert cell.contents("error") == []
        check_over(shared_kernel, cell, start, sleeper, f"{version} stop {style} {route}")
    part = [c for c in shared_kernel.cards() if sleeper in str(c["state"]["input"])][-1]
    assert part["ui"]["outcome"] == "stopped"


def test_a_cancel_by_code_is_an_error(shared_kernel: Kernel) -> None:
    code = (
        "async def f():\n    %tool bash sleep 30\ntask = asyncio.create_task(f())\n"
        "await asyncio.sleep(0.5)\ntask.cancel()\nawait task"
    )
    cell = shared_kernel.execute(code)
    assert [c["ename"] for c in cell.contents("error")] == ["CancelledError"]


@pytest.mark.parametrize("code", ["%tool bash sleep {mark}", "%tool -q bash sleep {mark}", "time.sleep({mark})"])
def test_an_interrupt_that_no_card_shows_is_an_error(shared_kernel: Kernel, code: str) -> None:
    """Nobody watches, or the call shows no card, or it is not about a call."""
    sleeper = mark()
    shared_kernel.run("current().broker.has_page = False")
    cell = shared_kernel.submit(f"print('go', flush=True)\n{code.format(mark=sleeper)}", allow_stdin="-q" in code)
    shared_kernel.pump(lambda: cell.stdout == "go\n")
    shared_kernel.idle_for(0.5)
    shared_kernel.interrupt()
    shared_kernel.finish(cell, 8)
    assert [c["ename"] for c in cell.contents("error")] == ["KeyboardInterrupt"]


def test_time_limit(shared_kernel: Kernel) -> None:
    sleeper = mark()
    cell = shared_kernel.execute(f"%tool --timeout 0.3 bash sleep {sleeper}")
    assert cell.error is not None
    assert cell.error.startswith("ToolTimeoutError")
    assert cell.elapsed < 2
    acts.wait_processes(f"sleep\0{sleeper}", False, BOUND)


def test_the_rest_of_the_cell_is_the_persons(shared_kernel: Kernel) -> None:
    """A cell that catches the interrupt goes on, and calls again."""
    sleeper = mark()
    code = (
        f"def f():\n    %tool bash sleep {sleeper}\n"
        "try:\n    f()\nexcept KeyboardInterrupt:\n    print('caught')\nr = %tool bash echo after\nprint(r.output)"
    )
    cell = shared_kernel.submit(code)
    acts.wait_processes(f"sleep\0{sleeper}", True)
    shared_kernel.idle_for(0.2)
    shared_kernel.interrupt()
    assert "caught\nafter" in shared_kernel.finish(cell, 8).check().stdout


@pytest.mark.parametrize("before", ["r = %tool glob *.none", "await asyncio.sleep(0)", "pass"])
@pytest.mark.parametrize(
    "code", ["time.sleep(5)", "while time.time() < end: pass", "async def f(): time.sleep(5)\nawait f()"]
)
def test_plain_code_beside_a_call_is_interrupted(shared_kernel: Kernel, before: str, code: str) -> None:
    """A cell with a call awaits, and ipykernel would let plain code in it run on."""
    cell = shared_kernel.submit(f"{before}\nend = time.time() + 5\nprint('go', flush=True)\n{code}")
    shared_kernel.pump(lambda: cell.stdout == "go\n")
    shared_kernel.idle_for(0.1)
    start = time.monotonic()
    shared_kernel.interrupt()
    shared_kernel.finish(cell, 8)
    assert time.monotonic() - start < BOUND
    assert cell.error is not None
    assert cell.error.startswith("KeyboardInterrupt")
    assert shared_kernel.run("await asyncio.sleep(0.05); 6 * 7").result == "42"


@pytest.mark.parametrize("seed", range(2))
def test_interrupts_at_any_moment(shared_kernel: Kernel, seed: int) -> None:
    """Before the cell's first line, while it ends, once or several times: it is answered, and nothing stays behind."""
    rng = random.Random(seed)
    for style in RUNNING:
        sleeper = mark()
        cell = shared_kernel.submit(RUNNING[style].format(mark=sleeper))
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.2)
        else:
            acts.wait_processes(f"sleep\0{sleeper}", True)
        for _ in range(rng.choice([1, 1, 2, 3])):
            shared_kernel.interrupt()
            time.sleep(rng.random() * rng.choice([0.01, 0.1, 0.4]))
        if not shared_kernel.pump(lambda cell=cell: cell.done, 5, strict=False):  # all came before the cell
            shared_kernel.interrupt()
            shared_kernel.finish(cell, 8)
        assert cell.error is not None
        assert shared_kernel.run("6 * 7").result == "42"
        acts.wait_processes(f"sleep\0{sleeper}", False, 5)
