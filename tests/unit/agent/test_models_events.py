# ruff: noqa: E501 - a case is a line
"""OpenAI-compatible chunks in the many ways that servers write them, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.agent.events import Event, Finish, ReasoningEnd
from opencode_jupyter.agent.models.event_assembler import EventAssembler
from opencode_jupyter.agent.models.openai import OpenAIParser
from opencode_jupyter.agent.models.provider_adapter import encode
from opencode_jupyter.agent.models.provider_errors import retry_after
from opencode_jupyter.tools.web import sse
from tests.support.models import calls, shape, text, whole

TOOLS = ("read", "grep", "todo", "todowrite")


def read(*deltas: dict[str, Any], finish: str | None = "stop", taken: tuple[str, ...] = ()) -> list[Event]:
    """The events of these deltas."""
    assembler = EventAssembler(TOOLS, {}, lambda: taken)
    reader = OpenAIParser(assembler)
    out: list[Event] = []
    for delta in deltas:
        reader.feed({"choices": [{"index": 0, "delta": delta}]})
        out += assembler.take_events()
    if finish:
        reader.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    assembler.end_all()
    out += assembler.take_events()
    out.append(reader.finish())
    whole(out)
    return out


def call(
    arguments: Any = None, name: str | None = None, id: str | None = None, index: int | None = None
) -> dict[str, Any]:
    """A delta with one call."""
    delta: dict[str, Any] = {"function": {}}
    if index is not None:
        delta["index"] = index
    if id is not None:
        delta["id"] = id
    if name is not None:
        delta["function"]["name"] = name
    if arguments is not None:
        delta["function"]["arguments"] = arguments
    return {"tool_calls": [delta]}


A, B = '{"a": 1}', '{"b": 2}'


@pytest.mark.parametrize(
    "deltas",
    [
        [call("", "read", "1", 0), call('{"a"', index=0), call(": 1}", index=0), call("", "grep", "2", 1), call(B, index=1)],
        [call('{"a"', "read", "1", 0), call('{"b"', "grep", "2", 1), call(": 1}", index=0), call(": 2}", index=1)],
        [call(A, "read", "1", 0), call(B, "grep", "2", 0)],  # every call under one index
        [call(A, "read", "1"), call(B, "grep", "2")],  # no index
        [call(A, "read"), call(B, "grep")],  # neither index nor id
        [call(A, "read", index=0), call("", "grep", index=0), call(B, index=0)],  # one index, no ids
        [{"tool_calls": [call(A, "read", "1")["tool_calls"][0], call(B, "grep", "2")["tool_calls"][0]]}],
        [{"tool_calls": [call(A, "read")["tool_calls"][0], call(B, "grep")["tool_calls"][0]]}],
        [call('{"a"', "read", "1", 0), call(": 1}", "read", "1", 0), call(B, "grep", "2", 1)],  # said again
        [call("", "re", "1", 0), call("", "ad", None, 0), call(A, index=0), call(B, "grep", "2", 1)],  # name in pieces
        [call("", "re", "1", 0), call(A, "read", "1", 0), call(B, "grep", "2", 1)],  # name from its beginning
        [call({"a": 1}, "read", "1", 0), call({"b": 2}, "grep", "2", 1)],  # no text but an object
        [call(A, "read", "x", 0), call(B, "grep", "x", 1)],  # one id for two
        [call(A, "read", "", 0), call(B, "grep", "", 1)],
        [call("", "read", None, 0), call(A, None, "late", 0), call(B, "grep", "2", 1)],
    ],
)  # fmt: skip
def test_two_calls_however_they_are_written(deltas: list[dict[str, Any]]) -> None:
    received = read(*deltas)
    assert [(name, json.loads(arguments)) for name, arguments in calls(received)] == [
        ("read", {"a": 1}),
        ("grep", {"b": 2}),
    ]
    assert received[-1] == Finish("tool-calls")


def test_a_name_that_begins_like_another() -> None:
    received = read(call("", "todo", "1", 0), call("", "write", None, 0), call("{}", index=0))
    assert calls(received) == [("todowrite", "{}")]
    assert calls(read(call("", "todo", "1", 0), call("{}", index=0))) == [("todo", "{}")]


def test_calls_without_arguments() -> None:
    assert calls(read(call("", "read"), call("", "grep"))) == [("read", ""), ("grep", "")]
    assert calls(read(call(None, "read", "1", 0))) == [("read", "")]


def test_unknown_tools_pass() -> None:
    assert calls(read(call("{}", "nosuchtool", "1", 0))) == [("nosuchtool", "{}")]
    assert calls(read(call("{}", None, "1", 0))) == [("", "{}")]


def test_an_id_of_the_conversation_is_not_used_again() -> None:
    received = read(call(A, "read", "old", 0), taken=("old",))
    assert next(event.id for event in received if hasattr(event, "id")) != "old"


def test_text_and_calls_by_turns() -> None:
    received = read(
        {"content": "a"}, call(A, "read", "1", 0), {"content": "b"}, call(B, "grep", "2", 1), {"content": ""}
    )
    assert text(received) == "ab"
    assert shape(received)[:4] == ["TextStart", "TextDelta", "TextEnd", "CallStart"]


@pytest.mark.parametrize(
    ("deltas", "metadata"),
    [
        ([{"reasoning_content": "h"}, {"reasoning_content": "m"}], {"openai": {"field": "reasoning_content"}}),
        ([{"reasoning": "hm"}], {"openai": {"field": "reasoning"}}),
        (
            [
                {"reasoning": "h", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "h"}]},
                {"reasoning": "m", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "m", "signature": "s"}]},
            ],
            {"openai": {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s"}]}},
        ),
        ([{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}], None),
    ],
)  # fmt: skip
def test_thoughts(deltas: list[dict[str, Any]], metadata: dict[str, Any] | None) -> None:
    received = read(*deltas, {"content": "yes"})
    end = next(event for event in received if isinstance(event, ReasoningEnd))
    assert end.metadata == metadata
    assert text(received) == "yes"


def test_content_in_pieces_and_refusals() -> None:
    assert text(read({"content": [{"type": "text", "text": "a"}, {"type": "image"}]})) == "a"
    received = read({"refusal": "I can't"})
    assert text(received) == "I can't"
    assert received[-1].reason == "content-filter"  # type: ignore[union-attr]


def test_other_choices_are_left_out() -> None:
    assembler = EventAssembler(TOOLS, {}, tuple)
    OpenAIParser(assembler).feed({"choices": [{"index": 1, "delta": {"content": "x"}}]})
    assert assembler.take_events() == []


pieces = st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=40)


@settings(deadline=None)
@given(
    st.lists(st.text(min_size=1).filter(lambda text: "\n" not in text and "\r" not in text), min_size=1),
    pieces,
    st.booleans(),
)
@pytest.mark.anyio
async def test_events_however_the_bytes_are_cut(texts: list[str], sizes: list[int], crlf: bool) -> None:
    end = "\r\n" if crlf else "\n"
    body = "".join(f": hi{end}id: 3{end}data: {json.dumps(text)}{end}{end}" for text in texts).encode()

    async def cut() -> Any:
        at, turn = 0, 0
        while at < len(body):
            size = sizes[turn % len(sizes)]
            yield body[at : at + size]
            at, turn = at + size, turn + 1

    assert [json.loads(event) async for event in sse.events(cut())] == texts


@pytest.mark.anyio
async def test_events_of_odd_forms() -> None:
    async def body() -> Any:
        yield b'\xef\xbb\xbfdata:1\n\ndata: [2,\ndata: 3]\n\nevent: x\nretry: 5\n\n{"error": 4}\n\ndata: 5'

    assert [json.loads(event) async for event in sse.events(body())] == [1, [2, 3], {"error": 4}, 5]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(json_values)
def test_everything_can_be_encoded(value: Any) -> None:
    strict = json.loads(encode(value).decode("utf-8"), parse_constant=lambda name: pytest.fail(name))
    assert type(strict) is type(value) or value != value or value in (float("inf"), float("-inf"))


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "20s"}, None, 20.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None, 0.0),
        ({"retry-after": ""}, None, None),
        ({}, {"error": {"details": [1, {"retryDelay": "3s"}]}}, 3.0),
        ({}, {"error": "x"}, None),
        ({}, [1], None),
    ],
)
def test_retry_after(headers: dict[str, str], body: Any, seconds: float | None) -> None:
    assert retry_after(headers, body) == seconds
