"""While a cell waits, what else the front end sends keeps its order; every card is settled."""

from __future__ import annotations

import re
import time

import pytest

from tests.kernel import acts
from tests.support.kernels import CARD_MIME, WIDGET_MIME, Kernel

pytestmark = acts.EVERY_RELEASE

BLOCKING = "def f():\n    r = %tool read .env\n    return r\nf()\nprint('first', time.monotonic_ns())"
AWAITING = "r = %tool read .env\nprint('first', time.monotonic_ns())"


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> None:
    acts.prepare_once(shared_kernel, "%tool glob *.none")


def stamp(text: str) -> int:
    """The time a cell printed."""
    found = re.search(r"\d{6,}", text)
    assert found, text
    return int(found.group())


@pytest.mark.parametrize("code", [AWAITING, BLOCKING], ids=["await", "def"])
def test_queued_cells_wait_their_turn(shared_kernel: Kernel, code: str) -> None:
    before = (shared_kernel.run("pass").reply or {})["execution_count"]
    first = shared_kernel.submit(code)
    (part,) = acts.asking(shared_kernel, cell=first)
    acts.see(shared_kernel, part)
    others = [shared_kernel.submit(f"print({i}, time.monotonic_ns())") for i in range(3)]
    shared_kernel.idle_for(0.5)
    assert not any(c.done or c.messages for c in others)
    acts.click(shared_kernel, part, "once")
    for cell in [first, *others]:
        shared_kernel.finish(cell).check()
    times = [stamp(c.stdout) for c in [first, *others]]
    assert times == sorted(times)
    counts = [c.reply["execution_count"] for c in [first, *others] if c.reply]
    assert counts == [before + 1, before + 2, before + 3, before + 4]
    history = shared_kernel.run("print(list(get_ipython().history_manager.input_hist_raw)[-5:-1])").stdout
    assert history.index("f()" if code is BLOCKING else "%tool") < history.index("print(0") < history.index("print(2")


@pytest.mark.parametrize("code", [AWAITING, BLOCKING], ids=["await", "def"])
def test_other_requests_are_answered_afterwards(shared_kernel: Kernel, code: str) -> None:
    first = shared_kernel.submit(code)
    (part,) = acts.asking(shared_kernel, cell=first)
    acts.see(shared_kernel, part)
    requests = [
        shared_kernel.send("shell", "is_complete_request", {"code": "for i in x:"}),
        shared_kernel.send("shell", "kernel_info_request", {}),
        shared_kernel.send("shell", "complete_request", {"code": "impor", "cursor_pos": 5}),
        shared_kernel.send(
            "shell", "history_request", {"hist_access_type": "tail", "n": 1, "output": False, "raw": True}
        ),
        shared_kernel.send("shell", "inspect_request", {"code": "print", "cursor_pos": 5, "detail_level": 0}),
        shared_kernel.send("shell", "comm_info_request", {}),
    ]
    control = shared_kernel.request("control", "kernel_info_request", {})
    assert control["status"] == "ok"
    shared_kernel.idle_for(0.3)
    assert not first.done
    acts.click(shared_kernel, part, "once")
    shared_kernel.finish(first).check()
    missing = lambda: [r for r in requests if r not in shared_kernel.replies]  # noqa: E731
    shared_kernel.pump(lambda: not missing(), 30, lambda: f"replies; missing {[requests.index(r) for r in missing()]}")
    answers = [shared_kernel.replies[r]["content"] for r in requests]
    assert answers[0]["status"] == "incomplete"
    assert all(a["status"] == "ok" for a in answers[1:])
    assert "import" in answers[2]["matches"]


def test_a_broken_message_harms_nothing(shared_kernel: Kernel) -> None:
    """Bytes that are no message, while a blocking cell reads its own socket (6.x) or the tap looks at them."""
    first = shared_kernel.submit(BLOCKING)
    (part,) = acts.asking(shared_kernel, cell=first)
    acts.see(shared_kernel, part)
    shared_kernel.client.shell_channel.socket.send_multipart([b"<IDS|MSG>", b"bad", b"{}", b"{}", b"{}", b"{}"])
    shared_kernel.client.shell_channel.socket.send_multipart([b"nonsense"])
    shared_kernel.idle_for(0.3)
    acts.click(shared_kernel, part, "once")
    shared_kernel.finish(first).check()
    assert shared_kernel.run("6 * 7").result == "42"


def test_an_error_skips_what_is_queued(shared_kernel: Kernel) -> None:
    """Run All stops at a refused call, as at any error."""
    for code in (AWAITING, BLOCKING):
        first = shared_kernel.submit(code)
        (part,) = acts.asking(shared_kernel, cell=first)
        acts.see(shared_kernel, part)
        second = shared_kernel.submit("print('must not run')")
        shared_kernel.idle_for(0.2)
        acts.click(shared_kernel, part, "reject")
        shared_kernel.finish(first)
        assert first.error is not None
        shared_kernel.pump(lambda cell=second: cell.reply is not None, 5)
        assert second.stdout == ""
        assert second.reply
        assert second.reply["status"] in ("aborted", "error")
        shared_kernel.idle_for(0.3)
        assert shared_kernel.run("6 * 7").result == "42"


@acts.NEWEST_ONLY
def test_fifty_calls_leave_fifty_settled_cards(shared_kernel: Kernel) -> None:
    shared_kernel.displays.clear()
    start = time.monotonic()
    quick = "for i in range(45):\n    r = %tool bash echo quick\n"
    slow = "for i in range(5):\n    r = %tool bash sleep 0.3\n"
    cell = shared_kernel.run(quick + slow, timeout=60)
    print(f"MEASURED fifty {time.monotonic() - start:.2f}")
    acts.settled(shared_kernel)
    final = list(shared_kernel.displays.values())
    assert len(final) == 50
    assert all(WIDGET_MIME not in d for d in final)
    assert all(d[CARD_MIME]["state"]["status"] == "completed" for d in final)
    opened = [m["content"]["comm_id"] for m in cell.messages if m["msg_type"] == "comm_open"]
    closed = [m["content"]["comm_id"] for m in cell.messages if m["msg_type"] == "comm_close"]
    assert sorted(opened) == sorted(closed)
    assert opened  # the slow ones went live
    # before a page has reported, a slow call's text is also displayed, for a console, without an id
    ids = [c["transient"]["display_id"] for c in cell.contents("display_data") if "display_id" in c["transient"]]
    assert len(set(ids)) == 50


@acts.NEWEST_ONLY
def test_fifty_calls_at_once(shared_kernel: Kernel) -> None:
    shared_kernel.displays.clear()
    code = (
        "async def f():\n    r = %tool bash sleep 0.3\n    return r\n"
        "print(len(await asyncio.gather(*[f() for _ in range(50)])))"
    )
    cell = shared_kernel.run(code, timeout=60)
    assert cell.stdout == "50\n"
    acts.settled(shared_kernel)
    assert sum(d[CARD_MIME]["state"]["status"] == "completed" for d in shared_kernel.displays.values()) == 50
