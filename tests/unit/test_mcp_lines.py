"""Lines of any stream, in chunks of any size."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.mcp.stdio import EDGE, Lines, TooLong

LIMIT = 40
LINE = st.binary(max_size=2 * LIMIT).map(lambda data: data.replace(b"\n", b"."))


@given(st.lists(LINE), LINE, st.data())
def test_chunks_make_no_difference(lines: list[bytes], rest: bytes, data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines) + rest
    cut, found, at = Lines(LIMIT), [], 0
    while at < len(stream):
        step = data.draw(st.integers(1, 50))
        found += cut.feed(stream[at : at + step])
        at += step
    left = cut.rest()
    assert len(found) == len(lines)
    for line, got in zip([*lines, rest], [*found, left], strict=True):
        if len(line) <= LIMIT:
            assert got == (line if line or got is not None else None)
        else:
            assert got == TooLong(len(line), line[:EDGE], line[-EDGE:])


def test_only_the_edges_of_a_long_line_are_kept() -> None:
    cut = Lines(10_000)
    line = bytes(range(32, 127)) * 1000
    for at in range(0, len(line), 700):
        assert not list(cut.feed(line[at : at + 700]))
    assert list(cut.feed(b"\n{}\n{")) == [TooLong(len(line), line[:EDGE], line[-EDGE:]), b"{}"]
    assert cut.rest() == b"{"


@pytest.mark.parametrize(
    ("message", "number"),
    [
        ({"jsonrpc": "2.0", "id": 7, "result": {"x": 1}}, 7),
        ({"id": 7, "jsonrpc": "2.0", "result": {"id": 9}}, 7),
        ({"result": {"id": 9}, "jsonrpc": "2.0", "id": 7}, 7),
        ({"result": {"id": 9}, "id": 7, "jsonrpc": "2.0"}, 7),
        ({"jsonrpc": "2.0", "result": {"content": [{"id": 9}]}}, None),
        ({"jsonrpc": "2.0", "id": 7, "method": "x", "params": {}}, None),
        ({"jsonrpc": "2.0", "method": "x", "params": {"id": 9}}, None),
    ],
)
def test_the_number_of_a_message_is_read_from_its_edges(message: object, number: int | None) -> None:
    line = json.dumps(message).encode()
    assert TooLong(len(line), line, line).id == number
