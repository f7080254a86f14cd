"""How a turn is streamed: pieces, their order, pace, and stopping."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.events import CallDelta, CallEnd, CallStart, TextDelta, TextEnd, TextStart
from opencode_jupyter.agent.scripted import ScriptedModel, call, say, thought
from opencode_jupyter.agent.scripted.answers import Call
from opencode_jupyter.agent.scripted.script_conversation import CallResult
from opencode_jupyter.agent.scripted.scrub import escape
from opencode_jupyter.agent.scripted.streaming import (
    MOST_PIECES,
    SPEED_VARIABLE,
    call_ids,
    events,
    json_pieces,
    split_words,
)
from opencode_jupyter.agent.scripted.templates import check_templates, fill, result_values
from tests.support.script_player import Talk


@given(st.text())
def test_words_joined_are_the_text(text: str) -> None:
    pieces = split_words(text)
    assert "".join(pieces) == text
    assert all(pieces) and len(pieces) <= MOST_PIECES
    assert pieces == split_words(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_pieces_of_json_joined_are_the_json(value: object) -> None:
    text = json.dumps(value)
    pieces = json_pieces(text)
    assert "".join(pieces) == text and len(pieces) <= MOST_PIECES


def test_long_texts_come_in_a_bounded_number_of_pieces() -> None:
    assert len(split_words("word " * 100_000)) <= MOST_PIECES
    assert len(json_pieces("x" * 1_000_000)) <= MOST_PIECES
    assert split_words("a bit  of\ntext") == ["a ", "bit  ", "of\n", "text"]


def test_events_of_a_turn() -> None:
    got = list(events(say("one two", call("read", filePath="a.txt")), ["id1"]))
    assert got[:4] == [TextStart(0), TextDelta(0, "one "), TextDelta(0, "two"), TextEnd(0)]
    assert got[4] == CallStart(1, "id1", "read")
    assert got[-1] == CallEnd(1, "id1", "read", '{"filePath": "a.txt"}')
    assert "".join(event.text for event in got if isinstance(event, CallDelta)) == '{"filePath": "a.txt"}'
    cut = list(events(say(thought("a b c d"), cut=True), []))
    assert [type(event).__name__ for event in cut] == ["ReasoningStart", "ReasoningDelta", "ReasoningDelta"]


@given(
    st.lists(st.sampled_from(["", "x", "call_1_1", "call_1_2", "call_1_2_"])),
    st.sets(st.sampled_from(["x", "call_1_1"])),
)
def test_ids_are_never_given_twice(requested: list[str], used: set[str]) -> None:
    given_ids = call_ids(tuple(Call("t", {}, id) for id in requested), used, 1)
    assert len(set(given_ids)) == len(requested) and not set(given_ids) & used


# ------------------------------------------------------------------ pace


@pytest.mark.anyio
async def test_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SPEED_VARIABLE, raising=False)

    waited: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        await real(0)

    async def pause(model: ScriptedModel) -> float:
        waited.clear()
        with monkeypatch.context() as patched:
            patched.setattr(asyncio, "sleep", sleep)
            await Talk(model).prompt("Go")
        return sum(waited)

    ten = "word " * 10
    assert await pause(ScriptedModel([ten], speed=20)) == pytest.approx(0.2)
    assert await pause(ScriptedModel([ten], speed=0)) == 0
    assert await pause(ScriptedModel([say(ten, delay=30)], speed=0)) == 0
    assert await pause(ScriptedModel([say("a", delay=0.3)], speed=1)) == pytest.approx(0.301)
    # a long text is streamed faster: 100 pieces' time is all it takes
    assert await pause(ScriptedModel(["word " * 5000], speed=2)) == pytest.approx(0.2)
    monkeypatch.setenv(SPEED_VARIABLE, "0")
    assert await pause(ScriptedModel([ten], speed=1000)) == 0
    monkeypatch.setenv(SPEED_VARIABLE, "quick")
    with pytest.raises(ModelError, match="must be milliseconds, 0 or more, not 'quick'"):
        await pause(ScriptedModel([ten]))


@pytest.mark.anyio
async def test_it_stops_at_once_and_leaves_the_loop_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SPEED_VARIABLE, raising=False)
    talk = Talk(ScriptedModel(["word " * 100], speed=1000))
    talk.say("Go")
    task = asyncio.create_task(talk.ask())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # without waiting the loop still gets its turn in the middle
    talk = Talk(ScriptedModel(["word " * 150], speed=0))
    talk.say("Go")
    count = 0
    ticks: list[int] = []
    asyncio.get_running_loop().call_soon(lambda: ticks.append(count))
    async for _ in talk.model.stream(talk.request()):
        count += 1
    assert ticks and ticks[0] < count


# ------------------------------------------------------------------ templates

RESULTS = [CallResult("read", "one\ntwo\n", "completed", "c1", {"filePath": "a"}), CallResult("bash", "12", "failed")]
VALUES = {"prompt": "Make it", "prompt.number": "2", "agent": "build", **result_values(RESULTS)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain { text }", "plain { text }"),
        ("{{result}}", "one\ntwo\n"),
        ("a {{ result.1 }} b", "a 12 b"),
        ("{{result.1.outcome}} {{result.tool}} {{result.0.output}}", "failed read one\ntwo\n"),
        ("{{prompt}} {{prompt.number}} {{agent}}", "Make it 2 build"),
        ("\\{{result}} and {{agent}}", "{{result}} and build"),
        ("\\\\{{x", "\\{{x"),
    ],
)
def test_templates(text: str, value: str) -> None:
    check_templates(text)
    assert fill(text, VALUES) == value
    assert fill({"a": [text, 5, None]}, VALUES) == {"a": [value, 5, None]}


def test_templates_without_a_value() -> None:
    with pytest.raises(ValueError, match=r"\{\{result\.7\}\}: the last turn's calls gave no such result"):
        fill("{{result.7}}", VALUES)
    assert json.loads(fill('{"a": "{{result}}"}', VALUES, json_string=True)) == {"a": "one\ntwo\n"}


@given(st.text(alphabet="{}\\ax \n"))
def test_what_is_escaped_comes_out_as_it_was(text: str) -> None:
    escaped = escape(text)
    check_templates([escaped])
    assert fill(escaped, VALUES) == text
    assert fill(escaped, VALUES, json_string=True) == text
    assert fill([escaped], VALUES) == [text]
