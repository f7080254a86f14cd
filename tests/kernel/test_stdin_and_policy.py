"""When no card says hello: the front end's input box; when there is none either: the policy."""

from __future__ import annotations

import time

import pytest

from tests.kernel import acts
from tests.support.kernels import Kernel

pytestmark = acts.EVERY_RELEASE

CELL = "r = %tool read .env\nprint('went on', r.output.count('A=1'))"
FRESH = """
from opencode_jupyter.jupyter.extension_state import current
current().workspace.permissions.approved.clear()
current().broker.has_page, current().broker.silent_cards = False, 0
os.environ.pop('OPENCODE_JUPYTER_ON_ASK', None)
"""


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> None:
    acts.prepare_once(shared_kernel, "%tool glob *.none")  # what is imported at the first call is there
    shared_kernel.run(FRESH)


ANSWERS = {
    "1": None,
    "2": None,
    "n": "PermissionRejectedError",
    "n: use the sample": "PermissionCorrectedError",
}


@pytest.mark.parametrize(("style", "answer"), [("top", "1"), *(("def", answer) for answer in ANSWERS)])
def test_the_box_comes_when_no_card_is_seen(shared_kernel: Kernel, answer: str, style: str) -> None:
    code = CELL if style == "top" else "def f():\n    %tool read .env\nf()\nprint('went on', 1)"
    if style == "def":
        shared_kernel.run(
            "current().broker.silent_cards = 1"
        )  # a console: no card was ever seen, so it is asked sooner
    start = time.monotonic()
    cell = shared_kernel.submit(code, allow_stdin=True)
    asked = shared_kernel.answer(answer, timeout=8)
    took = time.monotonic() - start
    shared_kernel.finish(cell)
    assert "Read this file? " in asked["prompt"]
    assert "[1] once [2] for this session" in asked["prompt"]
    assert (1.9 < took < 4) if style == "top" else took < 2
    print(f"MEASURED prompt {style} {took:.2f}")
    if ANSWERS[answer] is None:
        assert cell.check().stdout == "went on 1\n"
    else:
        assert cell.error is not None
        assert cell.error.startswith(str(ANSWERS[answer]))
        assert answer[3:] in cell.error
    if answer == "2":
        assert shared_kernel.run(CELL).stdout == "went on 1\n"
    acts.settled(shared_kernel)


@pytest.mark.parametrize("answers", [["", ""], ["what?", "hm", "er"]])
def test_no_answer_at_last_is_a_no(shared_kernel: Kernel, answers: list[str]) -> None:
    shared_kernel.run("current().broker.silent_cards = 1")
    cell = shared_kernel.submit(CELL, allow_stdin=True)
    for text in answers:
        shared_kernel.answer(text)
    shared_kernel.finish(cell)
    assert cell.error is not None
    assert cell.error.startswith("PermissionRejectedError")


def test_the_end_of_the_input_is_a_no_at_once(shared_kernel: Kernel) -> None:
    """jupyter_console sends U+0004 for Ctrl-D."""
    question = {"questions": [{"question": "Which?", "header": "h", "options": [{"label": "a", "description": ""}]}]}
    shared_kernel.run(f"q = {question!r}")
    for code, error in (
        (CELL, "PermissionRejectedError"),
        ("%tool question --from q", "QuestionRejectedError: The user dismissed"),
    ):
        shared_kernel.run("current().broker.silent_cards = 1")
        cell = shared_kernel.submit(code, allow_stdin=True)
        shared_kernel.answer("\x04")
        shared_kernel.finish(cell, 5)
        assert cell.error is not None
        assert cell.error.startswith(error)
    acts.settled(shared_kernel)


def test_asked_again_after_nonsense(shared_kernel: Kernel) -> None:
    shared_kernel.run("current().broker.silent_cards = 1")
    cell = shared_kernel.submit(CELL, allow_stdin=True)
    for text in ("what?", "hm"):
        shared_kernel.answer(text)
    assert "'hm' is not an answer." in shared_kernel.answer("1")["prompt"]
    assert shared_kernel.finish(cell).check().stdout == "went on 1\n"


@pytest.mark.parametrize("code", [CELL, "def f():\n    %tool read .env\nf()\nprint('went on', 1)"])
def test_a_click_beats_the_open_box_and_its_late_answer_is_dropped(shared_kernel: Kernel, code: str) -> None:
    cell = shared_kernel.submit(code, allow_stdin=True)
    (part,) = acts.asking(shared_kernel, cell=cell)
    shared_kernel.pump(lambda: bool(shared_kernel.inputs), 8)
    clicked = time.monotonic()
    acts.click(shared_kernel, part, "once")
    assert shared_kernel.finish(cell).check().stdout == "went on 1\n"
    assert time.monotonic() - clicked < 2
    shared_kernel.run("current().broker.has_page = False; current().broker.silent_cards = 1")
    # The person only now answers the box that is still open: a no, to nothing.
    shared_kernel.answer("n")
    second = shared_kernel.submit(CELL, allow_stdin=True)
    shared_kernel.answer("1")
    assert shared_kernel.finish(second).check().stdout == "went on 1\n"
    assert not shared_kernel.inputs


def test_several_asks_come_to_the_box_one_after_another(shared_kernel: Kernel) -> None:
    shared_kernel.run("current().broker.silent_cards = 1\npathlib.Path('b.env').write_text('A=1')")
    code = (
        "async def f(name):\n    r = %tool read --from name\n    return r\n"
        "a, b = await asyncio.gather(f('.env'), f('b.env'))\nprint('went on', (a.output + b.output).count('A=1'))"
    )
    cell = shared_kernel.submit(code, allow_stdin=True)
    prompts = [shared_kernel.answer("1")["prompt"] for _ in range(2)]
    assert shared_kernel.finish(cell).check().stdout == "went on 2\n"
    assert sorted("b.env" in p for p in prompts) == [False, True]


def test_an_answered_request_is_not_shown_again_while_the_engine_is_slow(shared_kernel: Kernel) -> None:
    shared_kernel.run(
        "current().broker.silent_cards = 1\npathlib.Path('b.env').write_text('A=1')\n"
        "import threading, time\n"
        "def slow(loop=current().workspace.loop, until=time.monotonic() + 8):\n"
        "    while time.monotonic() < until and not over:\n"
        "        loop.call_soon_threadsafe(time.sleep, 0.2)\n"
        "        time.sleep(0.2)\n"
        "over = []"
    )
    code = (
        "async def f(name):\n    r = %tool read --from name\n    return r\n"
        "threading.Thread(target=slow).start()\n"
        "a, b = await asyncio.gather(f('.env'), f('b.env'))\nover.append(1)\n"
        "print('went on', (a.output + b.output).count('A=1'))"
    )
    cell = shared_kernel.submit(code, allow_stdin=True)
    prompts = [shared_kernel.answer("1")["prompt"] for _ in range(2)]
    assert shared_kernel.finish(cell).check().stdout == "went on 2\n"
    assert sorted("b.env" in p for p in prompts) == [False, True]


def test_input_works_beside_a_waiting_call(shared_kernel: Kernel) -> None:
    """A cell's own ``input()`` after a call that asked: it gets its own answer."""
    shared_kernel.run("current().broker.silent_cards = 1")
    cell = shared_kernel.submit(CELL + "\nprint(input('name? '))", allow_stdin=True)
    shared_kernel.answer("1")
    assert shared_kernel.answer("Ada")["prompt"] == "name? "
    assert shared_kernel.finish(cell).check().stdout == "went on 1\nAda\n"


def test_nobody_there_is_refused_at_once(shared_kernel: Kernel) -> None:
    for code in (CELL, "def f():\n    %tool read .env\nf()"):
        cell = shared_kernel.execute(code, allow_stdin=False)
        print(f"MEASURED policy {cell.elapsed:.3f}")
        assert cell.error is not None
        assert cell.error.startswith("PermissionRejectedError: read needs approval for ")
        assert "%permissions allow read" in cell.error
        assert "opencode.json" in cell.error
        assert "OPENCODE_JUPYTER_ON_ASK=allow" in cell.error
        assert cell.elapsed < 1
        shown = cell.contents("display_data", "update_display_data")
        assert not any("widget-view" in mime for d in shown for mime in d["data"])
    cell = shared_kernel.execute(
        f"try:\n    {acts.SECRET}\nexcept Exception as e:\n    print(type(e).__name__)", allow_stdin=False
    )
    assert cell.check().stdout == "PermissionRejectedError\n"
    assert shared_kernel.run("6 * 7").result == "42"


def test_an_open_page_counts_as_a_person_where_cells_take_no_input(shared_kernel: Kernel) -> None:
    """jupyter-server-documents runs the cells of an open page with ``allow_stdin=False``."""
    page = {"comm_id": "", "data": {"kind": "panel", "what": "asks"}}
    shared_kernel.request("control", "opencode_jupyter", page)
    cell = shared_kernel.submit(CELL, allow_stdin=False)
    (part,) = acts.asking(shared_kernel, cell=cell)
    acts.click(shared_kernel, part, "once", route="own")
    assert shared_kernel.finish(cell).check().stdout == "went on 1\n"
    assert not shared_kernel.inputs
    doctor = shared_kernel.execute("%tools doctor", allow_stdin=False).check()
    assert "probably jupyter-server-documents" in str(doctor.contents("execute_result"))
    # the page has been closed: neither a card nor the panel reports
    cell = shared_kernel.execute(CELL, allow_stdin=False)
    assert cell.error is not None
    assert cell.error.startswith("PermissionRejectedError: read needs approval for ")
    assert 1.9 < cell.elapsed < 4
    acts.settled(shared_kernel)


def test_what_the_error_says_helps(shared_kernel: Kernel) -> None:
    cell = shared_kernel.execute(CELL, allow_stdin=False)
    assert cell.error is not None
    line = cell.error.split("or %permissions ", 1)[1].split(", or ", 1)[0]
    shared_kernel.run(f"%permissions {line}")
    assert shared_kernel.execute(CELL, allow_stdin=False).check().stdout == "went on 1\n"
    shared_kernel.run("current().workspace.rules.clear()")
    assert shared_kernel.execute(CELL, allow_stdin=False).error is not None


def test_policy_allow(shared_kernel: Kernel) -> None:
    shared_kernel.run("os.environ['OPENCODE_JUPYTER_ON_ASK'] = 'allow'")
    assert shared_kernel.execute(CELL, allow_stdin=False).check().stdout == "went on 1\n"
    shared_kernel.run("del os.environ['OPENCODE_JUPYTER_ON_ASK']\n%config ToolMagics.on_ask = 'allow'")
    assert shared_kernel.execute(CELL, allow_stdin=False).check().stdout == "went on 1\n"
    shared_kernel.run("%config ToolMagics.on_ask = 'deny'")
    assert shared_kernel.execute(CELL, allow_stdin=False).error is not None


def test_several_at_once_with_nobody_there(shared_kernel: Kernel) -> None:
    code = (
        "async def f():\n    r = %tool read .env\n    return r\n"
        "print([type(e).__name__ for e in await asyncio.gather(*[f() for _ in range(5)], return_exceptions=True)])"
    )
    cell = shared_kernel.execute(code, allow_stdin=False)
    assert cell.check().stdout == str(["PermissionRejectedError"] * 5) + "\n"
    assert cell.elapsed < 1.5
