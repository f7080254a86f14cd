"""Pages of spilled outputs: rows by line and by place, in growing files; no other file; bounded work."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.core.spill import Spill
from opencode_jupyter.core.truncation import Truncation
from opencode_jupyter.jupyter.spill import pages
from opencode_jupyter.jupyter.spill.folder import SpillFolder
from opencode_jupyter.jupyter.spill.pages import SpillPages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    created = tmp_path / "tool-output"
    created.mkdir()
    return created


def spill(folder: Path, data: bytes, name: str = "tool_1") -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def some(page: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(page[name] for name in names)


def test_pages_by_number_and_from_the_end(folder: Path) -> None:
    path = spill(folder, b"".join(b"%d\n" % n for n in range(1, 1001)))
    reader = SpillPages(SpillFolder(folder))
    page = reader.page(path, 501, 3)
    assert some(page, "first", "lines", "offsets", "end") == (501, ["501", "502", "503"], [1892, 1896, 1900], 1904)
    assert some(page, "bytes", "total", "more", "inside", "style") == (3893, 1000, True, [], "")
    last = reader.page(path, None, 2)
    assert some(last, "first", "lines", "total", "more") == (999, ["999", "1000"], 1000, False)
    assert reader.page(path, 10**9, 2)["lines"] == ["999", "1000"]
    assert reader.page(path, 1000, 5)["lines"] == ["1000"]
    assert some(reader.page(path, at=1892, count=2), "first", "lines") == (501, ["501", "502"])
    assert some(reader.page(path, near=1894, count=2), "first", "lines") == (501, ["501", "502"])
    assert some(reader.page(path, before=1892, count=2), "first", "lines", "end") == (499, ["499", "500"], 1892)


texts = st.lists(st.binary(max_size=90).map(lambda b: b.replace(b"\r", b"")), max_size=40).map(b"\n".join)


@settings(deadline=None, max_examples=80)
@given(data=texts, line=st.integers(-2, 45), count=st.integers(1, 50), step=st.integers(1, 30))
def test_every_page_is_what_the_file_has(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, line: int, count: int, step: int
) -> None:
    folder = tmp_path_factory.mktemp("d")
    path = spill(folder, data)
    all_lines = data.split(b"\n")
    if all_lines[-1] == b"":
        all_lines.pop()
    first = line if 1 <= line <= len(all_lines) else max(1, len(all_lines) - count + 1)
    expected = all_lines[first - 1 : first - 1 + count]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "STEP", step)
        reader = SpillPages(SpillFolder(folder))
        for _ in range(2):  # the second time with the places known
            page = reader.page(path, line, count)
            assert page["first"] == first
            assert page["lines"] == [text.decode("utf-8", "replace") for text in expected]
            assert page["more"] == (first - 1 + count < len(all_lines))
            assert page["total"] in (None, len(all_lines))
            assert reader.extent(path, page["offsets"][0] if page["offsets"] else 0)["number"] == first


pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"\x1b[31m", b"\n", "é".encode(), "\U0001f600".encode(), b"x" * 300, b"\x80" * 20]),
)


@settings(deadline=None, max_examples=100)
@given(
    data=st.lists(pieces, max_size=30).map(b"".join).map(lambda b: b.replace(b"\r", b"")),
    count=st.integers(1, 7),
    fraction=st.floats(0, 1),
)
def test_rows_are_the_same_from_wherever_one_comes(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, count: int, fraction: float
) -> None:
    """Forwards, backwards and from a place in the middle: no gap, nothing twice, long lines split alike."""
    folder = tmp_path_factory.mktemp("d")
    path = spill(folder, data)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in [("PIECE", 128), ("LONGEST", 256), ("PAGE_BYTES", 400)]:
            patch.setattr(pages, name, value)
        reader = SpillPages(SpillFolder(folder))
        forwards: list[int] = []
        inside: list[int] = []
        at = 0
        while at < len(data):
            page = reader.page(path, at=at, count=count)
            forwards += page["offsets"]
            inside += [page["offsets"][index] for index in page["inside"]]
            assert page["end"] > at
            at = page["end"]
        backwards: list[int] = []
        before = len(data)
        while before > 0:
            page = reader.page(path, before=before, count=count)
            assert page["end"] == before
            backwards[:0] = page["offsets"]
            before = page["offsets"][0]
        assert backwards == forwards
        near = int(fraction * max(0, len(data) - 1))
        if data:
            start = reader.page(path, near=near, count=1)["offsets"][0]
            assert start == max(offset for offset in forwards if offset <= near)
    starts = {0, *(i + 1 for i, byte in enumerate(data) if byte == 10 and i + 1 < len(data))} if data else set()
    assert {offset for offset in forwards if offset not in inside} == starts


def test_a_line_of_a_megabyte_is_shown_whole_in_pieces(folder: Path) -> None:
    line = ("0123456789abcdé" * 70_000).encode()
    path = spill(folder, b"before\n" + line + b"\nafter")
    reader = SpillPages(SpillFolder(folder))
    page = reader.page(path, 2, 1000)
    text, at = "", page["offsets"][0]
    assert page["first"] == 2 and 0 not in page["inside"]
    while at < 7 + len(line):
        page = reader.page(path, at=at, count=50)
        text += "".join(page["lines"])
        assert page["first"] == 2 and max(map(len, page["lines"])) <= pages.LONGEST
        at = page["end"]
    assert text.removesuffix("after").encode() == line
    assert reader.page(path, 3)["lines"] == ["after"]


def test_colours_that_are_on_where_a_page_begins(folder: Path) -> None:
    path = spill(folder, b"\x1b[0mplain\n\x1b[1m\x1b[31mred\nstill red\n\x1b[0mplain\n")
    reader = SpillPages(SpillFolder(folder))
    assert reader.page(path, 3)["style"] == "\x1b[0m\x1b[1m\x1b[31m"
    assert reader.page(path, 3)["lines"][:2] == ["still red", "\x1b[0mplain"]
    assert reader.page(path, 2)["style"] == ""


def test_a_file_that_grows_is_read_on_and_one_that_was_cut_anew(folder: Path) -> None:
    path = spill(folder, b"1\n2\n3")
    reader = SpillPages(SpillFolder(folder))
    page = reader.page(path)
    assert page["total"] == 3
    with open(path, "ab") as file:
        file.write(b"3\n4\n")
    page = reader.page(path)
    assert (page["lines"], page["total"]) == (["1", "2", "33", "4"], 4)
    spill(folder, b"x\n")
    assert some(reader.page(path), "lines", "total", "bytes") == (["x"], 1, 2)
    spill(folder, b"")
    assert some(reader.page(path, 5), "lines", "total", "first", "end") == ([], 0, 1, 0)
    os.unlink(path)
    assert "was deleted" in reader.page(path, at=0)["error"]
    assert "was deleted" in reader.extent(path)["error"]


def test_lines_that_are_not_where_they_were_are_counted_anew(folder: Path) -> None:
    path = spill(folder, b"a\n" * 300_000)
    reader = SpillPages(SpillFolder(folder))
    assert reader.page(path, 250_000)["first"] == 250_000
    spill(folder, b"longer line\n" * 100_000)  # larger, so that its size tells nothing
    assert reader.page(path, 290_000, 1)["lines"] == ["longer line"]


def test_whether_it_is_still_written(folder: Path) -> None:
    sink = Spill(Truncation(folder.parent, {"max_bytes": 10}))
    reader = SpillPages(SpillFolder(folder))
    sink.feed(b"one line that is too long\n")
    assert sink.path is not None
    assert reader.extent(sink.path)["writing"] is True
    before = reader.page(sink.path)
    sink.feed(b"two\n")
    assert reader.page(sink.path, at=before["end"])["lines"] == ["two"]
    sink.finish()
    assert reader.extent(sink.path)["writing"] is False
    assert before["file"] == reader.extent(sink.path)["file"]


def test_only_regular_files_of_the_folder(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (folder / "link").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    (folder / "sub" / "tool_1").write_text("x")
    reader = SpillPages(SpillFolder(folder))
    odd: list[Any] = [
        secret, folder / "link", folder / "pipe", folder, folder / ".." / "secret", folder / "sub" / "tool_1",
        "", "tool_1", None, "a\0b", 5, "/etc/passwd", folder / "gone", folder / ("x" * 300),
    ]  # fmt: skip
    for path in odd:
        argument = path if path is None else str(path)
        for answer in (reader.page(argument, 1), reader.extent(argument), reader.part(argument, 0)):
            assert list(answer) == ["error"], path
            error = answer["error"]
            assert "secret" not in error.replace(str(secret), "") or "only full outputs" in error
    assert "was deleted" in reader.page(str(folder / "gone"))["error"]


ODD = [("x", "y"), (None, None), (-5, -5), (1.5, 10**9), (True, False), (10**30, 1)]


@pytest.mark.parametrize(("position", "count"), ODD)
def test_odd_numbers_are_taken(folder: Path, position: Any, count: Any) -> None:
    path = spill(folder, b"a\nb\n")
    reader = SpillPages(SpillFolder(folder))
    assert reader.page(path, position, count)["lines"]
    for name in ("at", "near", "before"):
        assert "lines" in reader.page(path, count=count, **{name: position}), name
    assert reader.extent(path, position)["bytes"] == 4
    assert reader.part(path, position, count)["bytes"] == 4


def test_a_long_search_for_a_line_is_cut_into_several_requests(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = spill(folder, b"x\n" * 8_000_000)
    monkeypatch.setattr(pages, "SCAN_SECONDS", 0.0)
    monkeypatch.setattr(pages, "NUMBER_SECONDS", 0.0)
    reader = SpillPages(SpillFolder(folder))
    late_page = reader.page(path, near=15_000_000, count=1)
    assert (late_page["lines"], late_page["first"], late_page["total"]) == (["x"], None, None)
    scanned = []
    while "scanned" in (page := reader.page(path, 7_900_000, 1)):
        assert page["bytes"] == 16_000_000
        scanned.append(page["scanned"])
    assert page["first"] == 7_900_000
    assert scanned == sorted(set(scanned)) and len(scanned) > 5
    assert reader.page(path, near=15_000_000, count=1)["first"] == 7_500_001


def test_line_1000000_of_200_mb_is_found(folder: Path) -> None:
    path = spill(folder, b"")
    with open(path, "wb") as file:
        file.writelines((b"y" * 99 + b"\n") * 50_000 for _ in range(40))
    reader = SpillPages(SpillFolder(folder))
    while "scanned" in (page := reader.page(path, 1_000_000, 400)):
        pass
    assert page["first"] == 1_000_000


def bytes_read() -> int:
    """How much this process has read so far, from the disk or its cache."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what a process reads")
def test_ten_gigabytes_are_seen_anywhere_without_reading_them(folder: Path) -> None:
    path = spill(folder, b"first\n")
    with open(path, "r+b") as file:
        file.seek(10_000_000_000)
        file.write(b"\nsecond to last\nlast")  # in between nothing was written: a file with a hole
    reader = SpillPages(SpillFolder(folder))
    for position, lines_there in [({}, ["second to last", "last"]), ({"at": 0}, ["first"])]:
        before = bytes_read()
        page = reader.page(path, count=1000, **position)
        assert bytes_read() - before < 100_000_000
        visible = [line for line in page["lines"] if line.strip("\0")]
        assert visible == lines_there
        assert sum(map(len, page["lines"])) <= pages.PAGE_BYTES + pages.LONGEST
    middle = reader.page(path, near=5_000_000_000, count=10)
    assert (middle["inside"], middle["more"]) == (list(range(10)), True)
    assert 0 <= 5_000_000_000 - middle["offsets"][0] < pages.LONGEST


def test_parts_for_a_download_are_the_bytes_of_the_file(folder: Path) -> None:
    data = os.urandom(2_500_000)
    path = spill(folder, data)
    reader = SpillPages(SpillFolder(folder))
    received, at = b"", 0
    while at < len(data):
        part = reader.part(path, at, 1_000_000)
        received += base64.b64decode(part["data"])
        assert part["end"] > at and part["bytes"] == len(data)
        at = part["end"]
    assert received == data
    assert reader.part(path, 10**9)["data"] == ""
