"""The viewer of whole outputs, against reading the same bytes once: a far line, a place, a search."""

from __future__ import annotations

import time
from typing import Any

from opencode_jupyter.jupyter.spill import SpillRequests

from ._measure import Options, Row, best, large_file

LIMIT_LINE = 1.0
"""Seconds until a far line of 200 MB is there."""
LIMIT_PLACE = 0.1
ROUNDS = 3


def run(options: Options) -> list[Row]:
    """A line, a place and a search in one large file."""
    folder = options.folder / "tool-output"
    folder.mkdir()
    path = folder / "tool_1"
    megabytes = min(options.megabytes, 200)
    lines = large_file(path, megabytes)

    def read() -> None:
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass

    bare, line, place, search = best(
        ROUNDS,
        read,
        lambda: _line(folder, str(path), lines - 10),
        lambda: SpillRequests(folder).pages.page(str(path), near=megabytes * 500_000),
        lambda: _search(folder, str(path), f"{lines - 1:012d}"),
    )
    peer = f"reading the file: {bare:.3f} s"
    return [
        Row(
            f"the last lines of {megabytes} MB by number", f"{line:.3f} s", peer, line / bare,
            f"< {LIMIT_LINE:g} s", line < LIMIT_LINE,
        ),
        Row(
            "its middle by the scrollbar", f"{place:.4f} s", peer, place / bare, f"< {LIMIT_PLACE:g} s",
            place < LIMIT_PLACE,
        ),
        Row("a search to its end", f"{search:.3f} s", peer, search / bare, "", None),
    ]  # fmt: skip


def _line(folder: Any, path: str, line: int) -> None:
    pages = SpillRequests(folder).pages
    while "scanned" in (page := pages.page(path, line)):
        pass
    if page["first"] != line:
        raise RuntimeError(f"asked for line {line}, got {page.get('first')}: {page.get('error')}")


def _search(folder: Any, path: str, text: str) -> None:
    requests = SpillRequests(folder)
    state = requests.searches.on_request({"id": "1", "path": path, "text": text})
    while not state.get("done"):
        time.sleep(0.005)
        state = requests.searches.on_request({"id": "1"})
        if "error" in state:
            raise RuntimeError(state["error"])
    if state["hits"] != 1:
        raise RuntimeError(f"{state['hits']} hits, not 1")
