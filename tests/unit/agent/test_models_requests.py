"""What a conversation looks like on the wire, in each format; the providers' own types say whether it is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.model import Request
from opencode_jupyter.agent.models.model_resolver import ADAPTERS
from opencode_jupyter.agent.models.provider_adapter import ATTACHED, ProviderAdapter
from opencode_jupyter.agent.models.providers import configured_provider, describe_model
from opencode_jupyter.agent.turns import CallPiece, MediaPiece, ReasoningPiece, ResultPiece, TextPiece, Turn
from tests.support import models
from tests.support.models import FORMATS, GREP, READ

ALL = ["openai", "anthropic", "google"]
PICTURE = MediaPiece("image/png", "iVBORw0KGgo=", "plot.png")
PAPER = MediaPiece("application/pdf", "JVBERi0=", "paper.pdf")
OWN = ("fake", "m")


def wire(
    format: str, *, id: str = "fake", name: str = "m", options: dict[str, Any] | None = None, **model: Any
) -> ProviderAdapter:
    """A wire for a model that takes pictures and PDF, unless `model` says otherwise."""
    described = {"modalities": {"input": ["text", "image", "pdf"]}, **model}
    entry = models.entry(format, "http://127.0.0.1:1/v1", models={name: described}, options=options or {})
    provider = configured_provider(id, entry)
    return ADAPTERS[format](provider, *describe_model(provider, name))


def sent(of: ProviderAdapter, *turns: Turn, **more: Any) -> dict[str, Any]:
    """A request's JSON."""
    body = json.loads(
        of.body(Request(turns=turns, **{"system": ["Be short.", "Here."], "tools": (READ, GREP), **more}))
    )
    assert isinstance(body, dict)
    return body


def conversation(metadata: dict[str, Any] | None = None) -> list[Turn]:
    """A user, two calls with results (one with a picture, one failed), an answer, another question."""
    call = metadata and {key: value for key, value in metadata.items() if key == "google"}
    return [
        Turn("user", (TextPiece("Look at this"), PICTURE)),
        Turn(
            "assistant",
            (
                ReasoningPiece("Hm.", metadata),
                TextPiece("I look."),
                CallPiece("call:1", "read", {"filePath": "a"}, call),
                CallPiece("call:2", "grep", {"pattern": "é"}, call),
            ),
            OWN,
        ),
        Turn(
            "tool",
            (ResultPiece("call:1", "read", "text of a", (PICTURE,)), ResultPiece("call:2", "grep", "bad", failed=True)),
        ),
        Turn("assistant", (TextPiece("Done."),), OWN),
        Turn("user", (TextPiece("Thanks"),)),
    ]


METADATA = {
    "openai": {"openai": {"field": "reasoning_content"}},
    "anthropic": {"anthropic": {"signature": "c2ln"}},
    "google": {"google": {"thoughtSignature": "c2ln"}},
}


def test_openai_form() -> None:
    body = sent(wire("openai"), *conversation(METADATA["openai"]))
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user", "assistant", "user"]
    assert body["messages"][0]["content"] == "Be short.\n\nHere."
    assert body["messages"][1]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    answer = body["messages"][2]
    assert answer["reasoning_content"] == "Hm."
    assert [call["id"] for call in answer["tool_calls"]] == ["call:1", "call:2"]
    assert json.loads(answer["tool_calls"][1]["function"]["arguments"]) == {"pattern": "é"}
    assert body["messages"][5]["content"][0]["text"] == ATTACHED
    assert body["messages"][-1]["content"] == "Thanks"
    assert body["stream_options"] == {"include_usage": True}


def test_anthropic_form() -> None:
    body = sent(wire("anthropic"), *conversation(METADATA["anthropic"]))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    thought, words, first, second = body["messages"][1]["content"]
    assert thought == {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    assert words["text"] == "I look."
    first_result, second_result = body["messages"][2]["content"]
    assert (first["id"], second["id"]) == (first_result["tool_use_id"], second_result["tool_use_id"])
    assert first["id"] != second["id"]
    assert first["id"].replace("_", "").isalnum()
    assert first_result["content"][1]["type"] == "image"
    assert second_result["is_error"] is True
    assert body["max_tokens"] == 32_000


def test_anthropic_marks_what_can_be_kept() -> None:
    body = sent(wire("anthropic"), *conversation(METADATA["anthropic"]))
    marked = [block for message in body["messages"] for block in message["content"] if "cache_control" in block]
    assert marked == [body["messages"][3]["content"][-1], body["messages"][4]["content"][-1]]
    assert ["cache_control" in block for block in body["system"]] == [True, True]
    assert len(marked) + 2 <= 4  # no more are taken


def test_google_form() -> None:
    body = sent(wire("google", name="gemini-3-pro"), *conversation(METADATA["google"]))
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user", "model", "user"]
    assert body["systemInstruction"]["parts"] == [{"text": "Be short."}, {"text": "Here."}]
    results = body["contents"][2]["parts"]
    assert results[0]["functionResponse"] == {"name": "read", "response": {"output": "text of a"}}
    assert results[1]["functionResponse"] == {"name": "grep", "response": {"error": "bad"}}
    assert results[2:] == [{"text": ATTACHED}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]
    declared = body["tools"][0]["functionDeclarations"]
    assert [function["name"] for function in declared] == ["read", "grep"]


def test_google_calls_of_another_model_get_the_sign_that_skips_the_check() -> None:
    of = wire("google", name="gemini-3-pro")
    calls = [part for part in sent(of, *conversation())["contents"][1]["parts"] if "functionCall" in part]
    assert ["thoughtSignature" in call for call in calls] == [True, False]
    older = [part for part in sent(wire("google"), *conversation())["contents"][1]["parts"] if "functionCall" in part]
    assert not any("thoughtSignature" in call for call in older)


@pytest.mark.parametrize("format", ALL)
def test_signatures_only_go_back_to_the_model_that_made_them(format: str) -> None:
    mine = json.dumps(sent(wire(format), *conversation(METADATA[format])))
    other = json.dumps(sent(wire(format, name="other"), *conversation(METADATA[format])))
    assert "Hm." in mine
    assert "Hm." not in other
    assert "c2ln" not in other


@pytest.mark.parametrize("format", ALL)
def test_the_providers_own_types_take_it(format: str) -> None:
    turns = [*conversation(METADATA[format]), Turn("user", (TextPiece("And"), PAPER))]
    body = sent(wire(format), *turns, temperature=0.5, max_output=100, tool_choice="read")
    if format == "openai":
        from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

        kind: Any = CompletionCreateParamsStreaming
        for message in body["messages"]:
            message.pop("reasoning_content", None)  # not OpenAI's own
    elif format == "anthropic":
        from anthropic.types.message_create_params import MessageCreateParamsStreaming

        kind = MessageCreateParamsStreaming
    else:
        from google.genai import types

        for content in body["contents"]:
            types.Content.model_validate(content)
        types.GenerateContentConfig.model_validate(
            {"tools": body["tools"], "toolConfig": body["toolConfig"], **body["generationConfig"]}
        )
        types.Content.model_validate(body["systemInstruction"])
        return
    TypeAdapter(kind).validate_python(body)


@pytest.mark.parametrize("format", ALL)
def test_what_a_model_can_not_be_shown_is_said(format: str) -> None:
    body = json.dumps(sent(wire(format, modalities={"input": ["text"]}), *conversation()))
    assert "iVBORw0KGgo=" not in body
    assert "plot.png (image/png) is omitted" in body


@pytest.mark.parametrize("format", ALL)
def test_what_was_sent_before_is_not_made_again(format: str) -> None:
    of = wire(format)
    turns = conversation()
    first = of.body(Request(turns=turns, tools=(READ,)))
    of.accepts = None  # type: ignore[assignment, method-assign]
    assert of.body(Request(turns=turns, tools=(READ,))) == first  # asks about no picture again
    with pytest.raises(TypeError):
        of.body(Request(turns=conversation(), tools=(READ,)))


@pytest.mark.parametrize("format", ALL)
def test_strings_and_numbers_that_json_has_no_form_for(format: str) -> None:
    odd = Turn("assistant", (CallPiece("c", "read", {"a": "\udcff", "b": float("nan")}),), OWN)
    body = sent(wire(format), models.user("half \ud83d"), odd, Turn("tool", (ResultPiece("c", "read", "x"),)))
    assert "half \ufffd" in json.dumps(body, ensure_ascii=False)


@pytest.mark.parametrize("format", ALL)
def test_turns_without_anything_are_left_out(format: str) -> None:
    empty = [Turn("user", ()), Turn("assistant", (), OWN), Turn("assistant", (TextPiece(""),), OWN), Turn("tool", ())]
    body = sent(wire(format), models.user("hi"), *empty, models.user("again"), system=[], tools=())
    sent_turns = body.get("messages") or body["contents"]
    assert {turn["role"] for turn in sent_turns} == {"user"}
    assert "tools" not in body


def test_openai_reasoning_models_get_no_temperature() -> None:
    of = wire("openai", id="openai", name="gpt-5-mini")
    body = sent(of, models.user(), temperature=0.2, max_output=50, session="ses_1")
    assert "temperature" not in body
    assert body["max_completion_tokens"] == 50
    assert body["prompt_cache_key"] == "ses_1"
    assert sent(wire("openai"), models.user(), temperature=0.2)["temperature"] == 0.2
    assert "temperature" not in sent(wire("openai", temperature=False), models.user(), temperature=0.2)


def test_ids_that_a_provider_refuses() -> None:
    long = [
        Turn("assistant", (CallPiece("x" * 60, "read", {}),), OWN),
        Turn("tool", (ResultPiece("x" * 60, "read", "y"),)),
    ]
    for id in ("openai", "mistral"):
        body = sent(wire("openai", id=id), *long, system=[])
        call = body["messages"][0]["tool_calls"][0]["id"]
        assert call == body["messages"][1]["tool_call_id"]
        assert len(call) <= 40
        assert id != "mistral" or len(call) == 9


def test_options_reach_the_request() -> None:
    body = sent(wire("openai", options={"store": False}), models.user(), options={"reasoningEffort": "low"})
    assert body["reasoning_effort"] == "low"
    assert body["store"] is False
    thinking = {"thinking": {"type": "enabled", "budgetTokens": 2000}}
    body = sent(wire("anthropic"), models.user(), options=thinking, temperature=0.1, tool_choice="required")
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert body["max_tokens"] == 34_000
    assert "temperature" not in body
    assert body["tool_choice"] == {"type": "auto"}
    options = {"thinkingConfig": {"thinkingBudget": 5}, "safetySettings": []}
    body = sent(wire("google"), models.user(), options=options)
    assert body["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 5}
    assert body["safetySettings"] == []


def test_limits_of_an_answer_for_anthropic() -> None:
    assert sent(wire("anthropic", name="claude-3-haiku-20240307"), models.user())["max_tokens"] == 4096
    assert sent(wire("anthropic", limit={"context": 9, "output": 500}), models.user())["max_tokens"] == 500
    assert sent(wire("anthropic"), models.user(), max_output=77)["max_tokens"] == 77
    thinking = {"thinking": {"type": "enabled", "budgetTokens": 4096}}
    with pytest.raises(
        ModelError, match=r"budgetTokens is 4,096.*may have 4,096 tokens.*smaller budget.*limit\.output"
    ):
        sent(wire("anthropic", limit={"output": 4096}), models.user(), options=thinking)
    assert sent(wire("anthropic", limit={"output": 4097}), models.user(), options=thinking)["max_tokens"] == 4097


def test_the_limit_of_an_answer_that_the_configuration_sets() -> None:
    assert "max_tokens" not in sent(wire("openai"), models.user())
    limit = {"context": 100_000, "output": 5000}
    assert sent(wire("openai", limit=limit), models.user())["max_tokens"] == 5000
    assert sent(wire("openai", limit=limit), models.user(), max_output=9)["max_tokens"] == 9
    assert sent(wire("openai", id="openai", limit=limit), models.user())["max_completion_tokens"] == 5000
    assert sent(wire("google", limit=limit), models.user())["generationConfig"]["maxOutputTokens"] == 5000
    # what stays free for an answer, so that a server which adds up what is sent and what is wanted takes it
    small = {"context": 8192, "output": 8192}
    assert sent(wire("openai", limit=small), models.user())["max_tokens"] == 4096
    assert sent(wire("openai", limit={"output": 65_536}), models.user())["max_tokens"] == 32_000


@pytest.mark.anyio
@pytest.mark.parametrize("format", ALL)
async def test_the_key_stands_where_the_provider_wants_it(tmp_path: Path, format: str) -> None:
    with models.server(format, [{"text": "x"}]) as running:
        more = {"options": {"headers": {"X-Team": "a"}}, "models": {"m": {"headers": {"X-Model": "b"}}}}
        async with models.model(tmp_path, format, running.url, **more) as adapter:
            await models.collect(adapter)
        headers = running.requests[0].headers
    name = {"openai": "authorization", "anthropic": "x-api-key", "google": "x-goog-api-key"}[format]
    assert headers[name].removeprefix("Bearer ") == models.KEY
    assert (headers["x-team"], headers["x-model"]) == ("a", "b")
    assert models.KEY not in running.requests[0].path


@pytest.mark.anyio
@pytest.mark.parametrize("format", ALL)
async def test_the_scripted_servers_speak_what_the_providers_libraries_read(format: str) -> None:
    turn = {"reasoning": "hm", "signature": "c2ln", "text": "Hello", "calls": [["read", {"filePath": "a"}]]}
    with FORMATS[format][0]([turn]) as running:
        root = running.url.removesuffix("/v1").removesuffix("/v1beta")
        if format == "openai":
            from openai import AsyncOpenAI

            async with (
                AsyncOpenAI(base_url=running.url, api_key="k", max_retries=0) as client,
                client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as stream,
            ):
                answer: Any = await stream.get_final_completion()
            assert answer.choices[0].message.content == "Hello"
            assert answer.choices[0].message.tool_calls[0].function.arguments == '{"filePath": "a"}'
        elif format == "anthropic":
            from anthropic import AsyncAnthropic

            async with (
                AsyncAnthropic(base_url=root, api_key="k", max_retries=0) as claude,
                claude.messages.stream(
                    model="m", max_tokens=10, messages=[{"role": "user", "content": "x"}]
                ) as messages,
            ):
                message = await messages.get_final_message()
            assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
            assert message.usage.output_tokens == 20
        else:
            from google import genai

            gemini = genai.Client(api_key="k", http_options={"base_url": root}).aio
            parts = []
            async for chunk in await gemini.models.generate_content_stream(model="m", contents="x"):
                parts += chunk.candidates[0].content.parts or []
            await gemini.aclose()
            assert "".join(part.text for part in parts if part.text and not part.thought) == "Hello"
            assert [part.function_call.args for part in parts if part.function_call] == [{"filePath": "a"}]
