"""Stopping a model: the provider's side sees the connection go at once."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.model import Model
from tests.support import models
from tests.support.model_servers.server import Request
from tests.support.models import model, server

pytestmark = pytest.mark.anyio
ALL = ["openai", "anthropic", "google"]
SOON = 10.0
"""Seconds in which a stop must be seen on the other side."""


async def wait_disconnected(request: Request) -> None:
    """Wait until the server has seen the client go."""
    assert await asyncio.to_thread(request.gone.wait, SOON + 2)


async def came(requests: list[Request]) -> Request:
    """Wait for a request."""
    deadline = time.monotonic() + 10
    while not requests:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    return requests[0]


@pytest.mark.parametrize("format", ALL)
async def test_closing_the_generator_closes_the_connection(tmp_path: Path, format: str) -> None:
    with server(format, [{"text": "a long answer " * 20, "hold": 6}]) as running:
        async with model(tmp_path, format, running.url) as adapter:
            stream = adapter.stream(models.request())
            await anext(stream)
            at = time.monotonic()
            await stream.aclose()
            await wait_disconnected(running.requests[0])
            assert running.requests[0].gone_at - at < SOON
            assert running.open == 0


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize(
    "turn",
    [{"wait": 60.0}, {"text": "Hello there, " * 20, "hold": 4}, {"calls": [["read", {"a": "b" * 99}]], "hold": 3}],
)
async def test_cancelling_the_reader_closes_the_connection(
    tmp_path: Path, format: str, turn: dict[str, object]
) -> None:
    with server(format, [turn]) as running:
        async with model(tmp_path, format, running.url) as adapter:
            task = asyncio.create_task(models.collect(adapter))
            request = await came(running.requests)
            if "hold" in turn:
                assert await asyncio.to_thread(request.began.wait, 5)
            at = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - at < SOON
            await wait_disconnected(request)
            assert request.gone_at - at < SOON


@pytest.mark.parametrize("through_proxy", [False, True])
async def test_a_handshake_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through_proxy: bool
) -> None:
    """A server takes the connection and never answers the TLS hello: stopping must close the socket all the same."""
    greeted, disconnected = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if through_proxy:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await reader.read(1)
        greeted.set()
        while await reader.read(1000):
            pass
        disconnected.set()
        writer.close()

    running = await asyncio.start_server(serve, "127.0.0.1", 0)
    here = f"127.0.0.1:{running.sockets[0].getsockname()[1]}"
    if through_proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{here}")
    async with running, model(tmp_path, "openai", f"https://{'api.invalid' if through_proxy else here}/v1") as adapter:
        task = asyncio.create_task(models.collect(adapter))
        async with asyncio.timeout(10):
            await greeted.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(SOON):
            await disconnected.wait()


async def test_a_connection_is_used_again(tmp_path: Path) -> None:
    with server("openai", lambda request: {"text": "x", "calls": [["read", {}]]}) as running:
        async with model(tmp_path, "openai", running.url) as adapter:
            for _ in range(5):
                await models.collect(adapter)
        assert len(running.requests) == 5
        assert running.connections == 1


async def test_runs_side_by_side(tmp_path: Path) -> None:
    with server("openai", lambda request: {"text": "hello", "delay": 0.05}) as running:
        async with model(tmp_path, "openai", running.url) as adapter:
            received = await asyncio.gather(*(models.collect(adapter) for _ in range(20)))
    assert {models.text(events) for events in received} == {"hello"}


async def test_nothing_for_too_long_is_a_timeout(tmp_path: Path) -> None:
    with server("openai", [{"text": "Hello there", "hold": 2}]) as running:
        async with model(tmp_path, "openai", running.url, options={"timeout": 300}) as adapter:
            with pytest.raises(ModelError) as error:
                await models.collect(adapter)
    assert error.value.kind == "timeout"
    assert error.value.retryable


async def test_a_model_serves_one_loop_after_the_other(tmp_path: Path) -> None:
    """Code that calls `asyncio.run` more than once must not meet connections of a loop that is gone."""

    async def once(adapter: Model) -> str:
        received = await models.collect(adapter)
        await adapter.aclose()  # this loop ends; the other one's connections make themselves anew
        return models.text(received)

    def run(adapter: Model) -> str:
        return asyncio.run(once(adapter))

    with server("openai", lambda request: {"text": "again"}) as running:
        async with model(tmp_path, "openai", running.url) as adapter:
            first = models.text(await models.collect(adapter))
            second = await asyncio.to_thread(run, adapter)
            third = models.text(await models.collect(adapter))
    assert [first, second, third] == ["again"] * 3


async def test_closed_with_the_workspace(tmp_path: Path) -> None:
    with server("openai", [{"text": "x"}]) as running:
        async with model(tmp_path, "openai", running.url) as adapter:
            await models.collect(adapter)
            await adapter.aclose()
            await adapter.aclose()
        deadline = time.monotonic() + 3
        while running.open and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert running.open == 0
