"""The sink that keeps the beginning and the end of an output, and the whole in a file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencode_jupyter.core import spill
from opencode_jupyter.core.spill import Spill
from opencode_jupyter.core.truncation import Truncation


def sink(folder: Path, **limits: int) -> Spill:
    return Spill(Truncation(folder, limits))


def test_a_short_output_makes_no_file(tmp_path: Path) -> None:
    s = sink(tmp_path)
    s.feed(b"a\n")
    s.feed(b"b\0c")
    output = s.finish()
    assert (output.text, output.truncated, output.output_path) == ("a\nb\0c", False, None)
    assert (output.lines, output.bytes, output.cut_line) == (2, 5, None)
    assert not (tmp_path / "tool-output").exists()


def test_a_character_cut_between_chunks_stays_whole(tmp_path: Path) -> None:
    s = sink(tmp_path)
    for byte in "né日𝄞".encode():
        s.feed(bytes([byte]))
    assert s.finish().text == "né日𝄞"
    s = sink(tmp_path)
    s.feed(b"\xff\xfe")
    assert s.finish().text == "\ufffd\ufffd"


def test_a_long_output_shows_its_beginning_and_its_end(tmp_path: Path) -> None:
    s = sink(tmp_path)
    data = b"".join(b"%d\n" % i for i in range(1, 3001))
    for at in range(0, len(data), 1000):
        s.feed(data[at : at + 1000])
    output = s.finish()
    head, gap, hint, tail = output.text.split("\n\n")
    assert head.split("\n") == [str(i) for i in range(1, 1001)]
    assert gap == "...1001 lines truncated..."
    assert hint.startswith("The tool call succeeded but the output was truncated. Full output saved to: ")
    assert tail.split("\n") == [*(str(i) for i in range(2002, 3001)), ""]
    assert output.output_path is not None
    assert Path(output.output_path).read_bytes() == data
    assert (output.lines, output.bytes, output.cut_line) == (3001, len(data), 1001)


def test_one_endless_line_is_cut_between_characters(tmp_path: Path) -> None:
    s = sink(tmp_path)
    s.feed(("x" + "é" * 100_000).encode())
    output = s.finish()
    head, gap, _, tail = output.text.split("\n\n")
    assert head == "x" + "é" * 12799
    assert tail == "é" * 12800
    assert gap == f"...{200_001 - len(head.encode()) - len(tail.encode())} bytes truncated..."
    assert output.cut_line == 1


def test_a_full_disk_loses_only_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    limits = Truncation(tmp_path)
    monkeypatch.setattr(limits, "create", lambda: (os.open("/dev/full", os.O_WRONLY), "/dev/full"))
    s = Spill(limits)
    s.feed(b"begin\n" + b"x\n" * 100_000)
    s.feed(b"end\n")
    output = s.finish()
    assert output.text.startswith("begin\n")
    assert output.text.endswith("end\n")
    assert "That file is not complete: [Errno 28] No space left on device" in output.text


def test_no_folder_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "tool-output").write_text("in the way")
    s = sink(tmp_path)
    s.feed(b"x\n" * 5000)
    output = s.finish()
    assert output.output_path is None
    assert output.truncated
    assert "could not be saved" in output.text


def test_the_live_text_is_the_end(tmp_path: Path) -> None:
    s = sink(tmp_path)
    s.feed(b"short")
    assert s.live(100) == "short"
    s.feed(b"y" * 300)
    assert s.live(100) == "...\n\n" + "y" * 100
    s.feed(("日" * 100_000).encode())
    assert s.live(100) == "...\n\n" + "日" * 100


def test_memory_stays_bounded(tmp_path: Path) -> None:
    s = sink(tmp_path)
    chunk = b"some line of output\n" * 10_000
    tracemalloc.start()
    for _ in range(200):
        s.feed(chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert s.bytes == 200 * len(chunk)
    assert peak < 2_000_000
    s.close()


def test_lines_of_very_much_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "COUNTED", 5000)
    s = sink(tmp_path, max_lines=10)
    s.feed(b"x\n" * 1000)
    s.feed(b"x\n" * 2000)
    output = s.finish()
    assert output.lines is None
    assert "...5983 bytes truncated..." in output.text


@given(
    st.lists(st.binary(max_size=80) | st.just(b"\n") | st.just("é\n".encode()), max_size=40),
    st.integers(1, 12),
    st.integers(2, 120),
)
def test_any_stream_ends_within_the_limits(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], lines: int, size: int
) -> None:
    data = b"".join(chunks)
    s = sink(tmp_path_factory.mktemp("d"), max_lines=lines, max_bytes=size)
    for chunk in chunks:
        s.feed(chunk)
    output = s.finish()
    assert (output.bytes, output.lines) == (len(data), data.count(b"\n") + 1)
    if len(data) <= size and data.count(b"\n") < lines:
        assert output.text == data.decode("utf-8", "replace")
        return
    assert output.output_path is not None
    assert Path(output.output_path).read_bytes() == data
    head, _, after_head = output.text.partition("\n\n...")
    tail = after_head.partition("\nUse Grep")[2].partition("\n\n")[2]
    head_bytes = head.encode(errors="surrogatepass").replace("\ufffd".encode(), b"")
    assert len(head_bytes) <= size
    assert head.count("\n") + 1 <= (lines + 1) // 2 or not head
    if data.isascii() and b"\0" not in data:
        assert data.startswith(head.encode())
        assert data.endswith(tail.encode())
        assert len(head) + len(tail) <= size
