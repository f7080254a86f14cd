"""Pages built to break a converter end at worst the process that converts them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.tools.web import _convert, page

SIZE = 5 << 20


def bomb(tag: str) -> bytes:
    """A page of 5 MB of elements that are never closed."""
    return (f"<{tag}>" * (SIZE // (len(tag) + 2))).encode() + b"inner"


@pytest.mark.parametrize("tag", ["div", "ul><li"])
@pytest.mark.anyio
async def test_a_page_nested_without_end_gives_its_text(tag: str) -> None:
    converted = await page.convert(bomb(tag), "markdown", "utf-8", 60)
    assert converted.text == "inner"
    assert "nested too deeply" in converted.note


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<", "<" * SIZE),
        ("<!--", ""),
        ("<a ", ""),
        ("<a b='", ""),
        ("<script>", ""),
        ("<object>", ""),
        ("</p x", ""),
    ],
)
def test_hostile_text_takes_one_pass(html: str, text: str) -> None:
    began = time.process_time()
    assert _convert.text(html * (SIZE // len(html))) == text
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a < b &lt; c", "a < b < c"),
        ("<p title='>'>x</p>", "x"),
        ('<p title=">" data-x = y/>x', "x"),
        ("<p it's>x</p>it's", "xit's"),
        ("x<!-- <b> -->y<!doctype html>z<?php a ?>", "xyz"),
        ("<SCRIPT>a</b></Script>x", "x"),
        ("<script>a</scripty></script >x", "x"),
        ("<textarea><b>&amp;</textarea>", "<b>&"),
        ("<noscript><p>a</p></noscript>b", "b"),
        ("<iframe>a<b></iframe>c</iframe>d", "cd"),
        ("<embed>a</embed>b", "ab"),
        ("one<br>two", "onetwo"),
        ("&nbsp;x", "x"),
        ("x</p", "x"),
        ("</>x</1>y", "xy"),
    ],
)
def test_text(html: str, text: str) -> None:
    assert _convert.text(html) == text


def test_a_long_flat_page_is_not_deep() -> None:
    flat = "<ul>" + "<li>a<p>b<br><img>" * 5000 + "</ul><table>" + "<tr><td>c" * 5000 + "</table>"
    out, note = _convert.markdown(flat)
    assert (out.count("- a"), note) == (5000, "")


def test_a_long_page_is_converted_in_parts_that_fit_into_memory() -> None:
    row, item = "<tr><td>left<td>right", "<li>one<p>two"
    html = f"<body><p>first<table>{row * 9000}</table><ol>{item * 9000}</ol>{'<p>word <b>bold</b>' * 9000}<p>last"
    parts = list(_convert.pieces(html))
    assert len(parts) > 5
    assert max(part.count("<") for part in parts) <= _convert.TAGS + 10
    out, note = _convert.markdown(html)
    counts = (out.count("| left | right |"), out.count(". one"), out.count("word **bold**") + out.count("word *bold*"))
    assert (counts, note) == ((9000, 9000, 9000), "")
    assert (out.startswith("first"), out.endswith("last")) == (True, True)
    assert [_convert.text(part) for part in _convert.pieces("<p>short")] == ["short"]


@pytest.mark.anyio
async def test_a_converter_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "pid"
    program = tmp_path / "hang.py"
    program.write_text(f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n")
    monkeypatch.setattr(page, "_PROGRAM", program)
    began = time.perf_counter()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(page.convert(b"x", "text", "utf-8", 30), 1.5)
    assert time.perf_counter() - began < 3
    await asyncio.sleep(0.3)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.anyio
async def test_a_converter_that_crashes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "crash.py"
    program.write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGSEGV)})\n")
    monkeypatch.setattr(page, "_PROGRAM", program)
    with pytest.raises(ToolError, match=r"can't be converted to markdown \(exit code -11\)\. Ask for format \"html\""):
        await page.convert(b"x" * 1_000_000, "markdown", "utf-8", 30)


@pytest.mark.anyio
async def test_without_the_library_a_page_gives_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_library", lambda: "/nowhere")
    converted = await page.convert(b"<h1>a</h1> <p>b", "markdown", "utf-8", 30)
    assert converted.text == "a b"
    assert "html-to-markdown is not installed" in converted.note


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<!--",
                "-->",
                "<a b=",
                "'",
                '"',
                ">",
                "<script>",
                "</script>",
                "<iframe>",
                "</iframe>",
                "x",
                " ",
                "<",
                "&amp;",
            ]
        )
    )
)
def test_text_never_fails_and_keeps_what_stands_outside(parts: list[str]) -> None:
    html = "".join(parts)
    out = _convert.text(html)
    assert out == out.strip()
    assert "before" in _convert.text("before" + html)


def test_links_that_run_scripts_lose_their_target() -> None:
    html = """<a href="javascript:a()">1</a><a class=x href=javascript:b()>2</a><a href=' JavaScript:c("d")'>3</a>
    <a href="/ok">4</a><code>&lt;a href="javascript:e()"&gt;</code>"""
    out, note = _convert.markdown(html)
    assert note == ""
    assert "[4](/ok)" in out
    assert out.count("javascript:") == 1
    assert 'href="javascript:e()"' in out
