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
from opencode_jupyter.agent.scripted.parts import Call
from opencode_jupyter.agent.scripted.seen import Prompt, Result
from opencode_jupyter.agent.scripted.streaming import MOST_PIECES, VARIABLE, events, ids_for, json_pieces, words
from opencode_jupyter.agent.scripted.templates import (
    Scope,
    TemplateError,
    check,
    escape,
    expand,
    expand_json,
    expand_value,
)
from tests.support.script_player import Talk


@given(st.text())
def test_words_joined_are_the_text(text: str) -> None:
    pieces = words(text)
    assert "".join(pieces) == text
    assert all(pieces) and len(pieces) <= MOST_PIECES
    assert pieces == words(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_pieces_of_json_joined_are_the_json(value: object) -> None:
    text = json.dumps(value)
    pieces = json_pieces(text)
    assert "".join(pieces) == text and len(pieces) <= MOST_PIECES


def test_long_texts_come_in_a_bounded_number_of_pieces() -> None:
    assert len(words("word " * 100_000)) <= MOST_PIECES
    assert len(json_pieces("x" * 1_000_000)) <= MOST_PIECES
    assert words("a bit  of\ntext") == ["a ", "bit  ", "of\n", "text"]


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
def test_ids_are_never_given_twice(wanted: list[str], used: set[str]) -> None:
    given_ids = ids_for(tuple(Call("t", {}, id) for id in wanted), used, 1)
    assert len(set(given_ids)) == len(wanted) and not set(given_ids) & used


# ------------------------------------------------------------------ pace


@pytest.mark.anyio
async def test_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

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
    monkeypatch.setenv(VARIABLE, "0")
    assert await pause(ScriptedModel([ten], speed=1000)) == 0
    monkeypatch.setenv(VARIABLE, "quick")
    with pytest.raises(ModelError, match="must be milliseconds, 0 or more, not 'quick'"):
        await pause(ScriptedModel([ten]))


@pytest.mark.anyio
async def test_it_stops_at_once_and_leaves_the_loop_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
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
    seen = 0
    ticks: list[int] = []
    asyncio.get_running_loop().call_soon(lambda: ticks.append(seen))
    async for _ in talk.model.stream(talk.request()):
        seen += 1
    assert ticks and ticks[0] < seen


# ------------------------------------------------------------------ templates

SCOPE = Scope(
    Prompt(2, ("Make it",)),
    "build",
    "ses_1",
    "/work",
    "/home/jo",
    "jo",
    ("read", "bash"),
    [Result("read", "one\ntwo\n", "completed", "c1", {"filePath": "a"}), Result("bash", "12", "failed")],
    {"look": [Result("grep", "hit", "completed")]},
    {"name": "x", "data": {"list": [1, {"k": "v"}]}},
    3,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain { text }", "plain { text }"),
        ("{{result}}", "one\ntwo\n"),
        ("a {{ result.1 }} b", "a 12 b"),
        ("{{result.1.outcome}} {{result.tool}}", "failed read"),
        ("{{result.0.arguments.filePath}}", "a"),
        ("{{results.look}} {{results.look.0.tool}}", "hit grep"),
        ("{{prompt}} {{prompt.number}}", "Make it 2"),
        ("{{agent}} {{session}} {{directory}} {{home}} {{user}} {{round}}", "build ses_1 /work /home/jo jo 3"),
        ("{{tools}}", "read, bash"),
        ("{{name}}{{data.list.1.k}}", "xv"),
        ("{{result | trim | upper}}", "ONE\nTWO"),
        ("{{result | first_line}} {{result | last_line}} {{result | count_lines}}", "one two 2"),
        ("\\{{result}} and {{name}}", "{{result}} and x"),
        ("\\\\{{x", "\\{{x"),
        ("{{data}}", '{"list": [1, {"k": "v"}]}'),
    ],
)
def test_templates(text: str, value: str) -> None:
    assert expand(text, SCOPE) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{result.7}}", "the last turn's calls gave 2 results"),
        ("{{results.other}}", "no turn with the label other"),
        ("{{data.nothing}}", "there is no nothing in it"),
        ("{{unknown}}", "no value of that name was captured yet"),
        ("{{result | number}}", "could not convert"),
        ("{{result | json}}", "Expecting value"),
    ],
)
def test_templates_without_a_value(text: str, words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        expand(text, SCOPE)


def test_templates_in_arguments_keep_types() -> None:
    given_value = {
        "n": "{{result.1 | number}}",
        "l": ["{{data.list}}", 5, None],
        "t": "{{name}} {{name}}",
        "u": "{{name}}",
    }
    assert expand_value(given_value, SCOPE) == {"n": 12, "l": [[1, {"k": "v"}], 5, None], "t": "x x", "u": "x"}
    assert json.loads(expand_json('{"a": "{{result}}"}', SCOPE)) == {"a": "one\ntwo\n"}


@given(st.text(alphabet="{}\\ax \n"))
def test_what_is_escaped_comes_out_as_it_was(text: str) -> None:
    escaped = escape(text)
    assert expand(escaped, SCOPE) == text
    assert expand_json(escaped, SCOPE) == text
    assert expand_value([escaped], SCOPE) == [text]
    assert check(escaped, [], []) == []
