"""Tools that go wrong in every way: a clear error, the kernel alive, the next call fine."""

from __future__ import annotations

import itertools
import os
import signal
import time
from pathlib import Path

import pytest

from tests.kernel import acts
from tests.support.kernels import NEWEST, Kernel, start

TOOLS = """
import asyncio, os, sys, threading, time
from opencode_jupyter import tool, ToolResult

@tool
async def raises(): raise KeyError("a key")
@tool
def raises_sync(): raise OSError(28, "No space left on device")
@tool
async def hangs(): await asyncio.sleep(600)
@tool
async def blocks(): time.sleep(4)
@tool
def blocks_sync(): time.sleep(4)
@tool
async def deaf():
    for _ in range(40):
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            pass
@tool
async def unknown(): return object()
@tool
def unknown_sync(): return threading.Lock()
@tool
async def bytes_out(): return ToolResult(output=b"x")
@tool
async def attached(): return ToolResult(output="x", attachments=["picture.png"])
@tool
async def metadata(): return ToolResult(output="x", metadata=7)
@tool
def endless():
    def inner(n): return inner(n + 1)
    return inner(0)
@tool
async def exits(): sys.exit(3)
@tool
def exits_sync(): sys.exit("bye")
@tool
async def stops_loop():
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.1)
    return "went on"
@tool
async def closes_loop():
    asyncio.get_running_loop().close()
    return "went on"
@tool
async def closes_loop_later():
    loop = asyncio.get_running_loop()
    loop.stop()
    threading.Timer(0.2, loop.close).start()
    await asyncio.sleep(1)
    return "went on"
@tool
async def cancels_itself():
    asyncio.current_task().cancel()
    await asyncio.sleep(1)
@tool
async def interrupts(): raise KeyboardInterrupt
@tool
def interrupts_sync(): raise KeyboardInterrupt
@tool
def stop_iteration(): raise StopIteration("x")
@tool
def generator_exit(): raise GeneratorExit
@tool
async def prints():
    print("printed in the tool")
    return "fine"
@tool
def prints_sync():
    print("printed in the sync tool")
    return "fine"
@tool
def displays():
    from IPython.display import display, HTML
    display(HTML("<b>shown</b>"))
    return "fine"
@tool(runs_in="kernel")
def on_main():
    global touched
    touched = threading.current_thread() is threading.main_thread()
    return "fine"
@tool(runs_in="kernel")
def on_main_raises(): raise ValueError("on main")
@tool(runs_in="kernel")
def on_main_exits(): sys.exit(4)
@tool(runs_in="kernel")
def on_main_sleeps(): time.sleep(600)
@tool
async def odd_metadata(ctx):
    ctx.metadata(title=object(), metadata={"output": {1: object()}, "progress": "x", (1, 2): {3}})
    await asyncio.sleep(0.4)
    ctx.metadata(title="t", metadata={"output": "\\ud800 \\x00", "progress": {"value": "many"}})
    await asyncio.sleep(0.2)
    return ToolResult(title=5, output="fine", metadata={"a": object(), "truncated": "?"})
"""


FORMS = {"await": "%tool {name}", "def": "def f():\n    r = %tool {name}\n    return r\nf()"}


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> None:
    acts.prepare_once(shared_kernel, TOOLS, "home = os.getcwd()")


def check_fine(kernel: Kernel) -> None:
    """The kernel and the tool system are as good as before."""
    kernel.run("os.chdir(home)")
    assert "fine" in kernel.run("r = %tool prints\nprint(r.output)").stdout
    assert "ok" in kernel.run("r = %tool bash echo ok\nprint(r.output)").stdout
    acts.settled(kernel)


ERRORS = {
    "raises": "KeyError: 'a key'",
    "raises_sync": "OSError: [Errno 28] No space left",
    "unknown": "InvalidResultError: The unknown tool returned a value of type object, which cannot be shown",
    "unknown_sync": "InvalidResultError: The unknown_sync tool returned a value of type _thread.lock, which cannot",
    "bytes_out": "InvalidResultError: The bytes_out tool's output must be text, not bytes",
    "attached": "InvalidResultError: an attachment must be an Attachment or a dict with mime and url, not str",
    "metadata": "InvalidResultError: The metadata tool's metadata must be a dict, not int",
    "endless": "RecursionError: maximum recursion depth exceeded",
    "exits": "ToolError: The exits tool tried to end the process (SystemExit: 3)",
    "exits_sync": "ToolError: The exits_sync tool tried to end the process (SystemExit: bye)",
    "cancels_itself": "ToolError: The cancels_itself tool cancelled itself",
    "interrupts": "ToolError: The interrupts tool interrupted itself",
    "interrupts_sync": "ToolError: The interrupts_sync tool interrupted itself",
    "closes_loop": "",
    "stop_iteration": "",
    "generator_exit": "",
    "on_main_raises": "ValueError: on main",
    "on_main_exits": "ToolError: The on_main_exits tool tried to end the process (SystemExit: 4)",
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_tool_that_fails(shared_kernel: Kernel, name: str) -> None:
    for form in FORMS.values():
        cell = shared_kernel.execute(form.format(name=name), timeout=8)
        assert cell.error is not None, name
        assert cell.error.startswith(ERRORS[name])
        assert cell.elapsed < 3
        check_fine(shared_kernel)
    part = [c for c in shared_kernel.cards() if c["tool"] == name][-1]
    assert part["state"]["status"] == "error"
    assert part["state"]["error"]


@pytest.mark.parametrize("name", ["stops_loop", "closes_loop_later"])
def test_a_tool_that_stops_its_loop_goes_on(shared_kernel: Kernel, name: str) -> None:
    assert shared_kernel.run(f"r = %tool {name}\nprint(r.output)").stdout == "went on\n"
    check_fine(shared_kernel)


@acts.OLDEST_AND_NEWEST
@pytest.mark.parametrize("name", ["hangs", "blocks", "blocks_sync", "deaf", "on_main_sleeps"])
@pytest.mark.parametrize("form", FORMS)
def test_a_tool_that_hangs_is_interrupted(shared_kernel: Kernel, version: str, name: str, form: str) -> None:
    cell = shared_kernel.submit(FORMS[form].format(name=name))
    shared_kernel.pump(lambda: "execute_input" in [m["msg_type"] for m in cell.messages])
    shared_kernel.idle_for(0.5)
    start = time.monotonic()
    shared_kernel.interrupt()
    shared_kernel.finish(cell, 8)
    took = time.monotonic() - start
    print(f"MEASURED {version} {name} {form} {took:.3f}")
    assert cell.error is not None
    assert cell.error.startswith("KeyboardInterrupt")
    assert took < 1.5
    part = [c for c in shared_kernel.cards() if c["tool"] == name][-1]
    assert part["ui"]["outcome"] == "interrupted"
    check_fine(shared_kernel)


@acts.OLDEST_AND_NEWEST
@pytest.mark.parametrize("name", ["hangs", "blocks", "blocks_sync"])
def test_a_tool_that_hangs_is_stopped(shared_kernel: Kernel, name: str) -> None:
    cell = shared_kernel.submit(FORMS["await"].format(name=name))
    shared_kernel.pump(lambda: len(shared_kernel.comms) == 2, 5, "the live card")
    part = shared_kernel.wait_card("running")[-1]
    start = time.monotonic()
    acts.click(shared_kernel, part, "stop")
    shared_kernel.finish(cell, 8)
    assert time.monotonic() - start < 1.5
    assert cell.error is not None
    assert cell.error.startswith("ToolAbortedError")
    check_fine(shared_kernel)


@acts.OLDEST_AND_NEWEST
def test_output_of_a_tool_goes_to_its_cell(shared_kernel: Kernel) -> None:
    assert "printed in the tool" in shared_kernel.run("%tool prints").stdout
    assert "printed in the sync tool" in shared_kernel.run("def f():\n    %tool prints_sync\nf()").stdout
    shown = shared_kernel.run("%tool displays").contents("display_data")
    assert any("<b>shown</b>" in d["data"].get("text/html", "") for d in shown)


@acts.OLDEST_AND_NEWEST
def test_a_tool_on_the_main_thread(shared_kernel: Kernel) -> None:
    for code in (
        "%tool on_main",
        "def f():\n    %tool on_main\nf()",
        "h = %tool --bg on_main\nh.result()",
        "h = %tool --bg on_main\nawait h",
        "h = %tool --bg on_main",
    ):
        shared_kernel.run("touched = None")
        shared_kernel.run(code, timeout=5)
        shared_kernel.idle_for(0.2)
        assert shared_kernel.run("touched").result == "True", code


def test_odd_metadata(shared_kernel: Kernel) -> None:
    for form in FORMS.values():
        shared_kernel.execute(form.format(name="odd_metadata"), timeout=8)
        check_fine(shared_kernel)


def test_a_card_that_can_not_be_drawn(shared_kernel: Kernel) -> None:
    """The result comes all the same."""
    shared_kernel.run(
        "import opencode_jupyter.jupyter.cards.call_card as c\nkept = c.card_tree, c.settled_bundle\n"
        "def broken(*a, **k): raise RuntimeError('no card')\nc.card_tree = c.settled_bundle = broken"
    )
    try:
        for code in (
            "r = %tool bash sleep 0.4; echo ok",
            "def f():\n    r = %tool bash sleep 0.4; echo ok\n    return r\nr = f()",
        ):
            shared_kernel.run(code + "\nassert r.output.strip() == 'ok'", timeout=10)
    finally:
        shared_kernel.run("c.card_tree, c.settled_bundle = kept")
    check_fine(shared_kernel)


def test_a_folder_that_goes_away(shared_kernel: Kernel) -> None:
    shared_kernel.run("os.makedirs('gone/deep'); os.chdir('gone/deep'); import shutil; shutil.rmtree(home + '/gone')")
    for code in ("%tool bash echo hi", "%tool glob *.py"):
        cell = shared_kernel.execute(code)
        assert cell.error is not None
        assert cell.elapsed < 3
        assert "folder" in cell.error
    check_fine(shared_kernel)


def test_each_call_runs_where_the_kernel_is(shared_kernel: Kernel) -> None:
    shared_kernel.run("os.makedirs('sub', exist_ok=True); os.chdir('sub'); _ = open('only_here.txt', 'w').write('x')")
    assert "only_here.txt" in shared_kernel.run("r = %tool glob *.txt\nprint(r.output)").stdout
    assert shared_kernel.run("r = %tool bash pwd\nprint(r.output)").stdout.strip().endswith("/sub")
    shared_kernel.run("os.chdir(home)")
    assert not shared_kernel.run("r = %tool bash pwd\nprint(r.output)").stdout.strip().endswith("/sub")


MARKS = itertools.count(os.getpid() * 1000)


@pytest.mark.parametrize("end", ["shutdown", "restart", "kill", "kill silent_cards", "exit", "unload"])
def test_no_process_outlives_the_kernel(end: str, tmp_path: Path) -> None:
    sleeper = str(next(MARKS))
    with start(NEWEST, cwd=tmp_path, env={"XDG_DATA_HOME": str(tmp_path)}) as kernel:
        acts.prepare(kernel)
        busy = end in ("restart", "kill", "kill silent_cards")
        cell = kernel.submit(f"%tool {'' if busy else '--bg '}bash sleep {sleeper} & sleep {sleeper}")
        acts.wait_processes(f"sleep\0{sleeper}", True)
        if not busy:
            kernel.finish(cell)
        if end == "kill silent_cards":  # the kernel dies with words of its helper processes unread
            kernel.manager.signal_kernel(signal.SIGSTOP)
            for shell in acts.parents(f"sleep\0{sleeper}"):
                os.kill(shell, signal.SIGKILL)
            time.sleep(0.3)
            assert acts.processes(f"sleep\0{sleeper}")
        began = time.monotonic()
        if end == "shutdown":
            kernel.send("control", "shutdown_request", {"restart": False})
        elif end == "restart":
            kernel.manager.restart_kernel(now=True)
        elif end.startswith("kill"):
            kernel.manager.signal_kernel(signal.SIGKILL)
        elif end == "exit":
            kernel.submit("exit()")
        else:
            kernel.run("%unload_ext opencode_jupyter")
        acts.wait_processes(f"sleep\0{sleeper}", False, 9 if end == "unload" else 4)
        print(f"MEASURED {end} gone {time.monotonic() - began:.2f}")


@pytest.mark.parametrize(
    ("line", "outcome"),
    [("bash echo never > never.txt", "cancelled"), ("bash echo ran; sleep 60", "ended")],
)
def test_the_history_tells_whether_a_killed_kernel_had_run_a_call(
    version: str, tmp_path: Path, line: str, outcome: str
) -> None:
    """Killed while the call waits for approval, or while it runs."""
    env = {name: str(tmp_path / name) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "IPYTHONDIR")}
    with start(version, cwd=tmp_path, env=env) as kernel:
        acts.prepare(kernel)
        kernel.run("%permissions ask bash '*'")
        cell = kernel.submit(f"%tool {line}")
        (part,) = acts.asking(kernel, cell=cell)
        if "sleep" in line:
            acts.click(kernel, part, "once")
            kernel.wait_card("running")
        kernel.idle_for(1)  # the history is written behind the call
        os.kill(kernel.pid, signal.SIGKILL)
    with start(version, cwd=tmp_path, env=env) as kernel:
        acts.prepare(kernel)
        kernel.run("store = current().workspace.store")
        calls = "[call for call in current().on_engine(store.calls) if call['tool'] != 'read']"
        outcomes = kernel.run(f"print(sorted({{call['outcome'] for call in {calls}}}))").stdout
        errors = kernel.run("print([part['state']['error'] for part in current().on_engine(store.parts)])").stdout
    assert outcomes == f"[{outcome!r}]\n"
    assert ("Nothing was run" in errors) == (outcome == "cancelled")
    assert not list(tmp_path.glob("*.txt"))
