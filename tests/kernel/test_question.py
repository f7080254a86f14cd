"""Questions reach a person, and their answers a busy kernel, by every way; also from calls inside a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kernel import acts
from tests.support.kernels import CARD_MIME, Execution, Kernel

SETUP = """
DB = {'question': 'Which database?', 'header': 'DB', 'options': [
    {'label': 'SQLite', 'description': 'a file'}, {'label': 'PostgreSQL', 'description': 'a server'}]}
EXTRAS = {'question': 'Which extras?', 'header': 'Extras', 'multiple': True, 'options': [
    {'label': 'CSV', 'description': ''}, {'label': 'Parquet', 'description': ''}]}
one, two = {'questions': [DB]}, {'questions': [DB, EXTRAS]}
both = {'tool_calls': [{'tool': 'read', 'parameters': {'filePath': '.env'}}, {'tool': 'question', 'parameters': one},
                       {'tool': 'glob', 'parameters': {'pattern': '*.env'}}]}
"""
ONE = "r = %tool question --from one\nprint(r.metadata['answers'])"
TWO = "r = %tool question --from two\nprint(r.metadata['answers'])"
IN_DEF = "def f():\n    r = %tool question --from one\n    return r\nprint(f().metadata['answers'])"
BATCH = "r = %tool batch --from both\nprint(r.title)"
BATCH_IN_DEF = "def f():\n    r = %tool batch --from both\n    return r\nprint(f().title)"


@pytest.fixture(autouse=True)
def _loaded(shared_kernel: Kernel) -> None:
    acts.prepare_once(shared_kernel, SETUP, "%tool glob *.none")
    shared_kernel.run("current().broker.has_page, current().broker.silent_cards = False, 0")


def all_parts(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts and those inside them."""
    return [p for part in parts for p in (part, *all_parts(part["ui"].get("children", [])))]


def waiting(kernel: Kernel, cell: Execution, count: int = 1) -> tuple[str, dict[str, Any]]:
    """Wait until calls of one card wait for a person, `count` in all: the card's comm, and what waits by field name."""

    def found() -> dict[str, Any]:
        parts = all_parts(acts.displayed(kernel))
        return {name: p["ui"][name] for p in parts for name in ("ask", "question") if p["ui"].get(name)}

    kernel.pump(lambda: len(found()) >= count or cell.done, 10, lambda: f"{count} to wait; there are {kernel.states()}")
    assert not cell.done, cell.error
    (part,) = acts.displayed(kernel)
    return acts.see(kernel, part), found()


def say(kernel: Kernel, comm: str, kind: str, asked: dict[str, Any], route: str = "shell", **more: Any) -> None:
    acts.send(kernel, comm, {"kind": kind, "id": asked["id"], "digest": asked["digest"], **more}, route)


def final(kernel: Kernel) -> dict[str, Any]:
    """The last settled card."""
    acts.settled(kernel)
    return dict([d[CARD_MIME] for d in kernel.displays.values() if CARD_MIME in d][-1])


@acts.EVERY_RELEASE
@pytest.mark.parametrize("code", [ONE, IN_DEF], ids=["await", "def"])
def test_answered_by_every_route(shared_kernel: Kernel, version: str, code: str) -> None:
    for route in acts.routes(version):
        cell = shared_kernel.submit(code)
        comm, asked = waiting(shared_kernel, cell)
        assert [q["header"] for q in asked["question"]["questions"]] == ["DB"]
        say(shared_kernel, comm, "answer", asked["question"], route, answers=[["my own"]])
        assert shared_kernel.finish(cell, 5).check().stdout == "[['my own']]\n"
        card = final(shared_kernel)
        assert card["ui"]["answered"][0]["answers"] == [["my own"]]
        assert "question" not in card["ui"]


@pytest.mark.parametrize("code", [ONE, IN_DEF], ids=["await", "def"])
def test_dismissed_and_stopped(shared_kernel: Kernel, code: str) -> None:
    for kind, error in (("dismiss", "QuestionRejectedError: The user dismissed"), ("stop", "ToolAbortedError")):
        cell = shared_kernel.submit(code)
        comm, asked = waiting(shared_kernel, cell)
        say(shared_kernel, comm, kind, asked["question"])
        shared_kernel.finish(cell, 5)
        assert cell.error is not None
        assert cell.error.startswith(error)
        assert final(shared_kernel)["ui"]["outcome"] == ("dismissed by you" if kind == "dismiss" else "stopped")
        assert shared_kernel.run("len(current().workspace.questions.pending())").result == "0"


@acts.EVERY_RELEASE
def test_an_interrupt_withdraws_the_question(shared_kernel: Kernel) -> None:
    for code in (ONE, IN_DEF):
        cell = shared_kernel.submit(code)
        waiting(shared_kernel, cell)
        shared_kernel.interrupt()
        shared_kernel.finish(cell, 5)
        assert cell.error is not None
        assert cell.error.startswith("KeyboardInterrupt")
        assert final(shared_kernel)["ui"]["outcome"] == "interrupted"
        assert shared_kernel.run("len(current().workspace.questions.pending())").result == "0"


def test_stale_and_unfit_answers_are_none(shared_kernel: Kernel) -> None:
    cell = shared_kernel.submit(TWO)
    comm, asked = waiting(shared_kernel, cell)
    question = asked["question"]
    for content in (
        {"kind": "answer", "id": question["id"], "digest": "0" * 16, "answers": [["SQLite"]]},
        {"kind": "dismiss", "id": question["id"], "digest": "0" * 16},
        {"kind": "answer", "id": "que_other", "digest": question["digest"], "answers": [["SQLite"]]},
        {"kind": "answer", "id": question["id"], "digest": question["digest"], "answers": "SQLite"},
        {"kind": "answer", "id": question["id"], "digest": question["digest"], "answers": [[1]]},
        {"kind": "answer", "id": question["id"], "digest": question["digest"], "answers": [["a"], ["b"], ["c"]]},
        {"kind": "answer", "id": question["id"], "digest": question["digest"]},
        {"kind": "reply", "id": question["id"], "digest": question["digest"], "reply": "once"},
    ):
        acts.send(shared_kernel, comm, content, "shell")
        acts.send(shared_kernel, comm, content, "own")
    shared_kernel.idle_for(0.4)
    assert not cell.done
    say(shared_kernel, comm, "answer", question, answers=[[], ["CSV", "Parquet"]])
    assert shared_kernel.finish(cell, 5).check().stdout == "[[], ['CSV', 'Parquet']]\n"


@acts.EVERY_RELEASE
@pytest.mark.parametrize("code", [BATCH, BATCH_IN_DEF], ids=["await", "def"])
@pytest.mark.parametrize("order", [("ask", "question"), ("question", "ask")], ids="-".join)
def test_a_question_and_an_ask_of_one_batch_in_either_order(
    shared_kernel: Kernel, version: str, code: str, order: tuple[str, str]
) -> None:
    answers: dict[str, Callable[[str, dict[str, Any], str], None]] = {
        "ask": lambda comm, asked, route: say(shared_kernel, comm, "reply", asked, route, reply="once"),
        "question": lambda comm, asked, route: say(shared_kernel, comm, "answer", asked, route, answers=[["SQLite"]]),
    }
    for route in acts.routes(version):
        cell = shared_kernel.submit(code)
        comm, asked = waiting(shared_kernel, cell, 2)
        assert [asked[name]["position"][1] for name in order] == [2, 2]
        first, second = order
        answers[first](comm, asked[first], route)

        def left() -> set[str]:
            parts = all_parts(acts.displayed(shared_kernel))
            return {name for p in parts for name in order if p["ui"].get(name)}

        shared_kernel.pump(lambda wanted=second: left() == {wanted}, 5, "one answer to be taken")
        assert not cell.done
        answers[second](comm, asked[second], route)
        assert "3/3 successful" in shared_kernel.finish(cell, 5).check().stdout
        card = final(shared_kernel)
        assert [c["tool"] for c in card["ui"]["children"]] == ["read", "question", "glob"]
        assert {c["ui"]["outcome"] for c in card["ui"]["children"]} == {"completed"}
        assert card["ui"]["children"][1]["ui"]["answered"][0]["answers"] == [["SQLite"]]


def test_stop_one_call_of_a_batch(shared_kernel: Kernel) -> None:
    """The question is stopped and fails alone; a denial fails alone; the batch goes on."""
    cell = shared_kernel.submit(BATCH)
    comm, asked = waiting(shared_kernel, cell, 2)
    (parent,) = acts.displayed(shared_kernel)
    child = parent["ui"]["children"][1]
    acts.send(shared_kernel, comm, {"kind": "stop", "callID": child["callID"]}, "shell")
    say(shared_kernel, comm, "reply", asked["ask"], reply="reject", message="not that one")
    assert "1/3 successful" in shared_kernel.finish(cell, 5).check().stdout
    outcomes = [c["ui"]["outcome"] for c in final(shared_kernel)["ui"]["children"]]
    assert outcomes == ["denied by you", "stopped", "completed"]


def test_stop_the_batch_ends_what_waits_inside(shared_kernel: Kernel) -> None:
    cell = shared_kernel.submit(BATCH)
    comm, _ = waiting(shared_kernel, cell, 2)

    def inside() -> list[str]:
        (parent,) = acts.displayed(shared_kernel)
        return [c["state"]["status"] for c in parent["ui"]["children"]]

    shared_kernel.pump(lambda: inside() == ["running", "running", "completed"], 5, "glob to end")
    (parent,) = acts.displayed(shared_kernel)
    acts.send(shared_kernel, comm, {"kind": "stop", "callID": parent["callID"]}, "shell")
    shared_kernel.finish(cell, 5)
    assert cell.error is not None
    assert cell.error.startswith("ToolAbortedError")
    assert [c["ui"]["outcome"] for c in final(shared_kernel)["ui"]["children"]] == ["stopped", "stopped", "completed"]
    left = "len(current().workspace.questions.pending()) + len(current().workspace.permissions.pending())"
    assert shared_kernel.run(left).result == "0"


@acts.EVERY_RELEASE
def test_the_input_box_where_no_card_is_seen(shared_kernel: Kernel) -> None:
    shared_kernel.run("current().broker.silent_cards = 1")
    cell = shared_kernel.submit(TWO, allow_stdin=True)
    assert "[1] SQLite: a file\n  [2] PostgreSQL: a server\nA number" in shared_kernel.answer("2")["prompt"]
    assert shared_kernel.answer("1,2")["prompt"].startswith("[2 of 2] Extras: Which extras?")
    assert shared_kernel.finish(cell).check().stdout == "[['PostgreSQL'], ['CSV', 'Parquet']]\n"
    shared_kernel.run("current().broker.silent_cards = 1")
    cell = shared_kernel.submit(ONE, allow_stdin=True)
    shared_kernel.answer("")
    shared_kernel.finish(cell)
    assert cell.error is not None
    assert cell.error.startswith("QuestionRejectedError: The user dismissed this question")
    # A question and an ask of one batch come to the box one after the other.
    shared_kernel.run("current().broker.silent_cards = 1")
    cell = shared_kernel.submit(BATCH, allow_stdin=True)
    for _ in range(2):
        shared_kernel.answer("1")
    assert "3/3 successful" in shared_kernel.finish(cell).check().stdout


@acts.EVERY_RELEASE
@pytest.mark.parametrize("code", [BATCH, BATCH_IN_DEF], ids=["await", "def"])
def test_what_is_typed_into_an_old_box_answers_nothing_else(shared_kernel: Kernel, code: str) -> None:
    """The ask in the box is answered on its card; the next box is the question's, and the first one is still there."""
    shared_kernel.run("current().broker.silent_cards = 1")
    cell = shared_kernel.submit(code, allow_stdin=True)
    shared_kernel.pump(lambda: bool(shared_kernel.inputs), 10, "the box of the ask")
    old = shared_kernel.inputs.pop()
    comm, asked = waiting(shared_kernel, cell, 2)
    say(shared_kernel, comm, "reply", asked["ask"], "control", reply="once")
    shared_kernel.pump(lambda: bool(shared_kernel.inputs), 10, "the box of the question")
    stdin = shared_kernel.client.stdin_channel.socket
    shared_kernel.client.session.send(stdin, "input_reply", {"value": "2"}, parent=old)
    shared_kernel.idle_for(0.4)
    assert not cell.done
    assert "Which database?" in shared_kernel.answer("1")["prompt"]
    assert "3/3 successful" in shared_kernel.finish(cell).check().stdout
    assert final(shared_kernel)["ui"]["children"][1]["ui"]["answered"][0]["answers"] == [["SQLite"]]


def test_nobody_is_there(shared_kernel: Kernel) -> None:
    for code in (ONE, IN_DEF):
        cell = shared_kernel.execute(code, allow_stdin=False)
        assert cell.error is not None
        assert cell.error.startswith('QuestionRejectedError: Nobody can answer here: "Which database?"')
        assert cell.elapsed < 1.5
        assert final(shared_kernel)["ui"]["outcome"] == "unanswered"


def test_a_custom_tool_asks_from_a_loop_and_a_thread_of_its_own(shared_kernel: Kernel) -> None:
    shared_kernel.run(
        "from opencode_jupyter import tool, ToolContext\n"
        "@tool\nasync def choose(*, ctx: ToolContext) -> str:\n    'Choose.'\n"
        "    return str(await ctx.question([DB]))\n"
        "@tool\ndef choose_sync(*, ctx: ToolContext) -> str:\n    'Choose.'\n    return str(ctx.question_sync([DB]))"
    )
    for name in ("choose", "choose_sync"):
        cell = shared_kernel.submit(f"r = %tool {name}\nprint(r.output)")
        comm, asked = waiting(shared_kernel, cell)
        say(shared_kernel, comm, "answer", asked["question"], answers=[["SQLite"]])
        assert shared_kernel.finish(cell, 5).check().stdout == "[['SQLite']]\n"
