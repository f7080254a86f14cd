"""A model's words as HTML: the simple half of Markdown, built from escaped text; the twin of ``run/markdown.ts``.

Paragraphs, headings, lists, quotes, fenced and inline code, bold, italic, links to http(s). Anything else, HTML above
all, is shown as the text it is.
"""

from __future__ import annotations

import re
from html import escape

from ..mime import readable, visible
from ..render_style import pre

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([^`]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_INLINE = re.compile(
    r"(`+)(?P<code>.+?)(?<!`)\1(?!`)"
    r"|\[(?P<label>[^\[\]]*)\]\((?P<url>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)"
    r"|(?P<bare>https?://[^\s<>()\[\]\"'`]+[^\s<>()\[\]\"'`.,:;!?])"
    r"|(?P<strong>\*\*(?=\S)(?P<bold>.+?)(?<=\S)\*\*)"
    r"|(?<![\w*])(?P<em>\*(?=[^\s*])(?P<italic>[^*\n]+?)(?<=[^\s*])\*)(?![\w*])"
)
_HTTP = re.compile(r"https?://", re.IGNORECASE)
LONGEST = 2_000
"""Characters; a longer line is shown as it is, since looking for marks in it could take long."""
LEVELS = 3
"""Depth of `**` and `*` inside each other that is followed."""


def markdown(text: str) -> str:
    """HTML of a text."""
    lines = readable(text).strip("\n").split("\n")
    out: list[str] = []
    paragraph: list[str] = []
    at = 0

    def flush() -> None:
        if paragraph:
            out.append(f'<p style="margin:4px 0">{"<br>".join(inline(line) for line in paragraph)}</p>')
            paragraph.clear()

    while at < len(lines):
        line = lines[at]
        fence, heading = _FENCE.match(line), _HEADING.match(line)
        if fence:
            flush()
            end = at + 1
            closing = re.compile(rf"^ {{0,3}}{re.escape(fence[1][0])}{{{len(fence[1])},}}\s*$")
            while end < len(lines) and not closing.match(lines[end]):
                end += 1
            out.append(pre(escape("\n".join(lines[at + 1 : end]))))
            at = end + 1
            continue
        if heading:
            flush()
            size = {1: "17px", 2: "15px"}.get(len(heading[1]), "13px")
            out.append(f'<p style="margin:8px 0 4px;font-size:{size}"><b>{inline(heading[2])}</b></p>')
        elif _RULE.match(line):
            flush()
            out.append("<hr>")
        elif _BULLET.match(line):
            flush()
            end = at
            while end < len(lines) and (_BULLET.match(lines[end]) or (lines[end].startswith(("  ", "\t")))):
                end += 1
            out.append(_list(lines[at:end]))
            at = end
            continue
        elif line.lstrip().startswith(">"):
            flush()
            end = at
            while end < len(lines) and lines[end].lstrip().startswith(">"):
                end += 1
            quoted = "<br>".join(inline(one.lstrip()[1:].removeprefix(" ")) for one in lines[at:end])
            out.append(f'<blockquote style="margin:4px 0;padding-left:10px">{quoted}</blockquote>')
            at = end
            continue
        elif line.strip():
            paragraph.append(line)
        else:
            flush()
        at += 1
    flush()
    return "".join(out)


def _list(lines: list[str]) -> str:
    """A list; deeper ones keep their depth as an indent."""
    rows = []
    for line in lines:
        match = _BULLET.match(line)
        if match is None:
            rows.append(f'<div style="padding-left:18px">{inline(line.strip())}</div>')
            continue
        depth = len(match[1].expandtabs(4)) // 2
        mark = match[2] if match[2][0].isdigit() else "•"
        rows.append(f'<div style="padding-left:{18 * min(depth, 6)}px">{escape(mark)} {inline(match[3])}</div>')
    return f'<div style="margin:4px 0">{"".join(rows)}</div>'


def inline(text: str, level: int = 0) -> str:
    """HTML of a line: code, links, bold, italic; the rest escaped."""
    if len(text) > LONGEST:
        return escape(text)
    out, last = [], 0
    for match in _INLINE.finditer(text):
        out.append(escape(text[last : match.start()]))
        last = match.end()
        found = match.groupdict()
        if found["code"] is not None:
            code = found["code"]
            code = code[1:-1] if len(code) > 2 and code[0] == code[-1] == " " else code
            out.append(f"<code>{escape(code)}</code>")
        elif found["url"] is not None:
            out.append(_link(found["label"], found["url"], match.group()))
        elif found["bare"] is not None:
            out.append(_link(found["bare"], found["bare"], found["bare"]))
        elif level >= LEVELS:
            out.append(escape(match.group()))
        elif found["strong"] is not None:
            out.append(f"<b>{inline(found['bold'], level + 1)}</b>")
        else:
            out.append(f"<i>{inline(found['italic'], level + 1)}</i>")
    return "".join([*out, escape(text[last:])])


def _link(label: str, url: str, source: str) -> str:
    """A link where it leads to the web, and says so; else the text it was."""
    if not _HTTP.match(url):
        return escape(source)
    shown = escape(label) or escape(url)
    where = f' <span class="oc-s-dim">({escape(visible(url))})</span>' if label != url else ""
    return f'<a class="oc-s-link" href="{escape(url)}" rel="noopener">{shown}</a>{where}'
