"""Pages of whole outputs come on the control channel, from a busy kernel too; nothing answers once it is unloaded."""

from __future__ import annotations

from tests.kernel.acts import LOAD
from tests.support.kernels import CARD_MIME, Kernel

TYPE = "opencode_jupyter"


def test_pages_while_a_cell_blocks(kernel: Kernel) -> None:
    kernel.run(LOAD)
    kernel.run("%tool bash seq 1 30000")
    shown = kernel.wait_display(lambda data: CARD_MIME in data)
    cut = shown[CARD_MIME]["ui"]["spill"]
    assert cut["lines"] == 30000
    assert shown[CARD_MIME]["state"]["metadata"]["lines"] == 30000
    assert "30,000 lines" in shown["text/plain"] and "30,000 lines" in shown["text/html"]
    busy = kernel.submit("print('on'); __import__('time').sleep(2)")
    kernel.pump(lambda: "on" in busy.stdout)
    asked = {"comm_id": "", "data": {"kind": "page", "path": cut["path"], "line": cut["line"], "count": 3}}
    page = kernel.request("control", TYPE, asked)
    assert not busy.done
    first = cut["line"]
    assert page["lines"] == [str(first), str(first + 1), str(first + 2)]
    asked["data"] = {"kind": "page", "path": "/etc/passwd"}
    assert "only full outputs" in kernel.request("control", TYPE, asked)["error"]
    kernel.finish(busy)
    kernel.run("%unload_ext opencode_jupyter")
    request = kernel.send("control", TYPE, asked)
    assert not kernel.pump(lambda: request in kernel.replies, 1, strict=False)


def test_lines_are_completed_while_a_cell_blocks(kernel: Kernel) -> None:
    kernel.run(LOAD)
    kernel.run("%tool glob x")
    asked = {"comm_id": "", "data": {"kind": "complete", "code": "%tool re", "cursor_pos": 8}}
    explained = {"comm_id": "", "data": {"kind": "help", "code": "%tool read", "cursor_pos": 8}}
    for blocking in ("__import__('time').sleep(3)", "%tool bash sleep 3", "while time.monotonic() < end: pass"):
        busy = kernel.submit(f"import time; end = time.monotonic() + 3; print('on')\n{blocking}")
        kernel.pump(lambda busy=busy: "on" in busy.stdout)
        found = kernel.request("control", TYPE, asked)
        while found.get("late"):  # the first one imports what answers
            found = kernel.request("control", TYPE, asked)
        assert [(one["text"], one["type"]) for one in found["matches"]] == [("read", "tool")]
        assert found["matches"][0]["help"]["description"]
        assert (found["start"], found["end"]) == (6, 8)
        told = kernel.request("control", TYPE, explained)
        assert told.get("name") == "read" or told.get("late")
        assert not busy.done
        kernel.finish(busy)
