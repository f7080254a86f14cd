"""Answers as they stream in, in each of the three formats, over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.agent import events
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.events import CallEnd, CallStart, Finish, ReasoningEnd, Usage
from opencode_jupyter.agent.model import Model
from tests.support import models
from tests.support.models import ask, calls, collect, model, server, shape, text, whole

pytestmark = pytest.mark.anyio
ALL = ["openai", "anthropic", "google"]
STREAMED = ["openai", "anthropic"]
"""Formats in which a call's arguments stream."""
CALL = ["read", {"filePath": "a.txt"}]


@pytest.mark.parametrize("format", ALL)
async def test_text_then_calls(tmp_path: Path, format: str) -> None:
    received = await ask(
        tmp_path, format, {"text": "I will look at both files.", "calls": [CALL, ["grep", {"pattern": "é"}]]}
    )
    whole(received)
    assert text(received) == "I will look at both files."
    assert [(name, json.loads(arguments)) for name, arguments in calls(received)] == [
        ("read", {"filePath": "a.txt"}),
        ("grep", {"pattern": "é"}),
    ]
    assert shape(received)[:3] == ["TextStart", "TextDelta", "TextEnd"]
    assert received[-1] == Finish("tool-calls", received[-1].usage)


@pytest.mark.parametrize("format", ALL)
async def test_usage_is_told_apart(tmp_path: Path, format: str) -> None:
    usage: dict[str, Any] = {
        "openai": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 60},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        "anthropic": {
            "input_tokens": 30,
            "output_tokens": 20,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 10,
        },
        "google": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 15,
            "thoughtsTokenCount": 5,
            "cachedContentTokenCount": 60,
            "totalTokenCount": 120,
        },
    }
    received = await ask(tmp_path, format, {"text": "x", "usage": usage[format]})
    used = received[-1].usage
    expected = {
        "openai": Usage(40, 15, 5, 60, 0, 120),
        "anthropic": Usage(30, 20, 0, 60, 10, None),
        "google": Usage(40, 15, 5, 60, 0, 120),
    }
    assert used == expected[format]
    assert used.whole == 120


@pytest.mark.parametrize("format", ALL)
async def test_reasoning_comes_before_and_has_its_signature(tmp_path: Path, format: str) -> None:
    turn = {"reasoning": "Let me think about it.", "signature": "c2ln", "text": "Yes", "calls": [CALL]}
    received = await ask(tmp_path, format, turn)
    whole(received)
    thought = "".join(event.text for event in received if isinstance(event, events.ReasoningDelta))
    assert thought == "Let me think about it."
    assert shape(received)[:6] == [
        "ReasoningStart",
        "ReasoningDelta",
        "ReasoningEnd",
        "TextStart",
        "TextDelta",
        "TextEnd",
    ]
    end = next(event for event in received if isinstance(event, ReasoningEnd))
    if format == "anthropic":
        assert end.metadata == {"anthropic": {"signature": "c2ln"}}
    if format == "google":
        call = next(event for event in received if isinstance(event, CallEnd))
        assert call.metadata == {"google": {"thoughtSignature": "c2ln"}}


@pytest.mark.parametrize("format", ALL)
async def test_text_after_calls_is_a_part_of_its_own(tmp_path: Path, format: str) -> None:
    received = await ask(tmp_path, format, {"text": "Before", "calls": [CALL], "after": "After"})
    whole(received)
    starts = [event.index for event in received if isinstance(event, events.TextStart)]
    assert len(starts) == 2
    assert text(received) == "BeforeAfter"
    assert len(calls(received)) == 1


@pytest.mark.parametrize("format", ALL)
async def test_twenty_calls_in_one_turn(tmp_path: Path, format: str) -> None:
    expected = [["read", {"filePath": f"f{i}.txt"}] for i in range(20)]
    received = await ask(tmp_path, format, {"calls": expected})
    whole(received)
    assert [[name, json.loads(arguments)] for name, arguments in calls(received)] == expected


@pytest.mark.parametrize("format", ALL)
async def test_ids_that_are_missing_or_given_twice_become_unique(tmp_path: Path, format: str) -> None:
    turn = {"calls": [["read", {"filePath": "a"}, "x"], ["read", {"filePath": "b"}, "x"], ["grep", {}, None]]}
    if format == "google":
        turn["signature"] = "s"  # type: ignore[assignment]
    received = await ask(tmp_path, format, turn)
    whole(received)
    started = {event.index: event.id for event in received if isinstance(event, CallStart)}
    assert {event.index: event.id for event in received if isinstance(event, CallEnd)} == started
    assert [name for name, _ in calls(received)] == ["read", "read", "grep"]


@pytest.mark.parametrize("format", STREAMED)
@pytest.mark.parametrize("arguments", ["", "[1, 2]", '{"filePath": 5', '"text"', "null"])
async def test_arguments_come_as_they_are(tmp_path: Path, format: str, arguments: str) -> None:
    received = await ask(tmp_path, format, {"calls": [["read", arguments]]})
    whole(received)
    assert calls(received) == [("read", arguments)]


@pytest.mark.parametrize("format", STREAMED)
async def test_arguments_in_one_piece(tmp_path: Path, format: str) -> None:
    received = await ask(tmp_path, format, {"calls": [CALL], "chunk": 0})
    assert [json.loads(arguments) for _, arguments in calls(received)] == [{"filePath": "a.txt"}]


@pytest.mark.parametrize("format", ALL)
async def test_an_answer_that_is_no_stream(tmp_path: Path, format: str) -> None:
    plain = server(format, [])
    turn = {"reasoning": "hm", "text": "Hello", "calls": [CALL]}

    def answer(request: Any) -> dict[str, Any]:
        from tests.support.model_servers.script import Turn

        return {"body": plain.whole(Turn(**turn), request)}

    with server(format, answer) as running:
        async with model(tmp_path, format, running.url) as adapter:
            received = await collect(adapter)
    whole(received)
    assert text(received) == "Hello"
    assert [(name, json.loads(arguments)) for name, arguments in calls(received)] == [("read", {"filePath": "a.txt"})]
    assert received[-1].reason == "tool-calls"
    assert received[-1].usage.whole == 120


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize(
    "how",
    [{"sliced": 1}, {"sliced": 7}, {"comments": True}, {"crlf": True}, {"comments": True, "crlf": True, "sliced": 5}],
)
async def test_however_the_bytes_come(tmp_path: Path, format: str, how: dict[str, Any]) -> None:
    if format == "google" and how.get("crlf"):
        how = {**how, "crlf": False}  # its lines end so anyway
    received = await ask(
        tmp_path, format, {"text": "Grüße an 日本 🎉", "calls": [["read", {"filePath": "ñ/é.txt"}]], **how}
    )
    whole(received)
    assert text(received) == "Grüße an 日本 🎉"
    assert json.loads(calls(received)[0][1]) == {"filePath": "ñ/é.txt"}


REASONS = [
    ("openai", "stop", "stop"),
    ("openai", "length", "length"),
    ("openai", "content_filter", "content-filter"),
    ("openai", "something", "other"),
    ("anthropic", "stop_sequence", "stop"),
    ("anthropic", "max_tokens", "length"),
    ("anthropic", "refusal", "content-filter"),
    ("anthropic", "pause_turn", "stop"),
    ("google", "MAX_TOKENS", "length"),
    ("google", "SAFETY", "content-filter"),
    ("google", "MALFORMED_FUNCTION_CALL", "error"),
    ("google", "OTHER", "other"),
]


@pytest.mark.parametrize(("format", "finish", "reason"), REASONS)
async def test_why_it_stopped(tmp_path: Path, format: str, finish: str, reason: str) -> None:
    received = await ask(tmp_path, format, {"text": "x", "finish": finish})
    assert received[-1].reason == reason


async def test_stop_with_calls_is_tool_calls(tmp_path: Path) -> None:
    received = await ask(tmp_path, "openai", {"calls": [CALL], "finish": "stop"})
    assert received[-1].reason == "tool-calls"


@pytest.mark.parametrize("format", STREAMED)
async def test_a_stream_cut_in_the_middle_of_arguments(tmp_path: Path, format: str) -> None:
    path = "a" * 200
    turn = {"text": "Now", "calls": [["read", {"filePath": path}]], "cut": 8}
    received: list[events.Event] = []

    async def read(adapter: Model) -> None:
        async for event in adapter.stream(models.request()):
            received.append(event)

    with server(format, [turn]) as running:
        async with model(tmp_path, format, running.url) as adapter:
            with pytest.raises(ModelError) as error:
                await read(adapter)
    assert error.value.kind == "cut"
    assert error.value.retryable
    assert "CallStart" in shape(received)
    assert "CallEnd" not in shape(received)


@pytest.mark.parametrize("format", ALL)
async def test_a_stream_that_ends_before_its_end(tmp_path: Path, format: str) -> None:
    """The connection is closed in order, but the answer is not whole."""
    raw = {
        "openai": ['data: {"choices":[{"index":0,"delta":{"content":"Hal"}}]}\n\n'],
        "anthropic": [
            'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1}}}\n\n'
        ],
        "google": ['data: {"candidates":[{"content":{"parts":[{"text":"Hal"}]}}]}\n\n'],
    }
    with pytest.raises(ModelError) as error:
        await ask(tmp_path, format, {"raw": raw[format]})
    assert error.value.kind == "cut"


async def test_done_may_be_missing(tmp_path: Path) -> None:
    received = await ask(tmp_path, "openai", {"text": "Hello", "end": False})
    assert text(received) == "Hello"
    assert received[-1].usage.whole == 120


async def test_a_server_that_stays_open_behind_the_end_is_not_waited_for(tmp_path: Path) -> None:
    turn = {"text": "Hello", "calls": [CALL], "chunk": 0, "end": False, "hold": 5}
    received = await ask(tmp_path, "openai", turn)
    assert text(received) == "Hello"
    assert calls(received)


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("raw", [[], [": keep-alive\n\n"]])
async def test_an_empty_answer(tmp_path: Path, format: str, raw: list[str]) -> None:
    with pytest.raises(ModelError) as error:
        await ask(tmp_path, format, {"raw": raw})
    assert error.value.kind == "cut"
    assert "empty" in str(error.value)


@pytest.mark.parametrize("format", ALL)
async def test_garbage_in_the_middle(tmp_path: Path, format: str) -> None:
    with pytest.raises(ModelError) as error:
        await ask(tmp_path, format, {"raw": ['data: {"choi\n\n']})
    assert error.value.kind == "protocol"
    assert "cannot be read" in str(error.value)


@pytest.mark.parametrize("format", ALL)
async def test_json_of_another_form(tmp_path: Path, format: str) -> None:
    with pytest.raises(ModelError) as error:
        await ask(tmp_path, format, {"raw": ["data: 17\n\n"]})
    assert error.value.kind == "protocol"


@pytest.mark.parametrize("format", ALL)
async def test_fields_of_wrong_types_are_no_traceback(tmp_path: Path, format: str) -> None:
    raw = {
        "openai": ['data: {"choices":[{"index":0,"delta":{"tool_calls":[{"function":7}]}}],"usage":[1]}\n\n'],
        "anthropic": ['data: {"type":"content_block_start","index":0,"content_block":7}\n\n'],
        "google": ['data: {"candidates":[{"content":{"parts":[7]}}]}\n\n'],
    }
    with pytest.raises(ModelError) as error:
        await ask(tmp_path, format, {"raw": raw[format]})
    assert error.value.kind in ("protocol", "cut")


@pytest.mark.parametrize("format", ALL)
async def test_a_slow_drip(tmp_path: Path, format: str) -> None:
    received = await ask(tmp_path, format, {"text": "a b c d", "chunk": 2, "delay": 0.02})
    assert text(received) == "a b c d"


async def test_tools_with_names_that_a_provider_refuses_are_called_by_their_own(tmp_path: Path) -> None:
    from opencode_jupyter.agent.model import ToolSpec
    from opencode_jupyter.agent.models.provider_adapter import wire_name

    odd = "server/do it " + "x" * 80
    tools = [ToolSpec(odd, "d", {"type": "object", "properties": {"a": {"type": "string"}}})]
    received = await ask(tmp_path, "openai", {"calls": [[wire_name(odd), {"a": "b"}]]}, models.request(tools=tools))
    assert calls(received) == [(odd, '{"a": "b"}')]
    assert next(event.name for event in received if isinstance(event, CallStart)) == odd
