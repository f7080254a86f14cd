"""A program: HTML on stdin, one line of JSON and then Markdown or text on stdout.

Runs in a process of its own (`page`), so that a hostile page can at worst end that: a page may be built to exhaust
memory or time, and a thread can't be stopped. It imports the standard library, its neighbours and html-to-markdown;
`page` starts it with their folders as the only ones besides the standard library's.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from html import unescape
from io import StringIO

from ._html_reduction import BLOCKS, ESCAPE, REFERENCES, VOID, events, simplify

SKIPPED = frozenset({"script", "style", "noscript", "iframe", "object", "embed"})
"""Elements whose content is no text (docs/opencode/tools.md 10)."""
MEMORY = 512 << 20
"""Bytes of address space."""
PLAIN = "the page is too dense or too deeply nested for Markdown: this is its text"


def text(html: str, *, lines: bool = False) -> str:
    """The page's text: white space stays, the ends are trimmed.

    Args:
        html: the page.
        lines: whether blocks are paragraphs; OpenCode's plain text puts nothing between elements.
    """
    out = StringIO()
    inside: Counter[str] = Counter()
    depth = 0
    for kind, value, name in events(html):
        if kind == "text" or kind == "raw":
            if depth == 0:
                out.write(unescape(value) if "&" in value and (not name or name in REFERENCES) else value)
        elif value in SKIPPED and value not in VOID:
            if kind == "open":
                inside[value] += 1
                depth += 1
            elif inside[value]:
                inside[value] -= 1
                depth -= 1
        elif lines and (value in BLOCKS or value in ("br", "title")):
            out.write("\n")
    if lines:
        return "\n\n".join(line for line in map(str.strip, out.getvalue().split("\n")) if line)
    return out.getvalue().strip()


def markdown(html: str) -> tuple[str, str]:
    """The page in Markdown, and a note; its text if it can't be Markdown."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        list_indent_width=4,
        bullets="-",
        autolinks=False,
        extract_metadata=False,
        compact_tables=True,
        br_in_tables=True,
        preprocessing=PreprocessingOptions(enabled=False),
    )
    simple = simplify(html)
    if simple is None:
        return text(html, lines=True), PLAIN
    result = convert(simple, options)
    if any("depth" in str(warning.kind) for warning in result.warnings):  # what is deeper is missing
        return text(html, lines=True), PLAIN
    return (result.content or "").replace(ESCAPE, "\\").strip("\t\r\n "), ""


def main() -> None:
    """Convert what comes on stdin: ``FORMAT CODEC SECONDS BYTES`` are the arguments."""
    form, codec, seconds, most = sys.argv[-4:]
    _limit(int(seconds))
    html = sys.stdin.buffer.read().decode(codec, "replace").removeprefix("\ufeff")
    if form == "markdown":
        output, note = markdown(html)
    else:
        output, note = text(html, lines=form == "lines"), ""
    del html
    data = output.encode("utf-8", "replace")
    if len(data) > int(most):
        data, note = data[: int(most)], f"only the first {int(most) >> 20} MiB of the converted page"
    sys.stdout.buffer.write(json.dumps({"note": note}).encode() + b"\n")
    sys.stdout.buffer.write(data)


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
