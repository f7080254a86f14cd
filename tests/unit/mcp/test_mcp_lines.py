"""Messages of a local server, in chunks of any size."""

from __future__ import annotations

import json

import anyio
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from opencode_jupyter.mcp.connection import ServerLog
from opencode_jupyter.mcp.transports import StdioTransport
from opencode_jupyter.tools.process.stdio import Stdio

LIMIT = 200
TEXT = st.text(max_size=LIMIT // 8)


async def never_started() -> Stdio:
    raise AssertionError


def received(stream: bytes, steps: list[int]) -> tuple[list[str], str]:
    """The methods of the messages in a stream that is fed in steps, and why the connection ended."""
    transport = StdioTransport(never_started, ServerLog(), lambda: None, LIMIT)
    at = 0
    for step in [*steps, len(stream)]:
        transport.feed(stream[at : at + step])
        at += step
    transport.handle_end()
    methods = []
    while True:
        try:
            item = transport.received.receive_nowait()
        except (anyio.WouldBlock, anyio.EndOfStream):
            transport.received.close()
            return methods, transport.too_long
        assert isinstance(item, SessionMessage)
        methods.append(item.message.method)


def message(text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": text}).encode()


@given(st.lists(TEXT), st.lists(st.integers(1, 50)))
def test_chunks_make_no_difference(texts: list[str], steps: list[int]) -> None:
    texts = [text for text in texts if len(message(text)) <= LIMIT]
    stream = b"\n".join(message(text) for text in texts)
    assert received(stream, steps) == (texts, "")


@given(TEXT, st.integers(LIMIT, 5 * LIMIT), st.lists(st.integers(1, 50)))
def test_nothing_is_received_after_a_line_that_is_too_long(text: str, size: int, steps: list[int]) -> None:
    stream = message("first") + b"\n" + message("x" * size) + b"\n" + message(text) + b"\n"
    methods, reason = received(stream, steps)
    assert methods == ["first"]
    assert reason == "it sent a message of more than the limit of 0.0002 MB"
