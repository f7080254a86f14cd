"""The python tool in real kernels: output to its card and nowhere else, Stop at once, the user's variables intact."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel import acts
from tests.support.kernels import Execution, Kernel

BOUND = 2.0
"""Seconds until a stopped call is over; what is aimed at is 0.2."""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ENDLESS = {
    "loop": "while True: pass",
    "sleep": "time.sleep(600)",
    "lock": "threading.Event().wait()",
    "child": "subprocess.run(['sleep', '600'])",
    "regex": "re.match('(a+)+$', 'a' * 40 + 'b')",
    "await": "await asyncio.sleep(600)",
    "loop in await": "await asyncio.sleep(0)\nwhile True: pass",
    "tasks": "async def f():\n    while True: pass\nawait asyncio.gather(f(), f())",
    "swallows": "while True:\n    try:\n        while True: time.sleep(0.01)\n    except BaseException: pass",
}
PLACES = {"top": "%%tool python{options}\n{code}", "def": "def f():\n    get_ipython().run_cell_magic({args})\nf()"}

SOME = [*((code, "top") for code in ENDLESS if code != "lock"), ("loop", "def"), ("await", "def")]


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> Iterator[None]:
    acts.prepare_once(
        shared_kernel,
        "import asyncio, os, re, subprocess, sys, threading, time\nkept = {'a': [1, 2]}",
        "%tool python 1",
    )
    yield
    shared_kernel.execute("for c in list(current().workspace.calls.values()): c.abort()")


def cell(place: str, code: str, options: str = "") -> str:
    """A cell that runs code with the tool."""
    return PLACES[place].format(options=options, code=code, args=f"'tool', 'python{options}', {code!r}")


def output(kernel: Kernel, code: str) -> str:
    """What the tool gives for code, run in a cell of its own that shows nothing else."""
    done = kernel.run(f"%%tool -o _r python\n{code}")
    assert (done.stdout, done.stderr) == ("", "")
    return str(kernel.run("print(_r.output, end='')").stdout)


def last_card(kernel: Kernel) -> dict[str, Any]:
    """The newest card."""
    return kernel.cards()[-1]


def check_goes_on(kernel: Kernel) -> None:
    """Variables are there, no interrupt is left over, output of cells and calls ends where it should."""
    again = kernel.run(
        "import signal\nawait asyncio.sleep(0.03)\nkept, sys.gettrace(), "
        "{signal.getsignal(n) for n in (signal.SIGURG, signal.SIGVTALRM)}, signal.getitimer(signal.ITIMER_VIRTUAL)"
    )
    assert again.result == "({'a': [1, 2]}, None, {<Handlers.SIG_DFL: 0>}, (0.0, 0.0))"
    assert kernel.run("signal.getsignal(signal.SIGINT).__qualname__").result == "'_Request.handle'"
    assert kernel.run("print('cell'); time.sleep(0.02)").stdout == "cell\n"
    assert output(kernel, "kept['a']") == "[1, 2]"


# ---- what it runs and gives


def test_like_a_cell(shared_kernel: Kernel) -> None:
    kernel = shared_kernel
    kernel.run("_ = 7")
    assert output(kernel, "x = 5\nprint('printed')\nx + 1") == "printed\n6"
    assert kernel.run("x, _").result == "(5, 7)"  # `_` is still the cells'
    assert output(kernel, "x;") == "(no output)"
    assert output(kernel, "await asyncio.sleep(0.01)\nprint('a', end='')\n'b'") == "a\n'b'"
    assert output(kernel, "v = !echo from a shell\nv[0]") == "'from a shell'"
    assert kernel.run("r = %tool python print(1); 2\nr.output").result == "'1\\n2'"
    kernel.execute("%%tool python\n'not in Out'; 12345", store_history=False)
    assert kernel.run("12345 in Out.values(), any('12345' in i for i in In[:-1])").result == "(False, False)"


@acts.OLDEST_AND_NEWEST
def test_all_ways_of_writing_end_in_the_card(shared_kernel: Kernel) -> None:
    code = (
        "import ctypes, logging\nfrom IPython.display import display, Markdown\n"
        "print('out'); print('err', file=sys.stderr); sys.stdout.writelines(['w1\\n', 'w2\\n'])\n"
        "display('shown'); display(Markdown('# head'))\n"
        "logging.getLogger('t').warning('logged')\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool: pool.submit(print, 'pool').result()\n"
        "sys.stdout.flush(); os.write(1, b'descriptor\\n'); subprocess.run(['echo', 'child'])\n"
        "ctypes.CDLL(None).puts(b'from C')\n"
        "pid = os.fork()\nif pid == 0:\n    print('forked'); os._exit(0)\nos.waitpid(pid, 0)[1]"
    )
    found = output(shared_kernel, code)
    wanted = ("out", "err", "w1", "w2", "'shown'", "# head", "logged", "thread", "pool", "descriptor", "child")
    for word in (*wanted, "from C", "forked"):
        assert word in found.splitlines(), word
    tasks = "async def f(n):\n    await asyncio.sleep(0.01)\n    print('task', n)\nawait asyncio.gather(f(1), f(2));"
    assert sorted(output(shared_kernel, tasks).splitlines()) == ["task 1", "task 2"]
    check_goes_on(shared_kernel)


def test_pictures_are_attached(shared_kernel: Kernel) -> None:
    shared_kernel.run(f"import base64\nfrom IPython.display import Image\np = Image(base64.b64decode('{PNG}'))")
    code = "display(p)\np"
    assert output(shared_kernel, code) == "(no output)"
    shown = shared_kernel.run("[(a.mime, len(a.data), a.filename) for a in _r.attachments]").result
    assert shown == "[('image/png', 70, 'figure-1.png'), ('image/png', 70, 'figure-2.png')]"
    assert len(last_card(shared_kernel)["state"]["attachments"]) == 2


def test_an_exception_shows_its_traceback_in_the_card(shared_kernel: Kernel) -> None:
    code = "def divide(n):\n    return 1 / n\nprint('before')\ndone = True\ndivide(0)"
    failed = shared_kernel.execute(f"%%tool python\n{code}")
    assert failed.error is not None
    assert failed.error.startswith("CodeError: before\n")
    state = last_card(shared_kernel)["state"]
    assert state["status"] == "error"
    for line in ("before", "----> 5 divide(0)", "----> 2     return 1 / n", "ZeroDivisionError: division by zero"):
        assert line in state["error"].splitlines()
    assert "\x1b[" not in state["error"]
    assert "\x1b[" in state["metadata"]["traceback"]
    assert "opencode_jupyter" not in state["error"]
    assert shared_kernel.run("done").result == "True"
    endless = shared_kernel.execute("%%tool python\ndef deeper():\n    deeper()\ndeeper()")
    lines = (endless.error or "").splitlines()
    assert lines[-1].startswith("RecursionError")
    assert lines[-2].endswith("frames in the middle omitted]")  # IPython takes a minute for all of them
    for wrong, words in {
        "def (": "SyntaxError",
        "await nothing": "NameError",
        "raise KeyboardInterrupt": "Keyboard",
    }.items():
        assert words in (shared_kernel.execute(f"%tool python {wrong}").error or "")
    check_goes_on(shared_kernel)


def test_exceptions_that_are_hard_to_show(shared_kernel: Kernel) -> None:
    def told(code: str) -> str:
        failed = shared_kernel.execute(f"%%tool python\n{code}", 8).error or ""
        assert failed == f"CodeError: {last_card(shared_kernel)['state']['error']}"
        return failed

    group = "import os\nraise ExceptionGroup('g', [ValueError(1), ExceptionGroup('in', [KeyError('k')])])"
    assert "\n  - ValueError: 1\n  - ExceptionGroup: in (1 sub-exception)\n    - KeyError: 'k'" in told(group)
    assert "ValueError: a \ufffd b" in told("raise ValueError('a \\ud800 b')"), "the kernel can't send a lone surrogate"
    huge = told("raise ValueError('begin' + 'x' * 5_000_000 + 'end')")
    assert "ValueError: beginx" in huge
    assert huge.endswith("xend")
    assert len(huge) < 10_000
    for wrong in ("raise SystemExit", "raise KeyboardInterrupt", "return 5"):
        text = told(f"class E(Exception):\n    def __str__(self):\n        {wrong}\nraise E")
        assert "E" in text.splitlines()[0]
    assert "E: (its text cannot be read: that raised SystemExit)" in told(
        "class E(Exception):\n    def __str__(self):\n        raise SystemExit\nraise E"
    )
    assert "breakpoint() is not available" in told("breakpoint()")
    check_goes_on(shared_kernel)


@acts.OLDEST_AND_NEWEST
def test_what_is_meant_for_the_page_and_what_threads_raise_end_in_the_card(shared_kernel: Kernel) -> None:
    asked = shared_kernel.execute("%%tool -o r python\nlen?")
    assert (asked.reply or {}).get("payload") == []
    assert "Return the number of items" in (shared_kernel.run("r.output").result or "")
    failing = "t = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()"
    assert "ZeroDivisionError: division by zero" in output(shared_kernel, failing)


def test_tracebacks_that_ipython_shows_while_code_runs_are_the_calls_too(shared_kernel: Kernel) -> None:
    code = "class Silent:\n    def __repr__(self):\n        raise ValueError('no words')\nSilent()\n"
    for shown in (
        code,
        f"{code}display(Silent())\nprint('on')",
        "get_ipython().run_cell('raise ValueError(\"no words\")');",
    ):
        found = output(shared_kernel, shown)  # it runs a cell that must show nothing and not fail
        assert "ValueError: no words" in found.splitlines()
        assert "\x1b[" not in found
    check_goes_on(shared_kernel)


@acts.OLDEST_AND_NEWEST
def test_it_can_t_end_the_kernel_or_ask_for_input(shared_kernel: Kernel) -> None:
    pid = shared_kernel.pid
    for code in ("exit()", "quit()", "sys.exit()", "exit"):
        assert "the kernel keeps running" in output(shared_kernel, code)
    assert "SystemExit: 3" in (shared_kernel.execute("%tool python sys.exit(3)").error or "")
    assert "input() is not available" in (shared_kernel.execute("%tool python input('name')").error or "")
    assert "input() is not available" in (
        shared_kernel.execute("%tool python import getpass; getpass.getpass()").error or ""
    )
    assert not shared_kernel.inputs
    assert shared_kernel.pid == pid
    asked = shared_kernel.submit("print(input('still works '))")
    shared_kernel.answer("yes")
    assert shared_kernel.finish(asked).stdout == "yes\n"


def test_long_output_is_kept_in_a_file(shared_kernel: Kernel) -> None:
    output(shared_kernel, "for i in range(20_000): print('line', i)")
    kept = shared_kernel.run(
        "whole = open(_r.output_path).read(); whole.count('\\n'), _r.truncated, len(_r.output) < 60_000"
    )
    assert kept.result == "(20000, True, True)"
    bar = "for i in range(1000): print(f'{i:04} of 1000', end='\\r')\nprint()"
    assert output(shared_kernel, bar) == "0999 of 1000"


# ---- nothing printed ends in another cell


def test_what_children_print_waits_its_turn(shared_kernel: Kernel) -> None:
    """A child writes faster than the spill file: it is held up, instead of its words filling the memory."""

    def most() -> int:
        (line,) = (s for s in Path(f"/proc/{shared_kernel.pid}/status").read_text().splitlines() if "VmHWM" in s)
        return int(line.split()[1]) >> 10

    before = most()
    size = 150_000_000
    shared_kernel.run(f"%%tool -o r python\nsubprocess.run(['head', '-c', '{size}', '/dev/zero']);", 60)
    assert most() - before < 60
    assert shared_kernel.run("os.path.getsize(r.metadata['outputPath'])").result == str(size)


@acts.OLDEST_AND_NEWEST
def test_others_keep_their_output(kernel: Kernel) -> None:
    # A kernel of its own: ipykernel finds a thread's cell by the thread's id, which an earlier one may have had.
    acts.prepare(kernel)
    kernel.run("import threading, time")
    start = (
        "def tick():\n    for i in range(10):\n        print('tick', i, flush=True); time.sleep(0.05)\n"
        "ticker = threading.Thread(target=tick); ticker.start()"
    )
    cells = [
        kernel.run(start),
        kernel.run("%%tool -o r python\ntime.sleep(0.3); print('mine')"),
        kernel.run("ticker.join()"),
    ]
    kernel.idle_for(0.3)
    assert kernel.run("r.output").result == "'mine'"
    assert sum(c.stdout.count("tick") for c in cells) == 10
    assert not any("mine" in c.stdout for c in cells)


@pytest.mark.parametrize(
    "late",
    [
        "threading.Thread(target=lambda: (time.sleep(1.0), print('LATE', flush=True))).start()",
        "leftover = subprocess.Popen('sleep 1.0; echo LATE', shell=True)",
    ],
)
@acts.OLDEST_AND_NEWEST
def test_what_comes_late_is_the_calling_cells(shared_kernel: Kernel, late: str) -> None:
    caller = shared_kernel.run(f"%%tool python\nprint('now')\n{late}")
    other = shared_kernel.run("time.sleep(1.3)\nprint('other')")
    shared_kernel.idle_for(0.3)
    assert other.stdout == "other\n"
    assert caller.stdout == "LATE\n"
    assert "now" in last_card(shared_kernel)["state"]["output"]


@acts.OLDEST_AND_NEWEST
def test_a_background_call_prints_into_its_card(shared_kernel: Kernel) -> None:
    kernel = shared_kernel
    kernel.run("h = %tool --bg python await asyncio.sleep(0.3); print('mine'); os.write(1, b'raw\\n'); 'end'")
    other = kernel.run("print('other')\nawait asyncio.sleep(0.6)")
    assert other.stdout == "other\n"
    assert kernel.run("sorted(h.result().output.split())").result == "[\"'end'\", 'mine', 'raw']"
    kernel.run("h = %tool --bg python time.sleep(0.2); threading.current_thread() is threading.main_thread()")
    assert kernel.run("h.result().output").result == "'True'"
    pair = "a = %tool --bg python pair = globals().get('pair', 0); time.sleep(0.1); pair += 1; pair\n"
    kernel.run(pair + pair.replace("a =", "b =", 1))
    assert kernel.run("[a.result().output, b.result().output]").result == "['1', '2']"


# ---- ended from outside


@acts.OLDEST_AND_NEWEST
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("code", ENDLESS)
def test_stopped(shared_kernel: Kernel, version: str, code: str, place: str) -> None:
    for route in acts.routes(version) if code == "loop" else ("shell",):
        running = shared_kernel.submit(cell(place, "print('begun', flush=True)\n" + ENDLESS[code]))
        shared_kernel.pump(lambda: len(shared_kernel.comms) == 2, 5, "the live card and its layout")
        (part,) = shared_kernel.wait_card("running")
        start = time.monotonic()
        acts.click(shared_kernel, part, "stop", route=route)
        shared_kernel.finish(running, 8)
        print(f"MEASURED {version} {place} {code} {route} {time.monotonic() - start:.3f}")
        assert time.monotonic() - start < BOUND
        assert (running.error or "").startswith("ToolAbortedError")
        assert last_card(shared_kernel)["ui"]["outcome"] == "stopped"
        assert last_card(shared_kernel)["ui"]["tail"] == "begun"
    acts.settled(shared_kernel)
    check_goes_on(shared_kernel)


@pytest.mark.parametrize(("code", "place"), SOME)
def test_its_time_is_over(shared_kernel: Kernel, code: str, place: str) -> None:
    ended = shared_kernel.execute(cell(place, "print('begun')\n" + ENDLESS[code], " timeout=0.4"), 8)
    assert (ended.error or "").startswith("ToolTimeoutError: The python tool ran longer than its limit of 0.4 s")
    assert "begun" in (ended.error or "")
    assert last_card(shared_kernel)["ui"]["outcome"] == "timed out"
    assert ended.elapsed < 0.4 + BOUND
    check_goes_on(shared_kernel)


@acts.OLDEST_AND_NEWEST
@pytest.mark.parametrize(("code", "place"), SOME)
def test_interrupted(shared_kernel: Kernel, code: str, place: str) -> None:
    running = shared_kernel.submit(cell(place, ENDLESS[code]))
    shared_kernel.pump(lambda: len(shared_kernel.comms) == 2, 5, "the live card and its layout")
    start = time.monotonic()
    shared_kernel.interrupt()
    if code == "swallows":
        shared_kernel.idle_for(0.2)
        shared_kernel.interrupt()  # pressed again: that means it
    shared_kernel.finish(running, 8)
    assert time.monotonic() - start < BOUND
    assert (running.error or "").startswith("KeyboardInterrupt")
    assert last_card(shared_kernel)["ui"]["outcome"] == "interrupted"
    check_goes_on(shared_kernel)


@pytest.mark.parametrize("wait", ["os.system('sleep 640')", "subprocess.Popen(['sleep', '640']).wait()"])
def test_what_the_code_started_is_interrupted_too(shared_kernel: Kernel, wait: str) -> None:
    shared_kernel.run("other = subprocess.Popen(['sleep', '641'])")
    ended = shared_kernel.execute(cell("top", wait, " timeout=0.4"), 8)
    assert (ended.error or "").startswith("ToolTimeoutError")
    acts.wait_processes("sleep\x00640", there=False)
    assert acts.processes("sleep\x00641"), "what other cells started goes on"
    shared_kernel.run("other.kill(), other.wait()")
    check_goes_on(shared_kernel)


@acts.OLDEST_AND_NEWEST
def test_an_interrupt_in_a_step_of_a_task(shared_kernel: Kernel) -> None:
    for _ in range(5):
        running = shared_kernel.submit(cell("top", "while True: await asyncio.sleep(0)"))
        shared_kernel.pump(lambda: len(shared_kernel.comms) == 2, 5, "the live card and its layout")
        shared_kernel.interrupt()
        assert (shared_kernel.finish(running, 8).error or "").startswith("KeyboardInterrupt")
    check_goes_on(shared_kernel)
    assert output(shared_kernel, "import gc; gc.collect(); 1") == "1"


@acts.OLDEST_AND_NEWEST
def test_code_that_saves_on_an_interrupt_may(shared_kernel: Kernel) -> None:
    code = "try:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    time.sleep(0.7); saved = True\n    raise"
    running = shared_kernel.submit(cell("top", code))
    shared_kernel.pump(lambda: len(shared_kernel.comms) == 2, 5)
    shared_kernel.interrupt()
    assert (shared_kernel.finish(running, 8).error or "").startswith("KeyboardInterrupt")
    assert shared_kernel.run("saved").result == "True"


def test_many_stops_leave_nothing_behind(shared_kernel: Kernel) -> None:
    """A signal that comes just when the code ends by itself must not hit what follows."""
    code = (
        "import random\n"
        "for n in range(40):\n"
        "    try:\n"
        "        call = 'python timeout=0.05 time.sleep(0.05 + %f)' % random.uniform(-.01, .01)\n"
        "        get_ipython().run_line_magic('tool', call)\n"
        "    except Exception as e:\n"
        "        assert type(e).__name__ == 'ToolTimeoutError', e\n"
        "print('all')"
    )
    assert shared_kernel.run(code, 60).stdout.endswith("all\n")
    check_goes_on(shared_kernel)


def test_a_background_call_is_stopped(shared_kernel: Kernel) -> None:
    shared_kernel.run("h = %tool --bg python await asyncio.sleep(600)")
    ended = shared_kernel.execute("await asyncio.sleep(0.3)\nh.cancel()\nh.result()", 8)
    assert (ended.error or "").startswith("ToolAbortedError")
    shared_kernel.run("h = %tool --bg python timeout=0.5 while True: pass")
    assert (shared_kernel.execute("h.result()", 8).error or "").startswith("ToolTimeoutError")
    check_goes_on(shared_kernel)


# ---- calls inside calls


@acts.OLDEST_AND_NEWEST
def test_code_calls_tools(shared_kernel: Kernel) -> None:
    inner = "r = %tool glob *.nothing\nprint('outer', r.title, len(r.records or []))"
    assert output(shared_kernel, inner).startswith("outer")
    assert output(shared_kernel, f"await asyncio.sleep(0)\n{inner}").startswith("outer")
    asks = shared_kernel.submit("%%tool -o r python\nq = %tool read .env\nprint('got', q.title)")
    (part,) = acts.asking(shared_kernel, cell=asks)
    acts.click(shared_kernel, part, "once")
    shared_kernel.finish(asks).check()
    assert shared_kernel.run("r.output").result == "'got .env'"


@pytest.mark.parametrize("before", ["", "await asyncio.sleep(0)\n"])
def test_code_can_not_call_the_python_tool(shared_kernel: Kernel, before: str) -> None:
    ended = shared_kernel.execute(f"%%tool python\n{before}%tool python 1 + 1", 8)
    assert "The python tool can't be called by code that it runs" in (ended.error or "")
    check_goes_on(shared_kernel)


@acts.OLDEST_AND_NEWEST
@pytest.mark.parametrize("before", ["", "await asyncio.sleep(0)\n"])
@pytest.mark.parametrize("how", ["interrupt", "stop", "timeout"])
def test_code_that_waits_for_a_call_is_ended(shared_kernel: Kernel, how: str, before: str) -> None:
    options = " timeout=0.5" if how == "timeout" else ""
    call = "get_ipython().run_line_magic('tool', 'bash sleep 600')"
    running: Execution = shared_kernel.submit(f"%%tool python{options}\n{before}{call}\nafter = 1")
    if how != "timeout":
        shared_kernel.pump(lambda: len(acts.displayed(shared_kernel)) >= 2, 5, "two live cards")
        shared_kernel.interrupt() if how == "interrupt" else acts.click(
            shared_kernel,
            next(p for p in acts.displayed(shared_kernel) if "after" in p["state"]["input"].get("code", "")),
            "stop",
        )
    start = time.monotonic()
    shared_kernel.finish(running, 8)
    assert time.monotonic() - start < 0.5 + BOUND
    names = {"interrupt": "KeyboardInterrupt", "stop": "ToolAbortedError", "timeout": "ToolTimeoutError"}
    assert (running.error or "").startswith(names[how])
    assert shared_kernel.run("'after' in globals()").result == "False"
    check_goes_on(shared_kernel)


def test_what_the_users_loop_made_can_be_awaited(shared_kernel: Kernel) -> None:
    shared_kernel.run(
        "async def later():\n    await asyncio.sleep(0.2)\n    return 'made before'\n"
        "task = asyncio.create_task(later())"
    )
    assert output(shared_kernel, "await task") == "'made before'"


# ---- asks


def test_it_shows_the_whole_code_when_it_asks(shared_kernel: Kernel) -> None:
    shared_kernel.run("%permissions ask python")
    code = "first = 1\nsecond = 2\nprint(first + second)"
    try:
        dry = shared_kernel.run(f"r = %tool --dry-run python {code.splitlines()[0]}\nr").result or ""
        assert "would need approval" in dry
        asks = shared_kernel.submit(f"%%tool python\n{code}")
        (part,) = acts.asking(shared_kernel, cell=asks)
        assert part["ui"]["ask"]["command"] == code
        assert part["ui"]["ask"]["permission"] == "python"
        acts.click(shared_kernel, part, "reject")
        assert (shared_kernel.finish(asks).error or "").startswith("PermissionRejectedError")
        assert shared_kernel.run("'second' in globals()").result == "False"
    finally:
        shared_kernel.run("%permissions allow python")


# ---- inspect


def test_inspect(shared_kernel: Kernel) -> None:
    shared_kernel.run(
        "class Evil:\n    'Bad.'\n    def __repr__(self): print('RAN'); return ''\n"
        "    def __getattr__(self, n): print('RAN'); raise AttributeError\n"
        "evil = Evil(); MY_TOKEN = 'abc123'"
    )
    shared_kernel.run("%tool -o r inspect")
    rows = shared_kernel.run("{x['name']: x['value'] for x in r.records}").result or ""
    assert "'kept': \"{'a': [1, 2]}\"" in rows
    assert "abc123" not in rows
    assert "evil" in rows
    seen = shared_kernel.run("%tool -o r inspect kept['a'][1]\n%tool inspect evil")
    assert seen.stdout == ""
    assert "value: 2" in (shared_kernel.run("r.output").result or "")
    assert "Did you mean kept?" in (shared_kernel.execute("%tool inspect kep").error or "")
    text = "%tool inspect ke"
    reply = shared_kernel.request("shell", "complete_request", {"code": text, "cursor_pos": len(text)})
    assert "kept" in reply["matches"]


def test_both_are_listed_with_help(shared_kernel: Kernel) -> None:
    listed = shared_kernel.run("%tools").result or ""
    assert " python " in listed or "\npython" in listed
    assert "inspect" in listed
    for name in ("python", "inspect"):
        assert f"%tool {name}" in (shared_kernel.run(f"%tool {name}?").result or "")
