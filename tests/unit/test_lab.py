"""Pages of spilled outputs: lines by number and from the end, in growing files; no other file; bounded work."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.jupyter import lab
from opencode_jupyter.jupyter.lab import SpillPages
from opencode_jupyter.jupyter.served import files_url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tool-output"
    made.mkdir()
    return made


def spill(folder: Path, data: bytes, name: str = "tool_1") -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def test_pages_by_number_and_from_the_end(folder: Path) -> None:
    path = spill(folder, b"".join(b"%d\n" % n for n in range(1, 1001)))
    pages = SpillPages(folder)
    assert pages.page(path, 501, 3) == {
        "first": 501, "lines": ["501", "502", "503"], "bytes": 3893, "total": 1000, "more": True,
    }  # fmt: skip
    last = pages.page(path, 0, 2)
    assert (last["first"], last["lines"], last["total"], last["more"]) == (999, ["999", "1000"], 1000, False)
    assert pages.page(path, 10**9, 2)["lines"] == ["999", "1000"]
    assert pages.page(path, 1000, 5)["lines"] == ["1000"]


@settings(deadline=None, max_examples=150)
@given(
    data=st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\r", b"")), max_size=40).map(b"\n".join),
    line=st.integers(-2, 45),
    count=st.integers(1, 50),
    step=st.integers(1, 30),
)
def test_every_page_is_what_the_file_has(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, line: int, count: int, step: int
) -> None:
    folder = tmp_path_factory.mktemp("d")
    path = spill(folder, data)
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    first = line if 1 <= line <= len(lines) else max(1, len(lines) - count + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "STEP", step)
        pages = SpillPages(folder)
        for _ in range(2):  # the second time with the places known
            page = pages.page(path, line, count)
            assert page["first"] == first
            assert len(page["lines"]) == len(lines[first - 1 : first - 1 + count])
            assert page["lines"] == [
                lab.readable(text.decode("utf-8", "replace")) for text in lines[first - 1 : first - 1 + count]
            ]
            assert page["more"] == (first - 1 + count < len(lines))
            assert page["total"] in (None, len(lines))


def test_a_file_that_grows_is_read_on(folder: Path) -> None:
    path = spill(folder, b"1\n2\n3")
    pages = SpillPages(folder)
    assert pages.page(path, 0)["total"] == 3
    with open(path, "ab") as file:
        file.write(b"3\n4\n")
    page = pages.page(path, 0)
    assert (page["lines"], page["total"]) == (["1", "2", "33", "4"], 4)


def test_text_is_made_safe_and_long_lines_are_cut(folder: Path) -> None:
    path = spill(folder, b"\x1b[31mred\x1b[0m\r\n\xff\xe2\x80\xae\n" + b"x" * 3_000_000 + b"\nend")
    page = SpillPages(folder).page(path, 1)
    assert page["lines"][:2] == ["red", "�\\u202e"]
    assert page["lines"][2] == "x" * lab.LINE_BYTES + f" … ({3_000_000 - lab.LINE_BYTES:,} more bytes in this line)"
    assert page["lines"][3] == "end"


def test_only_regular_files_of_the_folder(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (folder / "link").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    (folder / "sub" / "tool_1").write_text("x")
    pages = SpillPages(folder)
    odd: list[Any] = [
        secret, folder / "link", folder / "pipe", folder, folder / ".." / "secret", folder / "sub" / "tool_1",
        "", "tool_1", None, "a\0b", 5, "/etc/passwd", folder / "gone", folder / ("x" * 300),
    ]  # fmt: skip
    for path in odd:
        page = pages.page(path if path is None else str(path), 1)
        assert list(page) == ["error"], path
        assert "secret" not in page["error"].replace(str(secret), "") or "only whole outputs" in page["error"]
    assert "not there any more" in pages.page(str(folder / "gone"))["error"]


@pytest.mark.parametrize(("line", "count"), [("x", "y"), (None, None), (-5, -5), (1.5, 10**9), (True, False)])
def test_odd_numbers_are_taken(folder: Path, line: Any, count: Any) -> None:
    assert SpillPages(folder).page(spill(folder, b"a\nb\n"), line, count)["lines"]


def test_a_long_search_is_cut_into_several_requests(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = spill(folder, b"x\n" * 2_000_000)
    monkeypatch.setattr(lab, "SCAN_SECONDS", 0.0)
    pages = SpillPages(folder)
    scanned = []
    while "scanned" in (page := pages.page(path, 1_900_000, 1)):
        assert page["bytes"] == 4_000_000
        scanned.append(page["scanned"])
    assert page["first"] == 1_900_000
    assert scanned == sorted(set(scanned)) and len(scanned) > 5


def test_line_1000000_of_200_mb_comes_at_once(folder: Path) -> None:
    path = spill(folder, b"")
    with open(path, "wb") as file:
        file.writelines((b"y" * 99 + b"\n") * 50_000 for _ in range(40))
    began = time.perf_counter()
    page = SpillPages(folder).page(path, 1_000_000, 400)
    assert page["first"] == 1_000_000
    assert time.perf_counter() - began < 1


def served(monkeypatch: pytest.MonkeyPatch, runtime: Path, root: Path, base: str = "/") -> None:
    runtime.mkdir(exist_ok=True)
    (runtime / "jpserver-4242.json").write_text(f'{{"root_dir": "{root}", "base_url": "{base}"}}')
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("JPY_PARENT_PID", "4242")


def test_the_server_hands_out_what_is_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "data x").mkdir(parents=True)
    served(monkeypatch, tmp_path / "runtime", root, "/user/ada/")
    assert files_url(str(root / "data x" / "tool_ü#1")) == "/user/ada/files/data%20x/tool_%C3%BC%231"
    assert files_url(str(tmp_path / "tool_1")) is None
    assert files_url(str(root / ".local" / "tool_1")) is None, "servers refuse hidden files"
    for value in ("", "1", "x"):
        monkeypatch.setenv("JPY_PARENT_PID", value)
        assert files_url(str(root / "a")) is None
    monkeypatch.setenv("JPY_PARENT_PID", "4242")
    (tmp_path / "runtime" / "jpserver-4242.json").write_text("[]")
    assert files_url(str(root / "a")) is None
