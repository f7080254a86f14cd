"""Paging through files: equal to a plain split, whatever the chunk boundaries."""

from __future__ import annotations

from io import FileIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.tools import read as read_module
from opencode_jupyter.tools.read import PAGE_BYTES, Page, is_binary, read_page


def read(folder: Path, data: bytes, first: int = 1, limit: int = 2000) -> Page:
    path = folder / "f"
    path.write_bytes(data)
    with FileIO(path) as file:
        return read_page(file, first, limit)


@given(
    data=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\r", "é🙂".encode(), b"\xff", b"x" * 30])).map(
        b"".join
    ),
    first=st.integers(1, 12),
    limit=st.integers(1, 6),
    chunk=st.integers(1, 40),
)
def test_equals_a_plain_split(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, first: int, limit: int, chunk: int
) -> None:
    whole = data.split(b"\n")
    if whole[-1] == b"":
        whole.pop()
    expected = [(line[:-1] if line.endswith(b"\r") else line).decode("utf-8", "replace") for line in whole]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_module, "CHUNK", chunk)
        got = read(tmp_path_factory.getbasetemp(), data, first, limit)
    assert got.lines == expected[first - 1 : first - 1 + limit]
    assert got.total == len(expected)
    assert got.more == (
        (bool(expected) and first - 1 + limit < len(expected)) or (not got.lines and first <= len(expected))
    )


def test_a_line_is_cut_at_2000_units(tmp_path: Path) -> None:
    got = read(tmp_path, b"a" * 2000 + b"\n" + b"b" * 2001 + b"\n" + "🙂".encode() * 1001 + b"\n" + "é".encode() * 2000)
    assert got.lines[0] == "a" * 2000
    assert got.lines[1] == "b" * 2000 + "... (line truncated to 2000 chars)"
    assert got.lines[2] == "🙂" * 1000 + "... (line truncated to 2000 chars)"
    assert got.lines[3] == "é" * 2000


def test_one_long_line_is_not_held_whole(tmp_path: Path) -> None:
    got = read(tmp_path, b"x" * 5_000_000 + b"\nend\n")
    assert [len(line) for line in got.lines] == [2034, 3]
    assert got.total == 2


def test_a_page_holds_50_kilobytes(tmp_path: Path) -> None:
    got = read(tmp_path, (b"0" * 60 + b"\n") * 2000)
    assert got.capped and got.more
    assert len("\n".join(got.lines)) <= PAGE_BYTES < len("\n".join([*got.lines, "0" * 60]))
    assert got.total == 2000


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbfa\n").lines == ["a"]


def test_reading_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a\n" * 2_000_000)

    def stop() -> None:
        raise KeyError("stop")

    with FileIO(path) as file, pytest.raises(KeyError):
        read_page(file, 1, 10, stop)


@pytest.mark.parametrize(
    ("sample", "binary"),
    [
        (b"", False),
        (b"text\n", False),
        (b"a\0b", True),
        (b"\x01" * 31 + b"a" * 69, True),
        (b"\x01" * 30 + b"a" * 70, False),
    ],
)
def test_binary(sample: bytes, binary: bool) -> None:
    assert is_binary(sample) is binary
