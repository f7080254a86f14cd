"""A program: HTML on stdin, Markdown or text on stdout, behind one line of JSON about it.

Runs in a process of its own (`page`), so that a hostile page can at worst end that: conversion is native code, a page
may be built to exhaust stack, memory or time, and a thread can't be stopped.

    python -I -S _convert.py FOLDER FORMAT CODEC SECONDS BYTES
"""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from html.parser import HTMLParser
from typing import Any

SKIPPED = frozenset({"script", "style", "noscript", "iframe", "object", "embed"})
"""Elements whose content is no text (reference: tools.md 10)."""
VOID = frozenset({"embed"})
MEMORY = 1 << 30
"""Bytes of address space; 5 MB of dense markup take half of it."""
_TITLE = re.compile(r"<title[^<>]*>([^<]{1,1000})</title", re.IGNORECASE)
_LINK = re.compile(r"<(?:a|area|iframe|frame|form|img)\s[^<>]*>", re.IGNORECASE)
_SCRIPT_URL = re.compile(
    r"""(\s(?:href|src|action)\s*=\s*)("\s*(?:javascript|vbscript):[^"]*"|'\s*(?:javascript|vbscript):[^']*'"""
    r"""|(?:javascript|vbscript):[^\s>]*)""",
    re.IGNORECASE,
)
_REMOVED = re.compile(r"<(script|style)\b[^<>]*>.*?</\1\s*>|<(?:meta|link)\b[^<>]*>", re.IGNORECASE | re.DOTALL)


class Text(HTMLParser):
    """Gathers the text nodes in their order, as they stand."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._inside: list[str] = []
        """Skipped elements that are open."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in SKIPPED and tag not in VOID:
            self._inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """HTML knows no self-closing of these: ``<iframe/>`` opens one."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.parts.append(data)


def text(html: str) -> str:
    """The page's text: nothing is put between elements, white space stays, the ends are trimmed."""
    parser = Text()
    parser.feed(html)
    parser.close()
    return "".join(parser.parts).strip()


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
    page = _LINK.sub(lambda found: _SCRIPT_URL.sub(r'\1""', found[0]), html)
    result = library.convert(page, library.ConversionOptions(**options))
    content = (result.content or "").strip()
    if any("depth" in str(warning.kind) for warning in result.warnings):
        return text(html), "the page is nested too deeply for Markdown: this is its plain text"
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
