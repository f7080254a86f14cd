"""JSON-RPC: messages cut out of any stream of chunks, answers, errors, limits, the server's own requests."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.tools.language_servers import json_rpc
from opencode_jupyter.tools.language_servers.json_rpc import (
    Connection,
    Frames,
    HungError,
    RpcError,
    ServerFailedError,
    frame,
)

messages = st.lists(st.dictionaries(st.text(max_size=9), st.text() | st.lists(st.integers()), max_size=3), max_size=5)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@settings(max_examples=60, deadline=None)
@given(messages, st.lists(st.integers(0, 10_000)))
def test_messages_survive_any_chunking(sent: list[dict[str, Any]], cuts: list[int]) -> None:
    frames = Frames()
    got = [m for chunk in chunks(b"".join(map(frame, sent)), cuts) for m in frames.feed(chunk)]
    assert got == sent


@settings(max_examples=60, deadline=None)
@given(
    messages,
    st.lists(st.text(alphabet="abc \n\r:{}1", max_size=30), min_size=6, max_size=6),
    st.lists(st.integers(0, 999)),
)
def test_what_is_printed_between_messages_is_passed_over(
    sent: list[dict[str, Any]], noise: list[str], cuts: list[int]
) -> None:
    data = b"".join(text.encode() + b"\n" + frame(message) for text, message in zip(noise, sent, strict=False))
    frames = Frames()
    assert [m for chunk in chunks(data, cuts) for m in frames.feed(chunk)] == sent


@pytest.mark.parametrize(
    "data",
    [
        b"content-length:5\r\nContent-Type: x\r\n\r\n[1,2]" + frame({"a": 1}),
        b'Content-Type: x\nCONTENT-LENGTH: 8\n\n{"a": 1}',
        b"Content-Length: many\r\n\r\n" + frame({"a": 1}),
        b"Content-Length: 999999999999999\r\n\r\n" + frame({"a": 1}),
        b"Content-Length: 3\r\n\r\n{]}" + frame({"a": 1}),
        b"x" * 300_000 + frame({"a": 1}),
        b"Content-Length: " + b"y" * 300_000 + b"\r\n" + frame({"a": 1}),
    ],
)
def test_bad_headers_and_bodies_do_not_end_the_stream(data: bytes) -> None:
    frames = Frames()
    got = [m for i in range(0, len(data), 50_000) for m in frames.feed(data[i : i + 50_000])]
    assert got == [{"a": 1}]


def test_a_big_message_is_cut_out_in_linear_time() -> None:
    data = frame({"text": "x" * (20 << 20)})
    frames = Frames()
    got = [m for i in range(0, len(data), 65_536) for m in frames.feed(data[i : i + 65_536])]
    assert len(got[0]["text"]) == 20 << 20


class Server:
    """The other end: what was sent to it, and a way to answer."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.told: list[tuple[str, Any]] = []
        self._frames = Frames()
        self.connection = Connection(self._take, self._ask, lambda method, params: self.told.append((method, params)))

    def _take(self, data: bytes) -> None:
        self.sent += self._frames.feed(data)

    def _ask(self, method: str, params: Any) -> Any:
        if method == "add":
            return params[0] + params[1]
        raise RpcError(json_rpc.METHOD_NOT_FOUND, method)

    def say(self, **message: Any) -> None:
        self.connection.feed(frame({"jsonrpc": "2.0", **message}))


pytestmark = pytest.mark.anyio


async def test_answers_find_their_questions_in_any_order() -> None:
    server = Server()
    requests = [asyncio.ensure_future(server.connection.request("double", n, 5)) for n in range(10)]
    await asyncio.sleep(0)
    for message in reversed(server.sent):
        server.say(id=message["id"], result=message["params"] * 2)
    assert await asyncio.gather(*requests) == [n * 2 for n in range(10)]


async def test_an_error_is_raised_with_its_code() -> None:
    server = Server()
    request = asyncio.ensure_future(server.connection.request("x", None, 5))
    await asyncio.sleep(0)
    assert "params" not in server.sent[0]
    server.say(id=server.sent[0]["id"], error={"code": -32801, "message": "changed"})
    with pytest.raises(RpcError, match="changed") as caught:
        await request
    assert caught.value.code == -32801


async def test_too_late_hung_and_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rpc, "CANCEL", 0.05)
    server = Server()
    with pytest.raises(HungError):
        await server.connection.request("x", {}, 0.05)
    assert server.sent[-1] == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": server.sent[0]["id"]}}

    request = asyncio.ensure_future(server.connection.request("y", {}, 0.02))
    await asyncio.sleep(0.04)
    server.say(id=server.sent[-1]["params"]["id"], error={"code": -32800, "message": "cancelled"})
    with pytest.raises(TimeoutError) as caught:
        await request
    assert not isinstance(caught.value, HungError)

    request = asyncio.ensure_future(server.connection.request("z", {}, 5))
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert server.sent[-1]["method"] == "$/cancelRequest"
    server.say(id=server.sent[-1]["params"]["id"], result=1)  # late: nobody waits


async def test_the_end_of_the_connection_ends_every_wait() -> None:
    server = Server()
    requests = [asyncio.ensure_future(server.connection.request("x", n, 5)) for n in range(3)]
    await asyncio.sleep(0)
    server.connection.close(ServerFailedError("gone"))
    assert {str(e) for e in await asyncio.gather(*requests, return_exceptions=True)} == {"gone"}
    with pytest.raises(ServerFailedError, match="gone"):
        await server.connection.request("x", None, 5)
    with pytest.raises(ServerFailedError, match="gone"):
        server.connection.notify("x", None)


async def test_the_servers_own_requests_are_answered() -> None:
    server = Server()
    server.say(id="a", method="add", params=[1, 2])
    server.say(id="b", method="unknown")
    server.say(id="c", method="add", params=["x", 2])
    server.say(method="told", params=[3])
    assert server.sent[0] == {"jsonrpc": "2.0", "id": "a", "result": 3}
    assert [m["error"]["code"] for m in server.sent[1:]] == [json_rpc.METHOD_NOT_FOUND, json_rpc.INTERNAL_ERROR]
    assert server.told == [("told", [3])]


async def test_a_server_that_does_not_read_is_an_error() -> None:
    def full(data: bytes) -> None:
        raise BufferError("does not read")

    connection = Connection(full, lambda m, p: None, lambda m, p: None)
    with pytest.raises(ServerFailedError, match="does not read"):
        await connection.request("x", None, 5)


def test_a_frame_is_ascii_with_its_length_in_bytes() -> None:
    head, _, body = frame({"text": "é\ud800🙂"}).partition(b"\r\n\r\n")
    assert head == b"Content-Length: %d" % len(body)
    assert json.loads(body) == {"text": "é\ud800🙂"}
