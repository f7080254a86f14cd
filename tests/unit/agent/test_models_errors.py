# ruff: noqa: E501 - a case is a line, with the provider's own sentence whole
"""What goes wrong at a provider or on the way to it: each becomes a `ModelError` that says what to do."""

from __future__ import annotations

import asyncio
import email.utils
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter import Workspace
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.models import resolve
from tests.support import models
from tests.support.models import KEY, ask, model, server

pytestmark = pytest.mark.anyio
ALL = ["openai", "anthropic", "google"]


async def failure(folder: Path, format: str, turn: dict[str, Any]) -> ModelError:
    """The error of an answer."""
    with pytest.raises(ModelError) as error:
        await ask(folder, format, turn)
    assert KEY not in str(error.value)
    assert KEY not in error.value.body
    assert KEY not in repr(error.value)
    return error.value


def openai(message: str, type: str | None = None, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def anthropic(message: str, type: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": "req_1"}


def google(message: str, status: str, code: int, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


CASES: list[tuple[str, int, Any, str]] = [
    ("openai", 401, openai("Incorrect API key provided: sk-very*****6789.", code="invalid_api_key"), "auth"),
    ("openai", 403, openai("Country, region, or territory not supported"), "auth"),
    ("openai", 404, openai("The model `m` does not exist or you do not have access to it.", code="model_not_found"), "not_found"),
    ("openai", 400, openai("The requested model 'm' does not exist.", "invalid_request_error", "model_not_found"), "not_found"),
    ("openai", 400, openai("m is not a valid model ID"), "not_found"),
    ("openai", 429, openai("Rate limit reached for m", "tokens", "rate_limit_exceeded"), "rate_limit"),
    ("openai", 429, openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "quota"),
    ("openai", 402, openai("Insufficient credits"), "quota"),
    ("openai", 400, openai("Unknown parameter: 'x'.", "invalid_request_error"), "bad_request"),
    ("openai", 400, openai("x", "invalid_request_error", "content_policy_violation"), "refused"),
    ("openai", 500, openai("The server had an error", "server_error"), "overloaded"),
    ("openai", 502, "Bad gateway", "overloaded"),
    ("openai", 503, "", "overloaded"),
    ("openai", 408, "", "timeout"),
    ("openai", 413, "", "overflow"),
    ("openai", 400, openai("This model's maximum context length is 128000 tokens.", code="context_length_exceeded"), "overflow"),
    ("openai", 400, openai("Your input exceeds the context window of this model."), "overflow"),
    ("openai", 400, openai("This model's maximum prompt length is 131072 but the request contains 537812 tokens."), "overflow"),
    ("openai", 400, openai("Please reduce the length of the messages or completion."), "overflow"),
    ("openai", 400, openai("the request exceeds the available context size (4096 tokens)"), "overflow"),
    ("openai", 400, {"error": "prompt too long; exceeded max context length by 12 tokens"}, "overflow"),
    ("openai", 404, {"error": "model 'm' not found"}, "not_found"),
    ("openai", 422, {"detail": [{"loc": ["body", "x"], "msg": "extra fields"}]}, "bad_request"),
    ("anthropic", 401, anthropic("invalid x-api-key", "authentication_error"), "auth"),
    ("anthropic", 403, anthropic("Your API key does not have permission", "permission_error"), "auth"),
    ("anthropic", 404, anthropic("model: m", "not_found_error"), "not_found"),
    ("anthropic", 400, anthropic("prompt is too long: 214000 tokens > 200000 maximum", "invalid_request_error"), "overflow"),
    ("anthropic", 400, anthropic("Your credit balance is too low to access the Anthropic API.", "invalid_request_error"), "quota"),
    ("anthropic", 429, anthropic("Number of request tokens has exceeded your per-minute rate limit", "rate_limit_error"), "rate_limit"),
    ("anthropic", 500, anthropic("Internal server error", "api_error"), "overloaded"),
    ("anthropic", 529, anthropic("Overloaded", "overloaded_error"), "overloaded"),
    ("anthropic", 400, anthropic("messages.1: tool_use ids were found without tool_result blocks", "invalid_request_error"), "bad_request"),
    ("google", 400, google("API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", 400), "auth"),
    ("google", 403, google("Permission denied", "PERMISSION_DENIED", 403), "auth"),
    ("google", 404, google("models/m is not found for API version v1beta", "NOT_FOUND", 404), "not_found"),
    ("google", 400, google("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "INVALID_ARGUMENT", 400), "overflow"),
    ("google", 503, google("The model is overloaded.", "UNAVAILABLE", 503), "overloaded"),
    ("google", 429, google("You exceeded your current quota, please check your plan and billing details.", "RESOURCE_EXHAUSTED", 429, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "43s"}), "rate_limit"),
    ("google", 429, google("You exceeded your current quota.", "RESOURCE_EXHAUSTED", 429, {"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}), "quota"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "status", "body", "kind"), CASES)
async def test_each_refusal_has_its_kind(tmp_path: Path, format: str, status: int, body: Any, kind: str) -> None:
    error = await failure(tmp_path, format, {"status": status, "body": body})
    assert error.kind == kind
    assert error.status == status
    assert error.provider == "fake"
    assert error.retryable == (kind in ("rate_limit", "overloaded", "timeout"))


IN_STREAM = [
    ("openai", 'data: {"error":{"message":"boom","type":"server_error"}}\n\n', "overloaded"),
    ("openai", 'data: {"error":{"message":"Provider returned error","code":502}}\n\n', "overloaded"),
    ("openai", 'data: {"error":{"message":"slow down","code":429}}\n\n', "rate_limit"),
    ("openai", '{"error":"it broke"}\n', "other"),
    ("openai", 'data: {"error":{"message":"maximum context length is 10"}}\n\n', "overflow"),
    ("anthropic", 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n', "overloaded"),
    ("google", 'data: {"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}\r\n\r\n', "overloaded"),
    ("google", 'data: {"promptFeedback":{"blockReason":"SAFETY"}}\r\n\r\n', "refused"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "raw", "kind"), IN_STREAM)
async def test_an_error_inside_a_stream(tmp_path: Path, format: str, raw: str, kind: str) -> None:
    error = await failure(tmp_path, format, {"raw": [raw]})
    assert error.kind == kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "2500", "retry-after": "99"}, 2.5),
        ({"retry-after": "nonsense"}, None),
        ({}, None),
    ],
)
async def test_when_to_ask_again(tmp_path: Path, headers: dict[str, str], seconds: float | None) -> None:
    error = await failure(tmp_path, "openai", {"status": 429, "body": openai("slow down"), "headers": headers})
    assert error.retry_after == seconds


async def test_when_to_ask_again_as_a_date(tmp_path: Path) -> None:
    when = email.utils.formatdate(time.time() + 60, usegmt=True)
    error = await failure(tmp_path, "openai", {"status": 503, "body": "", "headers": {"retry-after": when}})
    assert error.retry_after is not None
    assert 50 < error.retry_after <= 60
    past = email.utils.formatdate(time.time() - 60, usegmt=True)
    error = await failure(tmp_path, "openai", {"status": 503, "body": "", "headers": {"retry-after": past}})
    assert error.retry_after == 0


async def test_a_wait_that_is_too_long_is_said(tmp_path: Path) -> None:
    error = await failure(
        tmp_path, "openai", {"status": 429, "body": openai("no"), "headers": {"retry-after": "86400"}}
    )
    assert "in 24.0 hours" in str(error)


async def test_google_says_it_in_the_body(tmp_path: Path) -> None:
    body = google("x", "RESOURCE_EXHAUSTED", 429, {"@type": "google.rpc.RetryInfo", "retryDelay": "43.5s"})
    error = await failure(tmp_path, "google", {"status": 429, "body": [body]})
    assert error.retry_after == 43.5


async def test_a_provider_may_say_that_asking_again_is_no_use(tmp_path: Path) -> None:
    turn = {"status": 500, "body": openai("x"), "headers": {"x-should-retry": "false"}}
    assert not (await failure(tmp_path, "openai", turn)).retryable


HTML = "<!DOCTYPE html><html><head><title>Sign in &amp; go on</title></head><body>x</body></html>"


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize(
    ("status", "kind"), [(200, "protocol"), (404, "not_found"), (502, "overloaded"), (407, "network"), (403, "network")]
)
async def test_a_web_page_instead_of_an_answer(tmp_path: Path, format: str, status: int, kind: str) -> None:
    error = await failure(tmp_path, format, {"status": status, "body": HTML, "headers": {"content-type": "text/html"}})
    assert error.kind == kind
    assert "web page" in str(error)
    assert "Sign in & go on" in str(error)


async def test_an_unknown_model_gets_the_names_that_resemble_it(tmp_path: Path) -> None:
    turn = {"status": 404, "body": openai("nothing of that name", code="model_not_found")}
    with server("openai", [turn]) as running:
        more = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": running.url, "apiKey": KEY}}
        config = {"provider": {"openai": more}}
        async with Workspace(tmp_path, config=config, data_dir=tmp_path / "data", store=False) as workspace:
            adapter = await resolve(workspace, "openai:gpt-5-mni")
            with pytest.raises(ModelError) as error:
                await models.collect(adapter)
    assert error.value.kind == "not_found"
    assert "gpt-5-mini" in str(error.value)


async def test_options_that_are_no_json(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        await ask(tmp_path, "openai", {"text": "x"}, models.request(options={"seed": {1, 2}}))
    assert error.value.kind == "setup"


async def test_a_call_that_google_could_not_read_may_be_asked_for_again(tmp_path: Path) -> None:
    error = await failure(tmp_path, "google", {"finish": "MALFORMED_FUNCTION_CALL"})
    assert error.kind == "protocol"
    assert error.retryable


async def test_a_redirect_says_where_to(tmp_path: Path) -> None:
    turn = {"status": 308, "body": "", "headers": {"location": "https://elsewhere.example/v1"}}
    error = await failure(tmp_path, "openai", turn)
    assert error.kind == "not_found"
    assert "https://elsewhere.example/v1" in str(error)
    turn["headers"] = {"location": f"https://elsewhere.example/v1?key={KEY}"}
    assert KEY not in str(await failure(tmp_path, "openai", turn))


async def test_what_looks_like_a_key_is_not_shown(tmp_path: Path) -> None:
    body = openai(f"Incorrect key {KEY}; also Bearer abcdefghijklmnop and sk-proj-AAAAAAAAAAAAAAAA")
    error = await failure(tmp_path, "openai", {"status": 401, "body": body})
    for secret in ("abcdefghijklmnop", "sk-proj-AAAAAAAAAAAAAAAA"):
        assert secret not in str(error)
        assert secret not in error.body
    assert "options.apiKey" in str(error)
    assert secret not in json.dumps(error.to_wire())


async def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with model(tmp_path, "openai", f"http://127.0.0.1:{port}/v1") as adapter:
            with pytest.raises(ModelError) as error:
                await models.collect(adapter)
    assert error.value.kind == "network"
    assert error.value.retryable
    assert f"127.0.0.1:{port}" in str(error.value)


async def test_a_name_that_does_not_exist(tmp_path: Path) -> None:
    async with model(tmp_path, "openai", "http://nothing.invalid/v1") as adapter:
        with pytest.raises(ModelError) as error:
            await models.collect(adapter)
    assert error.value.kind == "network"
    assert "nothing.invalid" in str(error.value)


async def test_tls_to_a_server_that_has_none(tmp_path: Path) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    running = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with running:
        port = running.sockets[0].getsockname()[1]
        async with model(tmp_path, "openai", f"https://127.0.0.1:{port}/v1") as adapter:
            with pytest.raises(ModelError) as error:
                await models.collect(adapter)
    assert error.value.kind == "network"
    assert not error.value.retryable


async def test_a_server_that_hangs_up(tmp_path: Path) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.close()

    running = await asyncio.start_server(close, "127.0.0.1", 0)
    async with running:
        port = running.sockets[0].getsockname()[1]
        async with model(tmp_path, "openai", f"http://127.0.0.1:{port}/v1") as adapter:
            with pytest.raises(ModelError) as error:
                await models.collect(adapter)
    assert error.value.kind == "network"
    assert error.value.retryable


async def test_a_proxy_that_wants_a_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    running = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with running:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}")
        async with model(tmp_path, "openai", "https://provider.example/v1") as adapter:
            with pytest.raises(ModelError) as error:
                await models.collect(adapter)
    assert error.value.kind == "network"
    assert not error.value.retryable
    assert "proxy" in str(error.value)


async def test_a_proxy_that_does_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:very-secret@127.0.0.1:9")
    async with models.model(tmp_path, "openai", "https://api.invalid/v1") as adapter:
        with pytest.raises(ModelError, match=r"through the proxy 127\.0\.0\.1:9: .*NO_PROXY=api\.invalid") as error:
            await models.collect(adapter)
    assert error.value.kind == "network"
    assert "very-secret" not in str(error.value)


async def test_no_proxy_stands_before_a_server_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    received = await ask(tmp_path, "openai", {"text": "direct"})
    assert models.text(received) == "direct"


async def test_an_unreachable_server_of_this_machine(tmp_path: Path) -> None:
    async with models.model(tmp_path, "openai", "http://127.0.0.1:9/v1") as adapter:
        with pytest.raises(ModelError, match=r"no connection to 127\.0\.0\.1:9: .*Is its server running\?"):
            await models.collect(adapter)


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTPS_PROXY", "nonsense://x"), ("SSL_CERT_FILE", "/nowhere/ca.pem")],
)
async def test_an_environment_that_makes_no_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ModelError) as error:
        await ask(tmp_path, "openai", {"text": "x"})
    assert error.value.kind == "setup"
    assert name in str(error.value)


async def test_a_key_with_a_line_end_is_not_shown(tmp_path: Path) -> None:
    with server("openai", []) as running:
        async with model(tmp_path, "openai", running.url, options={"apiKey": "sk-abc\r\nx: y-secret"}) as adapter:
            with pytest.raises(ModelError) as error:
                await models.collect(adapter)
    assert error.value.kind in ("auth", "setup")
    assert "secret" not in str(error.value)
