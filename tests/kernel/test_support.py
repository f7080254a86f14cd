"""The kernel driver itself, on plain Python cells: what the tests of this folder stand on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.kernel import acts
from tests.support.kernels import CHECKOUT, Kernel

pytestmark = acts.OLDEST_AND_NEWEST


def test_kernel_is_the_version_asked_for(shared_kernel: Kernel, version: str) -> None:
    assert shared_kernel.run("import ipykernel; ipykernel.__version__").result.strip("'").startswith(version + ".")
    assert shared_kernel.run("import opencode_jupyter; print(opencode_jupyter.__file__)").stdout.startswith(
        str(CHECKOUT)
    )


def test_outputs_errors_and_results(shared_kernel: Kernel) -> None:
    done = shared_kernel.run("import sys; print('out'); print('err', file=sys.stderr); 6 * 7")
    assert (done.stdout, done.stderr, done.result) == ("out\n", "err\n", "42")
    assert shared_kernel.execute("1 / 0").error == "ZeroDivisionError: division by zero"
    with pytest.raises(AssertionError, match="division by zero"):
        shared_kernel.run("1 / 0")


def test_displays_are_followed(shared_kernel: Kernel) -> None:
    code = """
    import asyncio
    from IPython.display import display
    h = display({"text/plain": "first"}, raw=True, display_id="d")
    await asyncio.sleep(0.3)
    h.update({"text/plain": "second"}, raw=True)
    """
    running = shared_kernel.submit(code)
    shared_kernel.wait_display(lambda data: data["text/plain"] == "first")
    assert not running.done
    shared_kernel.wait_display(lambda data: data["text/plain"] == "second")
    shared_kernel.finish(running).check()


def test_stdin_is_answered(shared_kernel: Kernel) -> None:
    running = shared_kernel.submit("name = input('who? ')\nprint(name)")
    assert shared_kernel.answer("Ada")["prompt"] == "who? "
    assert shared_kernel.finish(running).stdout == "Ada\n"


def test_interrupt(shared_kernel: Kernel) -> None:
    running = shared_kernel.submit("print('go', flush=True)\nimport time; time.sleep(600)")
    shared_kernel.pump(lambda: running.stdout == "go\n")
    shared_kernel.interrupt()
    assert shared_kernel.finish(running, 5).error.startswith("KeyboardInterrupt")
    assert running.elapsed < 5


COMM = """
from comm import create_comm
got = []
c = create_comm(target_name="test", data={"state": {"part": {}}})
c.on_msg(lambda m: got.append(m["content"]["data"]))
c.comm_id
"""


def test_comm_messages_reach_an_idle_kernel(shared_kernel: Kernel) -> None:
    comm = shared_kernel.run(COMM).result.strip("'")
    assert comm in shared_kernel.comms
    shared_kernel.comm_msg(comm, {"n": 1})
    shared_kernel.widget_message(comm, {"kind": "reply"})
    shared_kernel.idle_for(0.3)
    assert shared_kernel.run("got").result == "[{'n': 1}, {'method': 'custom', 'content': {'kind': 'reply'}}]"
    shared_kernel.run("c.send({'method': 'update', 'state': {'x': 1}}); c.send({'method': 'custom', 'content': 'hi'})")
    assert shared_kernel.comms[comm] == {"part": {}, "x": 1}
    assert shared_kernel.custom == [(comm, "hi")]
    shared_kernel.run("c.close()")
    assert comm not in shared_kernel.comms


@acts.EVERY_RELEASE
def test_which_comm_messages_reach_a_blocked_cell(shared_kernel: Kernel, version: str) -> None:
    """The reason for the channels of approvals: on the shell channel, none do."""
    comm = shared_kernel.run(COMM).result.strip("'")
    blocked = shared_kernel.submit("import time; print('go', flush=True)\ntime.sleep(1); n = len(got)")
    shared_kernel.pump(lambda: blocked.stdout == "go\n")
    shared_kernel.comm_msg(comm, {"n": 1})
    shared_kernel.finish(blocked)
    assert shared_kernel.run("n").result == "0"
    if version == "7.3":
        subshell = shared_kernel.create_subshell()
        blocked = shared_kernel.submit("print('go', flush=True)\ntime.sleep(1); n = len(got)")
        shared_kernel.pump(lambda: blocked.stdout == "go\n")
        shared_kernel.comm_msg(comm, {"n": 2}, subshell_id=subshell)
        shared_kernel.finish(blocked)
        assert shared_kernel.run("n").result == "2"


def test_control_answers_while_a_cell_blocks(shared_kernel: Kernel) -> None:
    running = shared_kernel.submit("print('go', flush=True)\nimport time; time.sleep(1)")
    shared_kernel.pump(lambda: running.stdout == "go\n")
    assert shared_kernel.request("control", "kernel_info_request", {})["status"] == "ok"
    assert not running.done
    shared_kernel.finish(running)


def test_a_dead_kernel_is_told(kernel: Kernel) -> None:
    with pytest.raises(RuntimeError, match="died"):
        kernel.execute("import os; os._exit(1)")


def test_waiting_has_an_end(shared_kernel: Kernel) -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="input request"):
        shared_kernel.answer("x", timeout=0.3)
    with pytest.raises(TimeoutError, match=r"1 cards completed; there are \[\]"):
        shared_kernel.wait_card("completed", timeout=0.3)
    assert time.monotonic() - start < 3


def test_folders_are_its_own(kernel: Kernel, tmp_path: Path) -> None:
    code = "import os, platformdirs; print(os.getcwd(), platformdirs.user_data_dir('x'), os.getpid())"
    folder, data, pid = kernel.run(code).stdout.split()
    assert (folder, data) == (str(tmp_path / "work"), str(tmp_path / "data" / "x"))
    assert int(pid) == kernel.pid != os.getpid()
