"""Lines in, lines out: whatever pieces they come in, and whatever the other end does."""

from __future__ import annotations

import asyncio
import os
import threading
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.mcp_server import wire

TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")), max_size=20)


def lines_of(data: bytes, cuts: list[int]) -> list[str]:
    """What `Lines` makes of bytes that come in pieces."""

    async def read() -> list[str]:
        reading, writing = os.pipe()
        ends = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

        def write() -> None:
            for start, end in pairwise(ends):
                os.write(writing, data[start:end])
            os.close(writing)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            return [line async for line in wire.Lines(reading)]
        finally:
            writer.join()
            os.close(reading)

    return asyncio.run(read())


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 400), max_size=8))
def test_pieces_do_not_matter(texts: list[str], cuts: list[int]) -> None:
    data = "".join(text + "\n" for text in texts).encode()
    assert lines_of(data, cuts) == [text for text in texts if text.encode().strip()]


def test_what_is_not_text_or_not_ended() -> None:
    assert lines_of(b"\xff\xfe{}\nhalf a line", []) == ["\ufffd\ufffd{}"]


def test_a_message_that_is_too_long_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST", 100)
    monkeypatch.setattr(wire, "CHUNK", 7)
    assert lines_of(b"a\n" + b"x" * 101 + b"\n" + b"y" * 100 + b"\nb\n", []) == ["a", "y" * 100, "b"]


def test_no_more_is_read_ahead_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "AHEAD", 3)
    assert lines_of(b"".join(b"%d\n" % i for i in range(50)), []) == [str(i) for i in range(50)]


def test_an_end_that_is_gone() -> None:
    async def write() -> int:
        reading, writing = os.pipe()
        gone = asyncio.Event()
        calls = 0

        def count() -> None:
            nonlocal calls
            calls += 1
            gone.set()

        out = wire.Out(writing, count)
        await out.write("one\n")
        assert os.read(reading, 100) == b"one\n"
        os.close(reading)
        await out.write("two\n")
        await out.write("three\n")  # dropped, and no error
        await out.flush()
        await asyncio.wait_for(gone.wait(), 20)
        os.close(writing)
        return calls

    assert asyncio.run(write()) == 1
