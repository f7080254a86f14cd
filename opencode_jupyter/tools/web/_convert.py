"""A program: HTML on stdin, Markdown or text on stdout, behind one line of JSON about it.

Runs in a process of its own (`page`), so that a hostile page can at worst end that: a page may be built to exhaust
memory or time, and a thread can't be stopped. It imports the standard library and its neighbours alone; `page` starts
it with the folder above as the only one besides the library's.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from html import unescape
from io import StringIO

from ._markdown import TOO_DEEP, TOO_DENSE, Writer
from ._nesting import VOID
from ._tokens import REFERENCES, events

SKIPPED = frozenset({"script", "style", "noscript", "iframe", "object", "embed"})
"""Elements whose content is no text (reference: tools.md 10)."""
MEMORY = 512 << 20
"""Bytes of address space."""


def text(html: str) -> str:
    """The page's text: nothing is put between elements, white space stays, the ends are trimmed."""
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
    return out.getvalue().strip()


def markdown(html: str) -> tuple[str, str]:
    """The page in Markdown, and a word about it if something is to be known."""
    writer = Writer()
    content = writer.convert(html)
    return content, TOO_DENSE if writer.dense else TOO_DEEP if writer.deep else ""


def main() -> None:
    """Convert what comes on stdin: ``FORMAT CODEC SECONDS BYTES`` are the arguments."""
    form, codec, seconds, most = sys.argv[-4:]
    _limit(int(seconds))
    html = sys.stdin.buffer.read().decode(codec, "replace").removeprefix("\ufeff")
    output, note = markdown(html) if form == "markdown" else (text(html), "")
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
