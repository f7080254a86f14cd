"""%%agent in a kernel: ended at every point at once, with a session that goes on; asks; the user's variables."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kernel import acts
from tests.support.kernels import WIDGET_MIME, Execution, Kernel
from tests.support.model_servers.openai import ScriptedServer

RUN_MIME = "application/vnd.opencode.run.v1+json"
BOUND = 2.0
"""Seconds until the cell is over; generous, for a loaded machine. What is aimed at is 1."""
SLEEP = "707070.5"
BASH = ["bash", {"command": f"sleep {SLEEP}", "description": "Sleeps"}]
TASK = ["task", {"description": "Look", "prompt": "look around", "subagent_type": "general"}]
POINTS: dict[str, list[dict[str, Any]]] = {
    "request sent": [{"text": "never", "wait": 600}],
    "text streaming": [{"text": "some words " * 20, "hold": 6}],
    "arguments streaming": [{"calls": [["write", {"filePath": "a.txt", "content": "x" * 500}]], "hold": 8}],
    "ask pending": [{"text": "I read it.", "calls": [["read", {"filePath": ".env"}]]}],
    "tool running": [{"calls": [BASH]}],
    "child session running": [{"calls": [TASK]}, {"text": "in the child " * 20, "hold": 6}],
}


class Talk:
    """A kernel with the extension, whose model is a script that each test sets."""

    def __init__(self, kernel: Kernel, server: ScriptedServer) -> None:
        self.kernel, self.server = kernel, server

    def script(self, *turns: dict[str, Any]) -> None:
        self.server.turns = list(turns)
        self.server._number = 0
        self.server.requests.clear()

    def ask(self, text: str = "Go.", options: str = "") -> Execution:
        return self.kernel.submit(f"%%agent {options}\n{text}")

    def runs(self) -> list[dict[str, Any]]:
        """The settled runs, in order."""
        return [d[RUN_MIME] for d in self.kernel.displays.values() if RUN_MIME in d and WIDGET_MIME not in d]

    def live(self) -> dict[str, Any] | None:
        """The state of the live run, brought up to date as a page does."""
        found = next((s for s in self.kernel.comms.values() if s.get("run")), None)
        return found["run"] if found is not None else None

    def items(self) -> list[dict[str, Any]]:
        """The live run's items, from its first state and the messages since."""
        comm = next((c for c, s in self.kernel.comms.items() if s.get("run")), None)
        if comm is None:
            return []
        items = {i: dict(item) for i, item in enumerate(self.kernel.comms[comm]["run"]["items"])}
        for sender, content in self.kernel.custom:
            if sender != comm:
                continue
            if content["kind"] == "whole":
                items = {i: dict(item) for i, item in enumerate(content["run"]["items"])}
                continue
            items.update({i: dict(item) for i, item in content.get("items", [])})
            for i, offset, text in content.get("deltas", []):
                if len(items[i]["text"]) == offset:
                    items[i]["text"] += text
        return [items[i] for i in sorted(items)]

    def call(self, status: str, tool: str) -> bool:
        return any(
            i["kind"] == "call" and i["part"]["tool"] == tool and i["part"]["state"]["status"] == status
            for i in self.items()
        )

    def asks(self) -> list[dict[str, Any]]:
        return [i["part"]["ui"]["ask"] for i in self.items() if i["kind"] == "call" and i["part"]["ui"].get("ask")]

    def send(self, content: dict[str, Any]) -> None:
        comm = next(c for c, s in self.kernel.comms.items() if s.get("run"))
        acts.send(self.kernel, comm, content, "own")

    def answer(self, reply: str, message: str | None = None) -> None:
        (ask,) = self.asks()
        self.send({"kind": "reply", "id": ask["id"], "digest": ask["digest"], "reply": reply, "message": message})


@pytest.fixture(scope="module")
def server(version: str) -> Iterator[ScriptedServer]:
    """The model service of a module's kernel."""
    with ScriptedServer([], side={"text": "A title"}) as running:
        yield running


@pytest.fixture
def talk(shared_kernel: Kernel, server: ScriptedServer) -> Talk:
    if not hasattr(shared_kernel, "test_ready"):
        work = Path(shared_kernel.run("import os; print(os.getcwd())").stdout.strip())
        options = {"baseURL": server.url, "apiKey": "none"}
        entry = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m": {}}}
        rules = {
            "bash": "allow",
            "task": "allow",
            "edit": "allow",
            "python": "allow",
            "read": {"*": "allow", ".env": "ask"},
        }
        config = {
            "model": "loop/m",
            "provider": {"loop": entry},
            "permission": rules,
            "experimental": {"batch_tool": True},
        }
        (work / "opencode.json").write_text(json.dumps(config))
        acts.prepare(shared_kernel)
        shared_kernel.run("_ = %tools trust --project")
        shared_kernel.test_ready = True  # type: ignore[attr-defined]
    return Talk(shared_kernel, server)


def reached(talk: Talk, point: str) -> bool:
    """Whether the run is at that point."""
    match point:
        case "request sent":
            return bool(talk.server.requests)
        case "text streaming":
            return any(i["kind"] == "text" and "words" in i["text"] for i in talk.items())
        case "arguments streaming":
            return talk.call("pending", "write")
        case "ask pending":
            return bool(talk.asks())
        case "tool running":
            return bool(acts.processes(f"sleep\0{SLEEP}"))
        case _:
            return len(talk.server.requests) > 1 and talk.server.requests[1].began.is_set()


@pytest.mark.parametrize("how", ["interrupt", "stop"])
@pytest.mark.parametrize("point", POINTS)
def test_ended_at_every_point(talk: Talk, point: str, how: str) -> None:
    kernel = talk.kernel
    talk.script(*POINTS[point])
    before = len(talk.runs())
    cell = talk.ask(options="--new")
    kernel.pump(lambda: reached(talk, point) and talk.live() is not None, 15, f"the point {point}")
    kernel.idle_for(0.3)
    start = time.monotonic()
    if how == "interrupt":
        kernel.interrupt()
    else:
        talk.send({"kind": "stop", "callID": ""})
    kernel.finish(cell, 8)
    took = time.monotonic() - start
    acts.wait_processes(f"sleep\0{SLEEP}", False, BOUND)
    print(f"MEASURED {point} {how} {took:.3f}")
    assert took < BOUND
    assert cell.error is not None
    assert cell.error.startswith("KeyboardInterrupt" if how == "interrupt" else "ToolAbortedError")
    assert cell.contents("error") == []
    acts.settled(kernel)
    run = talk.runs()[before]
    assert run["status"] == "stopped"
    assert run["outcome"] == ("interrupted" if how == "interrupt" else "stopped")
    assert run["end"]["text"].startswith("Interrupted by you.")
    for item in run["items"]:
        if item["kind"] == "call":
            assert item["part"]["ui"]["outcome"] in ("interrupted", "stopped")
    for request in talk.server.requests:
        assert request.answered.wait(BOUND) or request.gone.wait(BOUND), "a connection was left open"
    talk.script({"text": "Here again."})
    after = kernel.finish(talk.ask("And now?", "-o r"), 20)
    assert after.error is None, after.error
    assert kernel.run("print(r.text)").stdout.strip() == "Here again."
    check_history(talk)


def check_history(talk: Talk) -> None:
    """What was sent last is a conversation that a provider takes: each call has its result, and no other has."""
    sent = talk.server.requests[-1].messages
    open_calls: list[str] = []
    for message in sent:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        for call in message.get("tool_calls") or ():
            json.loads(call["function"]["arguments"])
    assert not open_calls
    assert sent[-1] == {"role": "user", "content": "And now?"}


def test_an_ask_is_answered_on_the_card(talk: Talk) -> None:
    kernel = talk.kernel
    read = {"calls": [["read", {"filePath": ".env"}]]}
    talk.script({"text": "I read it.", **read}, {**read}, {"text": "It is A=1."})
    cell = talk.ask(options="--new -o r")
    for reply, word in (("reject", "not that one"), ("once", None)):
        kernel.pump(lambda: bool(talk.asks()), 15, "an ask")
        (waiting,) = [i["part"]["ui"] for i in talk.items() if i["kind"] == "call" and i["part"]["ui"].get("ask")]
        assert waiting["untouched"], "a page may say that nothing was run if the kernel ends now"
        talk.send({"kind": "hello"})
        talk.answer(reply, word)
        kernel.pump(lambda: not talk.asks(), 15, "the ask's end")
    kernel.finish(cell, 15).check()
    assert kernel.run("print([c.outcome for c in r.calls], r.text, r)").stdout.startswith(
        "['denied by you', 'completed'] It is A=1."
    )
    calls = [i["part"] for i in talk.runs()[-1]["items"] if i["kind"] == "call"]
    assert [c["ui"]["outcome"] for c in calls] == ["denied by you", "completed"]
    assert calls[0]["ui"]["decisions"][0]["message"] == "not that one"
    assert len([m for m in cell.messages if m["msg_type"] == "display_data"]) == 1, "one display for the whole run"
    assert not [m for m in cell.messages if m["msg_type"] == "execute_result"], "the answer is not shown twice"


def test_refused_without_a_word_the_run_ends(talk: Talk) -> None:
    kernel = talk.kernel
    talk.script({"calls": [["read", {"filePath": ".env"}]]})
    cell = talk.ask(options="--new -o r")
    kernel.pump(lambda: bool(talk.asks()), 15, "an ask")
    talk.answer("reject")
    kernel.finish(cell, 15).check()
    assert talk.runs()[-1]["status"] == "rejected"
    assert "denied" in talk.runs()[-1]["end"]["text"]
    assert kernel.run("print(r.ended)").stdout.strip() == "rejected"


def test_the_agent_works_on_the_users_variables(talk: Talk) -> None:
    kernel = talk.kernel
    kernel.run("prices = [3, 1, 2]")
    code = {"code": "prices.sort()\nimport threading\nprint(threading.current_thread() is threading.main_thread())"}
    inside = ["batch", {"tool_calls": [{"tool": "python", "parameters": {"code": "prices.append(9)"}}]}]
    talk.script({"calls": [["python", code]]}, {"calls": [inside]}, {"text": "Sorted {x}."})
    kernel.finish(talk.ask("Sort {prices}, {{x}}.", "--new -o r"), 20).check()
    assert kernel.run("print(prices)").stdout.strip() == "[1, 2, 3, 9]"
    assert talk.server.requests[0].messages[-1]["content"] == "Sort [3, 1, 2], {x}."
    assert "True" in talk.server.requests[1].messages[-1]["content"]
    children = [i for i in talk.runs()[-1]["items"] if i.get("parent")]
    assert [c["part"]["tool"] for c in children] == ["python"]


def test_in_a_function_and_in_the_background(talk: Talk) -> None:
    kernel = talk.kernel
    talk.script({"text": "one"}, {"text": "two"})
    function = "def f():\n    return get_ipython().run_cell_magic('agent', '--new', 'Go.')\nprint(f().text)"
    assert kernel.run(function).stdout.strip() == "one"
    kernel.run("%%agent --bg -o h\nGo on.")
    assert kernel.run("print(h.result(10).text, h.done())").stdout.strip() == "two True"
    acts.settled(kernel)


def test_nobody_is_there(talk: Talk) -> None:
    kernel = talk.kernel
    talk.script({"text": "I read it.", "calls": [["read", {"filePath": ".env"}]]}, {"text": "Then not."})
    kernel.run("nb = current(); nb.broker.has_page = False")
    cell = kernel.finish(kernel.submit("%%agent --new -o r\nGo.", allow_stdin=False), 20)
    assert cell.error is None, cell.error
    run = talk.runs()[-1]
    assert [i["part"]["ui"]["outcome"] for i in run["items"] if i["kind"] == "call"] == ["denied by policy"]


def test_what_the_model_could_not_do_is_said(talk: Talk) -> None:
    kernel = talk.kernel
    talk.script({"status": 401, "body": {"error": {"message": "Incorrect API key provided"}}})
    cell = kernel.finish(talk.ask(options="--new"), 20)
    assert cell.error is not None
    assert cell.error.startswith("ModelError")
    run = talk.runs()[-1]
    assert run["status"] == "failed"
    assert "Incorrect API key" in run["end"]["text"]
    trace = "\n".join((cell.reply or {}).get("traceback", []))
    assert "Traceback" not in trace
    assert trace.endswith("(see the card above)")
    kernel.run("current().broker.has_page = False")
    alone = kernel.finish(kernel.submit("%%agent --new\nGo.", allow_stdin=False), 20)
    whole = talk.runs()[-1]["end"]["text"]
    assert whole in "\n".join((alone.reply or {})["traceback"])
    assert whole not in trace
