"""A model's words as HTML: the simple half of Markdown, built from escaped text; the twin of ``run/markdown.ts``.

Paragraphs, headings, lists, quotes, tables, fenced and inline code, bold, italic, links to http(s), formulas (for the
page's typesetter, such as that of an HTML export). Anything else, HTML above all, is shown as the text it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from ..mime import readable, visible
from ..render_style import MATH, pre

_FENCE = re.compile(r"^ {0,3}(`{3,}(?!`)|~{3,}(?!~))[^`]*$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*)$")
_BULLET = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_UNDER = re.compile(r"^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
"""The line below a table's head."""
_BAR = re.compile(r"(?<!\\)\|")
_FORMULA_START = re.compile(r"^\s*(?:\$\$|\\\[)")
_FORMULA_END = re.compile(r"(?:\$\$|\\\])\s*$")
_INLINE = re.compile(
    r"(?P<formula>\$\$[^$]+\$\$|\\\(.+?\\\)|\\\[.+?\\\]"
    r"|(?<![\w\\])\$(?=[^\s$])[^$]*?(?<=[^\s\\])\$(?![\w$]))"
    r"|(?P<ticks>`+)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|\[(?P<label>[^\[\]]*)\]\((?P<url>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)"
    r"|(?P<bare>https?://[^\s<>()\[\]\"'`]+[^\s<>()\[\]\"'`.,:;!?])"
    r"|(?P<strong>\*\*(?=\S)(?P<bold>.{1,400}?)(?<=\S)\*\*)"
    r"|(?<![\w*])(?P<em>\*(?=[^\s*])(?P<italic>[^*\n]+?)(?<=[^\s*])\*)(?![\w*])"
)
_HTTP = re.compile(r"https?://", re.IGNORECASE)
LONGEST = 2_000
"""Characters; a longer line is shown as it is, since looking for marks in it could take long."""
FORMULA_LINES = 100
"""Lines of the longest formula; without a limit, looking for the ends of many open ones could take long."""
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
        several = _several(lines, at)
        if several is not None:
            flush()
            html, at = several
            out.append(html)
            continue
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
            title = heading[2].rstrip().rstrip("#").rstrip()
            out.append(f'<p style="margin:8px 0 4px;font-size:{size}"><b>{inline(title)}</b></p>')
        elif _RULE.match(line):
            flush()
            out.append("<hr>")
        elif line.strip():
            paragraph.append(line)
        else:
            flush()
        at += 1
    flush()
    return "".join(out)


def _several(lines: list[str], at: int) -> tuple[str, int] | None:
    """What takes several lines from `at` on, a table, list or quote: its HTML, and the place behind it."""
    if _FENCE.match(lines[at]) or _HEADING.match(lines[at]):
        return None
    if _is_head(lines, at):
        end = _until(lines, at + 2, lambda line: "|" in line)
        return _table(lines[at:end]), end
    if _RULE.match(lines[at]):
        return None
    if _BULLET.match(lines[at]):
        end = _until(lines, at, lambda line: bool(_BULLET.match(line)) or line.startswith(("  ", "\t")))
        return _list(lines[at:end]), end
    if lines[at].lstrip().startswith(">"):
        end = _until(lines, at, lambda line: line.lstrip().startswith(">"))
        quoted = "<br>".join(inline(one.lstrip()[1:].removeprefix(" ")) for one in lines[at:end])
        return f'<blockquote style="margin:4px 0;padding-left:10px">{quoted}</blockquote>', end
    if _FORMULA_START.match(lines[at]):
        end = _formula_end(lines, at)
        if end:
            return f"<div>{_formula(chr(10).join(lines[at:end]))}</div>", end
    return None


def _formula_end(lines: list[str], at: int) -> int:
    """The place behind a formula that begins with the line `at`; 0 if it has no end."""
    if len(lines[at].strip()) > len("$$$$") and _FORMULA_END.search(lines[at]):
        return at + 1
    rest = lines[at + 1 : at + FORMULA_LINES]
    length = _until(rest, 0, lambda line: bool(line.strip()) and not _FORMULA_END.search(line))
    return at + length + 2 if length < len(rest) and rest[length].strip() else 0


def _formula(text: str) -> str:
    """A formula, which the page's typesetter finds inside a card that it leaves alone."""
    return f'<span class="{MATH}">{escape(text)}</span>'


def _until(lines: list[str], at: int, wanted: Callable[[str], bool]) -> int:
    """The place behind the lines from `at` on that are wanted."""
    while at < len(lines) and wanted(lines[at]):
        at += 1
    return at


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


def _is_head(lines: list[str], at: int) -> bool:
    """Whether a table begins here: a line of cells above a line of as many dashes."""
    if "|" not in lines[at] or at + 1 >= len(lines) or len(lines[at + 1]) > LONGEST or "|" not in lines[at + 1]:
        return False
    return bool(_UNDER.match(lines[at + 1])) and len(_cells(lines[at])) == len(_cells(lines[at + 1]))


def _cells(line: str) -> list[str]:
    """The cells of a row; a bar behind a backslash stands for itself."""
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(inner)]


def _table(lines: list[str]) -> str:
    """A table: head, dashes (which may say how a column is aligned), rows. Rows get as many cells as the head has."""
    head = _cells(lines[0])
    sides = [_side(cell) for cell in _cells(lines[1])]
    rows: list[str] = []
    for line in (lines[0], *lines[2:]):
        tag = "td" if rows else "th"
        cells = (_cells(line) + [""] * len(head))[: len(head)]
        drawn = "".join(
            f'<{tag} style="text-align:{side};padding:2px 10px;border-bottom:1px solid rgba(128,128,128,.3)">'
            f"{inline(cell)}</{tag}>"
            for cell, side in zip(cells, sides, strict=True)
        )
        rows.append(f"<tr>{drawn}</tr>")
    return f'<table style="border-collapse:collapse;margin:4px 0">{"".join(rows)}</table>'


def _side(dashes: str) -> str:
    if dashes.endswith(":"):
        return "center" if dashes.startswith(":") else "right"
    return "left"


def inline(text: str, level: int = 0) -> str:
    """HTML of a line: formulas, code, links, bold, italic; the rest escaped."""
    if len(text) > LONGEST:
        return escape(text)
    out, last = [], 0
    for match in _INLINE.finditer(text):
        out.append(escape(text[last : match.start()]))
        last = match.end()
        found = match.groupdict()
        if found["formula"] is not None:
            out.append(_formula(found["formula"]))
        elif found["code"] is not None:
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
