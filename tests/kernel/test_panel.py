"""The panels' requests on the control channel, while the kernel is blocked: what waits is listed, answered, changed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.kernel import acts
from tests.support.kernels import Execution, Kernel

pytestmark = acts.EVERY_RELEASE

TYPE = "opencode_jupyter"
IN_DEF = """
def blocked():
    return get_ipython().run_line_magic("tool", {line!r})
print(blocked().output)
"""
BATCH = "def f():\n    r = %tool batch --from both\n    return r\nprint(f().title)"
SETUP = """
one = {'questions': [{'question': 'Which database?', 'header': 'DB', 'options': [
    {'label': 'SQLite', 'description': 'a file'}, {'label': 'PostgreSQL', 'description': 'a server'}]}]}
both = {'tool_calls': [{'tool': 'read', 'parameters': {'filePath': '.env'}}, {'tool': 'question', 'parameters': one}]}
_ = pathlib.Path('.env.two').write_text('B=2')
"""
BOUND = 0.5
"""Seconds from an answer to the end of the cell that it frees."""


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> None:
    acts.prepare_once(shared_kernel, SETUP, "%tool glob *.none")


def panel(kernel: Kernel, what: str, **more: Any) -> dict[str, Any]:
    """What a page's panel asks for, by the control channel."""
    data = {"kind": "panel", "what": what, **more}
    return kernel.request("control", TYPE, {"comm_id": "", "data": data})


def say(kernel: Kernel, waiting: dict[str, Any], kind: str, **more: Any) -> None:
    """Answer what an entry of the panel asks, as the panel does."""
    asked = waiting["card"]["ui"].get("ask") or waiting["card"]["ui"]["question"]
    content = {"kind": kind, "id": asked["id"], "digest": asked["digest"], **more}
    kernel.send("control", TYPE, {"comm_id": waiting["commID"], "data": content})


def listed(kernel: Kernel, cell: Execution, count: int = 1) -> list[dict[str, Any]]:
    """What the panel lists, as soon as it lists so many."""
    end = time.monotonic() + 10
    while len(found := panel(kernel, "asks")["asks"]) < count:
        assert not cell.done, cell.error
        assert time.monotonic() < end, found
        kernel.idle_for(0.02)
    return list(found)


def test_an_ask_in_a_blocked_kernel_is_answered_within_the_bound(shared_kernel: Kernel) -> None:
    times = []
    for _ in range(5):
        cell = shared_kernel.submit(IN_DEF.format(line="read .env"))
        [waiting] = listed(shared_kernel, cell)
        assert (waiting["card"]["tool"], waiting["id"]) == ("read", waiting["card"]["ui"]["ask"]["id"])
        assert waiting["key"] == waiting["card"]["callID"] == waiting["callID"]
        began = time.monotonic()
        say(shared_kernel, waiting, "reply", reply="once")
        assert "A=1" in shared_kernel.finish(cell, 5).check().stdout
        times.append(time.monotonic() - began)
        assert panel(shared_kernel, "asks") == {"asks": []}
    print("seconds from the answer to the cell's end:", *(f"{one:.3f}" for one in times))
    assert min(times) < BOUND


def test_what_is_not_the_ask_answers_nothing(shared_kernel: Kernel) -> None:
    cell = shared_kernel.submit(IN_DEF.format(line="read .env"))
    [waiting] = listed(shared_kernel, cell)
    ask = waiting["card"]["ui"]["ask"]
    other = {**waiting, "card": {"ui": {"ask": {"id": ask["id"], "digest": "0" * 16}}}}
    say(shared_kernel, other, "reply", reply="once")
    assert "must be one JSON object" in panel(shared_kernel, "revise", id=ask["id"], input=[1])["error"]
    assert "answered already" in panel(shared_kernel, "revise", id="per_x", digest="", input={"filePath": "a"})["error"]
    stale = panel(shared_kernel, "revise", id=ask["id"], digest="0" * 16, input={"filePath": "a"})
    assert "answered already" in stale["error"]
    unfit = panel(shared_kernel, "revise", id=ask["id"], digest=ask["digest"], input={"filePth": "a"})
    assert "filePath" in unfit["error"] and "expected schema" not in unfit["error"]
    assert "another version" in panel(shared_kernel, "tea")["error"]
    assert [one["id"] for one in listed(shared_kernel, cell)] == [ask["id"]]
    say(shared_kernel, waiting, "reply", reply="reject", message="not now")
    shared_kernel.finish(cell, 5)
    assert cell.error is not None
    assert "not now" in cell.error


def test_changed_arguments_are_asked_anew(shared_kernel: Kernel) -> None:
    cell = shared_kernel.submit(IN_DEF.format(line="read .env"))
    [waiting] = listed(shared_kernel, cell)
    ask = waiting["card"]["ui"]["ask"]
    revised = panel(shared_kernel, "revise", id=ask["id"], digest=ask["digest"], input={"filePath": ".env.two"})
    assert "error" not in revised
    end = time.monotonic() + 10
    while (again := listed(shared_kernel, cell))[0]["id"] == ask["id"]:
        assert time.monotonic() < end
    assert again[0]["card"]["state"]["input"] == {"filePath": ".env.two"}
    say(shared_kernel, waiting, "reply", reply="once")  # the first ask is over
    assert len(listed(shared_kernel, cell)) == 1
    say(shared_kernel, again[0], "reply", reply="once")
    assert "B=2" in shared_kernel.finish(cell, 5).check().stdout


def test_stop_ends_what_waits_and_what_runs(shared_kernel: Kernel) -> None:
    for line in ("read .env", "bash sleep 600"):
        cell = shared_kernel.submit(IN_DEF.format(line=line))
        if line.startswith("read"):
            listed(shared_kernel, cell)
        else:
            shared_kernel.wait_card("running")
        began = time.monotonic()
        assert panel(shared_kernel, "stop") == {"stopped": 1}
        shared_kernel.finish(cell, 5)
        assert time.monotonic() - began < 3
        assert cell.error is not None
        assert cell.error.startswith("ToolAbortedError")
    assert panel(shared_kernel, "stop") == {"stopped": 0}


@pytest.mark.parametrize("order", [("ask", "question"), ("question", "ask")], ids="-".join)
def test_an_ask_and_a_question_of_one_batch_in_either_order(shared_kernel: Kernel, order: tuple[str, str]) -> None:
    cell = shared_kernel.submit(BATCH)
    found = listed(shared_kernel, cell, 2)
    assert len({one["key"] for one in found}) == 1  # both stand in the batch's card
    waiting = {name: one for one in found for name in order if one["card"]["ui"].get(name)}
    answers: dict[str, tuple[str, dict[str, Any]]] = {
        "ask": ("reply", {"reply": "once"}),
        "question": ("answer", {"answers": [["SQLite"]]}),
    }
    for name, left in zip(order, (1, 0), strict=True):
        kind, more = answers[name]
        say(shared_kernel, waiting[name], kind, **more)
        end = time.monotonic() + 10
        while len(panel(shared_kernel, "asks")["asks"]) != left:
            assert time.monotonic() < end
            shared_kernel.idle_for(0.02)
    assert "2/2 successful" in shared_kernel.finish(cell, 5).check().stdout


def test_the_calls_come_whole_and_then_what_changed(shared_kernel: Kernel) -> None:
    first = panel(shared_kernel, "calls", since=0)
    assert {"calls", "since", "sessions", "now"} <= first.keys()
    cell = shared_kernel.submit(BATCH)
    found = listed(shared_kernel, cell, 2)
    end = time.monotonic() + 10
    while len((going := panel(shared_kernel, "calls", since=first["since"]))["calls"]) < 3:
        assert time.monotonic() < end, going
    batch, *inside = going["calls"]
    assert batch["title"] == f"{len(inside)} calls" and all("given" not in call for call in going["calls"])
    assert (batch["tool"], batch["state"], batch["parent"], batch["end"]) == ("batch", "running", None, None)
    assert {one["parent"] for one in inside} == {batch["id"]}
    assert sorted(one["tool"] for one in inside) == ["question", "read"]
    assert batch["session"] in going["sessions"]
    since = {one["tool"]: one["waits"] for one in inside}
    assert all(len(waits) == 1 and 0 < waits[0][0] <= going["now"] and waits[0][1] is None for waits in since.values())
    for one in found:
        kind, more = ("reply", {"reply": "once"}) if one["card"]["ui"].get("ask") else ("dismiss", {})
        say(shared_kernel, one, kind, **more)
    shared_kernel.finish(cell, 5)
    done = panel(shared_kernel, "calls", since=going["since"])
    while any(one["end"] is None for one in done["calls"]):
        assert time.monotonic() < end + 10, done
        done = panel(shared_kernel, "calls", since=going["since"])
    by_tool = {one["tool"]: one for one in done["calls"]}
    assert {name: one["state"] for name, one in by_tool.items()} == {
        "batch": "completed",
        "read": "completed",
        "question": "error",
    }
    for tool in ("read", "question"):
        [[begin, ended]] = by_tool[tool]["waits"]
        assert 0 < ended - begin <= by_tool[tool]["waited"] + 1
    assert panel(shared_kernel, "calls", since=done["since"])["calls"] == []
