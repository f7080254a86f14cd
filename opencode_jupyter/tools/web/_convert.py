"""A program: HTML on stdin, Markdown or text on stdout, behind one line of JSON about it.

Runs in a process of its own (`page`), so that a hostile page can at worst end that: conversion is native code, a page
may be built to exhaust stack, memory or time, and a thread can't be stopped.

    python -I -S _convert.py FOLDER FORMAT CODEC SECONDS BYTES
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from html import unescape
from io import StringIO
from typing import Any

SKIPPED = frozenset({"script", "style", "noscript", "iframe", "object", "embed"})
"""Elements whose content is no text (reference: tools.md 10)."""
VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
"""Elements that have no content."""
OPTIONAL_END = frozenset("p li dt dd tr td th thead tbody tfoot option optgroup colgroup rt rp body head html".split())
"""Elements that may be left open without holding what follows."""
DEPTH = 1000
"""Open elements that the library follows; what is deeper it leaves out."""
TOO_DEEP = "the page is nested too deeply for Markdown: this is its plain text"
MEMORY = 1 << 30
"""Bytes of address space."""
TAGS, LETTERS = 12_000, 512 << 10
"""What the library is given at once: it takes up to 1 KB of memory for a tag, until all is converted."""
_LINE_END = re.compile(r"\r?\n[ \t\r\n\f]*+")
_KEEPS_LINES = re.compile(r"<(/?)(pre|textarea|script|style)(?=[\s/>])", re.IGNORECASE)
"""The last two so that what stands in them is taken for no tag."""
_TITLE = re.compile(r"<title[^<>]*>([^<]{1,1000})</title", re.IGNORECASE)
_LINK = re.compile(r"<(?:a|area|iframe|frame|form|img)\s[^<>]*>", re.IGNORECASE)
_SCRIPT_URL = re.compile(
    r"""(\s(?:href|src|action)\s*=\s*)("\s*(?:javascript|vbscript):[^"]*"|'\s*(?:javascript|vbscript):[^']*'"""
    r"""|(?:javascript|vbscript):[^\s>]*)""",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(/?)([a-zA-Z][^\s/>]*+)"  # then attributes: quotes count only behind an equals sign
    r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?=[^"'])[^\s>]*+|["']))*+>"""
)
_RAW_END = {
    name: re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE) for name in ("script", "style", "textarea", "title")
}

_BLOCKS = frozenset("p div section article ul ol dl table pre blockquote h1 h2 h3 h4 h5 h6 header footer nav".split())
_WHOLE = frozenset({"table", "pre", "ul", "ol", "dl"})
"""A long page is best cut at the end of a block that is in none of these."""
_ROWS = frozenset({"tr", "tbody", "tfoot", "thead"})
_ENDED_BY = {
    "p": _BLOCKS | _ROWS | {"li", "td", "th", "dt", "dd"},
    "li": frozenset({"li"}),
    **dict.fromkeys(("dt", "dd"), frozenset({"dt", "dd"})),
    **dict.fromkeys(("td", "th"), _ROWS | {"td", "th"}),
    **dict.fromkeys(_ROWS, _ROWS),
}
"""Elements that may be left open, and what begins only when they have ended."""

Event = tuple[str, str, int]
"""``("text", text)``, ``("open", name)`` or ``("close", name)``, and where in the page it ends."""


def events(html: str) -> Iterator[Event]:
    """Text and tags of a page in their order, in one pass whatever the page holds; comments are left out."""
    at, end = 0, len(html)
    while at < end:
        start = html.find("<", at)
        if start < 0:
            yield "text", html[at:], end
            return
        if start > at:
            yield "text", html[at:start], start
        after = html[start + 1 : start + 2]
        if after in ("!", "?"):
            comment = html.startswith("<!--", start)
            at = html.find("-->" if comment else ">", start + (4 if comment else 2))
            if at < 0:
                return
            at += 3 if comment else 1
            continue
        if not ((after.isascii() and after.isalpha()) or after == "/"):
            at = start + 1
            yield "text", "<", at
            continue
        tag = _TAG.match(html, start)
        if tag is None:
            at = html.find(">", start) + 1
            if at == 0:  # the page ends in the middle of a tag
                return
            continue
        name, at = tag[2].lower(), tag.end()
        if tag[1]:
            yield "close", name, at
            continue
        yield "open", name, at
        if name in _RAW_END:
            raw = _RAW_END[name].search(html, at)
            if raw is None:
                return
            if name in ("textarea", "title"):
                yield "text", html[at : raw.start()], raw.start()
            at = raw.start()


def text(html: str) -> str:
    """The page's text: nothing is put between elements, white space stays, the ends are trimmed."""
    out = StringIO()
    inside: Counter[str] = Counter()
    depth = 0
    for kind, value, _ in events(html):
        if kind == "text":
            if depth == 0:
                out.write(unescape(value) if "&" in value else value)
        elif value in SKIPPED and value not in VOID:
            if kind == "open":
                inside[value] += 1
                depth += 1
            elif inside[value]:
                inside[value] -= 1
                depth -= 1
    return out.getvalue().strip()


def flowed(html: str) -> str:
    """The page with a blank for each line end in running text, as in a browser; ``pre`` and ``textarea`` keep theirs.

    The library would keep them, and make two paragraphs of one that has an empty line in it.
    """
    out = StringIO()
    kept, at = "", 0
    for tag in _KEEPS_LINES.finditer(html):
        name = tag[2].lower()
        if tag[1] and kept == name:
            out.write(html[at : tag.start()])
            kept, at = "", tag.start()
        elif not tag[1] and not kept:
            out.write(_LINE_END.sub(" ", html[at : tag.start()]))
            kept, at = name, tag.start()
    out.write(html[at:] if kept else _LINE_END.sub(" ", html[at:]))
    return out.getvalue()


def too_deep(html: str) -> bool:
    """Whether more elements are open at once than the library follows."""
    if html.count("<") <= DEPTH:
        return False
    depth = 0
    for kind, name, _ in events(html):
        if kind == "text" or name in VOID or name in OPTIONAL_END:
            continue
        depth = depth + 1 if kind == "open" else max(depth - 1, 0)
        if depth > DEPTH:
            return True
    return False


def pieces(html: str) -> Iterator[str]:
    """A page in parts that the library can hold: each opens again what was open where it begins.

    It is cut beside a block, else between rows or items (a table or list goes on as another), else at any tag.
    """
    if html.count("<") <= TAGS and len(html) <= LETTERS:
        yield html
        return
    opened: list[str] = []
    head, start, tags, before = "", 0, 0, 0
    for kind, name, end in events(html):
        filled = max(tags / TAGS, (end - start) / LETTERS)
        cut = end if filled >= 1 else 0
        if kind == "close":
            if name in opened:
                del opened[len(opened) - 1 - opened[::-1].index(name) :]
            if filled >= 0.5 and name in _BLOCKS and _WHOLE.isdisjoint(opened):
                cut = end
        elif kind == "open" and name not in VOID:
            while opened and name in _ENDED_BY.get(opened[-1], ()):
                opened.pop()
            if filled >= 0.9 and (name in ("tr", "li", "dt") or (name == "p" and _WHOLE.isdisjoint(opened))):
                yield head + html[start:before]
                head, start, tags, cut = "".join(f"<{one}>" for one in opened), before, 0, 0
            if len(opened) < DEPTH:
                opened.append(name)
        tags += kind != "text"
        before = end
        if cut:
            yield head + html[start:cut]
            head, start, tags = "".join(f"<{one}>" for one in opened), cut, 0
    yield head + html[start:]


def markdown(html: str) -> tuple[str, str]:
    """The page in Markdown, and a word about it if something is to be known."""
    try:
        import html_to_markdown as library
    except ImportError:
        return text(html), "html-to-markdown is not installed for this platform: this is the page's plain text"
    options: dict[str, Any] = {
        "heading_style": "atx",
        "bullets": "-",
        "strong_em_symbol": "*",
        "code_block_style": "backticks",
        "extract_metadata": False,
        "inline_data_media": "alt_text_only",
        "autolinks": False,
        "preprocessing": library.PreprocessingOptions(remove_navigation=False, remove_forms=False),
    }
    if too_deep(html):
        return text(html), TOO_DEEP
    parts = []
    for piece in pieces(flowed(html)):
        page = _LINK.sub(lambda found: _SCRIPT_URL.sub(r'\1""', found[0]), piece)
        result = library.convert(page, library.ConversionOptions(**options))
        parts.append((result.content or "").strip())
        if any("depth" in str(warning.kind) for warning in result.warnings):
            return text(html), TOO_DEEP
    content = "\n\n".join(part for part in parts if part)
    title = _TITLE.search(html, 0, 1 << 16)
    if title is not None:
        name = " ".join(unescape(title[1]).split())
        content = f"{name}\n\n{content}".strip() if name else content
    return content, ""


def main() -> None:
    """Convert what comes on stdin."""
    folder, form, codec, seconds, most = sys.argv[1:6]
    _limit(int(seconds))
    sys.path.append(folder)
    html = sys.stdin.buffer.read().decode(codec, "replace").removeprefix("\ufeff")
    output, note = markdown(html) if form == "markdown" else (text(html), "")
    data = output.encode("utf-8", "replace")
    if len(data) > int(most):
        data, note = data[: int(most)], f"only the first {int(most) >> 20} MiB of the converted page"
    sys.stdout.buffer.write(json.dumps({"note": note}).encode() + b"\n" + data)


def _limit(seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the parent's time limit remains
        return
    for kind, most in (("RLIMIT_AS", MEMORY), ("RLIMIT_CPU", seconds), ("RLIMIT_CORE", 0)):
        try:
            resource.setrlimit(getattr(resource, kind), (most, most))
        except (ValueError, OSError, AttributeError):
            continue


if __name__ == "__main__":
    main()
