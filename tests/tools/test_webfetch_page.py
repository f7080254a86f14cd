"""Pages built to break a converter end at worst the process that converts them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencode_jupyter.core.errors import ToolError
from opencode_jupyter.tools.web import _html_converter_process, html_converter

SIZE = 5 << 20


def bomb(tag: str) -> bytes:
    """A page of 5 MB of elements that are never closed."""
    return (f"<{tag}>" * (SIZE // (len(tag) + 2))).encode() + b"inner"


@pytest.mark.parametrize("tag", ["div", "ul><li"])
@pytest.mark.anyio
async def test_a_page_nested_without_end_keeps_its_text(tag: str) -> None:
    converted = await html_converter.convert(bomb(tag), "markdown", "utf-8", 60)
    assert converted.text.strip("->* ") == "inner"
    assert converted.note == _html_converter_process.PLAIN


@pytest.mark.parametrize("unit", ["<ul><li>x", "<table><tr><td>a<td>b", "\U0001f600<br>"])
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory a process took")
def test_five_megabytes_of_dense_markup_take_bounded_memory(unit: str) -> None:
    """The converting process, its interpreter's 10 MB and the page included."""
    program = (
        html_converter.PROGRAM
        + "; print([x for x in open('/proc/self/status') if x.startswith('VmHWM')][0], file=sys.stderr)"
    )
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        program,
        html_converter.module_folders(),
        "markdown",
        "utf-8",
        "60",
        str(8 << 20),
    ]
    done = subprocess.run(command, input=(unit * (SIZE // len(unit))).encode(), capture_output=True, check=True)
    assert int(done.stderr.split()[1]) < (160 << 10) + (SIZE >> 10)
    assert len(done.stdout) > SIZE // len(unit)


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
@pytest.mark.timeout(60)
def test_hostile_text_takes_one_pass(html: str, text: str) -> None:
    assert _html_converter_process.text(html * (SIZE // len(html))) == text


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
    assert _html_converter_process.text(html) == text


def test_a_long_flat_page_is_not_deep() -> None:
    flat = "<ul>" + "<li>a<p>b<br><img>" * 5000 + "</ul><table>" + "<tr><td>c<td>d" * 5000 + "</table>"
    out, note = _html_converter_process.markdown(flat)
    assert (out.count("- a"), out.count("| c | d |"), note) == (5000, 5000, "")


def test_a_page_of_too_many_elements_keeps_its_text() -> None:
    out, note = _html_converter_process.markdown("<title>T</title><p>x <b>y</b>" * 130_000)
    assert (out, note) == ("\n\n".join(["T", "x y"] * 130_000), _html_converter_process.PLAIN)


@pytest.mark.parametrize("html", ["<blockquote>" * 300 + "x<br>" * 100_000, "<table><tr>x" * 120_000])
@pytest.mark.skipif(sys.platform == "win32", reason="no limits there but the time's")
@pytest.mark.anyio
async def test_a_page_that_ends_the_converter_comes_as_text(html: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes in quotes need more memory than it may have, tables in tables more time."""
    monkeypatch.setattr(html_converter, "MARKDOWN_SECONDS", 2.0)
    converted = await html_converter.convert(html.encode(), "markdown", "utf-8", 60)
    assert converted.text == "\n\n".join("x" * html.count("x"))
    assert converted.note in (html_converter.TEXT_INSTEAD, _html_converter_process.PLAIN), (
        "a quick machine gets as far as the library's own limit"
    )


@pytest.mark.anyio
async def test_a_converter_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "pid"
    program = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    monkeypatch.setattr(html_converter, "PROGRAM", program)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(html_converter.convert(b"x", "text", "utf-8", 30), 1.5)
    await asyncio.sleep(0.3)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.anyio
async def test_a_converter_that_crashes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_converter, "PROGRAM", f"import os; os.kill(os.getpid(), {int(signal.SIGSEGV)})")
    with pytest.raises(ToolError, match=r"can't be converted to text \(exit code -11\)\. Ask for format \"html\""):
        await html_converter.convert(b"x" * 1_000_000, "markdown", "utf-8", 30)


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
    out = _html_converter_process.text(html)
    assert out == out.strip()
    assert "before" in _html_converter_process.text("before" + html)
