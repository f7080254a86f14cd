"""A program: HTML on stdin, one line of JSON and then Markdown or text on stdout.

Runs in a process of its own (`html_converter`), so that a hostile page can at worst end that: a page may be built to
exhaust memory or time, and a thread can't be stopped. It imports the standard library and html-to-markdown;
`html_converter` starts it with their folders as the only ones.

For Markdown the page is first reduced to what becomes Markdown, as html-to-markdown needs it to write what Turndown
writes: one pass over the tags, and whatever the page holds, what comes out has well-formed tags and the attributes
named here.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape, unescape
from html.entities import html5
from io import StringIO

SKIPPED = frozenset({"script", "style", "noscript", "iframe", "object", "embed"})
"""Elements whose content is no text (docs/opencode/tools.md 10)."""
MEMORY = 512 << 20
"""Bytes of address space."""
PLAIN = "the page is too dense or too deeply nested for Markdown: this is its text"


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


def text(html: str, *, lines: bool = False) -> str:
    """The page's text: white space stays, the ends are trimmed.

    Args:
        html: the page.
        lines: whether blocks are paragraphs; OpenCode's plain text puts nothing between elements.
    """
    out = StringIO()
    inside: Counter[str] = Counter()
    depth = 0
    for kind, value, name in _events(html):
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
    simple = _simplify(html)
    if simple is None:
        return text(html, lines=True), PLAIN
    result = convert(simple, options)
    if any("depth" in str(warning.kind) for warning in result.warnings):  # what is deeper is missing
        return text(html, lines=True), PLAIN
    return (result.content or "").replace(ESCAPE, "\\").strip("\t\r\n "), ""


# ---------------------------------------------------------------------- the page reduced to what becomes Markdown

ELEMENTS = 250_000
"""Elements that become Markdown: the library takes some 500 bytes of memory for each."""
_RENAMED = {
    **dict.fromkeys(("noscript", "details", "summary", "dialog", "figcaption", "iframe"), "div"),
    **dict.fromkeys(("svg", "math", "noembed", "noframes", "textarea"), "span"),
    "image": "img",
    "kbd": "span",
    "samp": "span",
    "title": "p",
    "xmp": "pre",
}
"""Elements that the library leaves out, decorates, or writes as a picture."""
_KEPT = {
    "a": ("href", "title"),
    "img": ("src", "alt", "title"),
    "ol": ("start",),
    "pre": ("class",),
    "code": ("class",),
    "td": ("colspan", "rowspan"),
    "th": ("colspan", "rowspan"),
    "input": ("type",),
}
_SPAN = 100
"""Columns or rows that a cell may span."""
_TABLE = frozenset("table caption tr td th thead tbody tfoot col colgroup".split())
_NOT_IN_CELLS = frozenset("pre table ul ol dl h1 h2 h3 h4 h5 h6 blockquote hr".split())
"""Elements that make the table around them a layout, since a Markdown cell is one line."""
_SPACE = re.compile(r"[ \t\r\n]+")
ESCAPE = "\ufdd0"
"""Stands for a backslash, which the library would escape; it is no character, so no page has it."""
_ANYWHERE = re.compile(r"[*`\[\]_]")
_FIRST = re.compile(r"-|\+ |=+|#{1,6} |~~~|>")
_NUMBERED = re.compile(r"\A([0-9]+)\. ")
_IGNORED_IN_URLS = re.compile(r"[\t\r\n]")
_UNSAFE = ("javascript:", "vbscript:", "data:")
_CONTROLS = "".join(map(chr, range(33)))


@dataclass(slots=True)
class _Table:
    pieces: list[int] = field(default_factory=list)
    layout: bool = False
    cells: int = 0
    columns: int = 0
    """Those of the widest row; a heading counts twice, so that a headed column is a table."""


def _simplify(html: str) -> str | None:
    """The page's HTML, reduced to what becomes Markdown; None if it has more than `ELEMENTS` elements."""
    out: list[str] = []
    tables: list[_Table] = []
    elements = pre = code = drawing = 0
    begins = True  # a text node: what an element or a comment ends
    for kind, value, rest in _events(html.replace("\0", "").replace(ESCAPE, "")):
        if kind == "text":
            text = value if pre else _SPACE.sub(" ", value)
            out.append(escape(unescape(text) if pre or code else _escape_markdown(unescape(text), begins)))
        elif kind == "raw" and rest not in ("script", "style"):
            text = unescape(value) if rest in REFERENCES else value
            out.append(escape(text if rest == "xmp" else _escape_markdown(_SPACE.sub(" ", text), True)))
        elif kind == "open":
            elements += 1
            if elements > ELEMENTS:
                return None
            pre += value == "pre"
            code += value == "code"
            drawing += value == "svg"
            if tables and value in _NOT_IN_CELLS:
                tables[-1].layout = True
            if value == "table":
                tables.append(_Table())
            if tables and value in _TABLE:
                table = tables[-1]
                table.pieces.append(len(out))
                table.cells = 0 if value == "tr" else table.cells + {"td": 1, "th": 2}.get(value, 0)
                table.columns = max(table.columns, table.cells)
            out.append(_open("span" if value == "title" and drawing else value, rest))
        elif kind == "close":
            pre -= value == "pre" and pre > 0
            code -= value == "code" and code > 0
            drawing -= value == "svg" and drawing > 0
            if tables and value in _TABLE:
                tables[-1].pieces.append(len(out))
            out.append(_close("span" if value == "title" and drawing else value))
            if value == "table" and tables:
                _end_table(tables.pop(), out)
        begins = kind != "text"
    while tables:
        _end_table(tables.pop(), out)
    return "".join(out)


def _open(name: str, source: str) -> str:
    if name in ("script", "style"):
        return ""
    name = _RENAMED.get(name, name)
    attribute_names = _KEPT.get(name, ())
    values = (
        dict(zip(attribute_names, _attributes(source, *attribute_names), strict=True))
        if attribute_names and source
        else {}
    )
    if name == "img":
        if not values.get("src"):
            return ""
        if _is_unsafe(values["src"]):
            return escape(_escape_markdown(values["alt"], False))
        values["alt"] = _escape_markdown(values["alt"], False)
    elif name == "a" and _is_unsafe(values.get("href", "")):
        values = {}
    elif name in ("td", "th"):
        values = {key: value for key, value in values.items() if value.isdecimal() and 1 < int(value[:9]) <= _SPAN}
    return f"<{name}" + "".join(f' {key}="{escape(value)}"' for key, value in values.items() if value) + ">"


def _close(name: str) -> str:
    if name in ("script", "style") or (name in VOID and name != "br"):
        return ""
    return f"</{_RENAMED.get(name, name)}>"


def _end_table(table: _Table, out: list[str]) -> None:
    """Write a table that only lays out the page as paragraphs."""
    if table.layout or table.columns < 2:
        for at in table.pieces:
            out[at] = "</div>" if out[at].startswith("</") else "<div>"


def _escape_markdown(text: str, begins: bool) -> str:
    """Escape what means something in Markdown where Turndown does, not wherever the library would."""
    text = _ANYWHERE.sub(rf"{ESCAPE}\g<0>", text.replace("\\", ESCAPE * 2))
    if not begins:
        return text
    return ESCAPE + text if _FIRST.match(text) else _NUMBERED.sub(rf"\1{ESCAPE}. ", text, count=1)


def _is_unsafe(url: str) -> bool:
    """Return whether a URL is a script or data: browsers ignore controls before it and line ends in it."""
    return _IGNORED_IN_URLS.sub("", url[:200].lstrip(_CONTROLS)).lstrip(_CONTROLS).lower().startswith(_UNSAFE)


# ---------------------------------------------------------------------- tags and text of a page

RAW = frozenset("script style textarea title iframe xmp noembed noframes".split())
"""Elements in which no tag counts but their own end."""
REFERENCES = frozenset({"textarea", "title"})
"""Those of them in which `&amp;` means something."""
VOID = frozenset("area base basefont bgsound br col embed hr img input keygen link meta param source track wbr".split())
"""Elements that have no content."""
BLOCKS = frozenset(
    "address article aside audio blockquote canvas center dd dir div dl dt fieldset figcaption figure footer form h1 h2"
    " h3 h4 h5 h6 header hgroup hr isindex li main menu nav noscript ol output p pre section table td tr ul caption"
    " th".split()
)
"""Elements that stand on lines of their own (Turndown's list, and a table's caption)."""
_TAG = re.compile(
    r"<(/?)([a-zA-Z][^\s/>]*+)"  # then attributes: quotes count only after an equals sign
    r"""((?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?=[^"'])[^\s>]*+|["']))*+)>"""
)
_RAW_END = {name: re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE) for name in RAW}
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=][^\s>/=]*+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>]*+))?""")
_REFERENCE = re.compile(r"&(?:#[xX]?[0-9a-fA-F]++|[a-zA-Z][a-zA-Z0-9]*+)(;?)(=?)")

Event = tuple[str, str, str]
"""``("text", as written, "")``, ``("raw", what stands in it, name)``, ``("open", name, attributes)``,
``("close", name, "")`` or ``("comment", "", "")``."""


def _events(html: str) -> Iterator[Event]:
    """Text and tags of a page in their order, in one pass whatever the page holds."""
    at, end = 0, len(html)
    find, match = html.find, _TAG.match
    while at < end:
        start = find("<", at)
        if start < 0:
            yield "text", html[at:], ""
            return
        if start > at:
            yield "text", html[at:start], ""
        tag = match(html, start)
        if tag is not None:
            name, at = tag[2].lower(), tag.end()
            if tag[1]:
                yield "close", name, ""
                continue
            yield "open", name, tag[3]
            if name in RAW:
                raw = _RAW_END[name].search(html, at)
                if raw is None:
                    return
                if raw.start() > at:
                    yield "raw", html[at : raw.start()], name
                at = raw.start()
            continue
        after = html[start + 1 : start + 2]
        if after in ("!", "?"):
            at = _declaration(html, start)
            if html.startswith("<!--", start):
                yield "comment", "", ""
        elif after == "/" or (after.isascii() and after.isalpha()):
            at = find(">", start) + 1
        else:
            at = start + 1
            yield "text", "<", ""
            continue
        if at == 0:  # the page ends in the middle of a tag or comment
            return


def _declaration(html: str, start: int) -> int:
    """The end of a comment or declaration; 0 if it has none."""
    if not html.startswith("<!--", start):
        return html.find(">", start + 2) + 1
    for short in ("<!-->", "<!--->"):
        if html.startswith(short, start):
            return start + len(short)
    end = _COMMENT_END.search(html, start + 4)
    return end.end() if end else 0


def _attributes(source: str, *names: str) -> list[str]:
    """The values of a tag's attributes, references undone, empty where it has none; of several the first counts."""
    values: dict[str, str] = {}
    for part in _ATTRIBUTE.finditer(source):
        name, value = part[1].lower(), part[2] or ""
        if name not in names or name in values:
            continue
        if value[:1] in ('"', "'"):
            value = value[1:-1]
        values[name] = _REFERENCE.sub(_undone, value) if "&" in value else value
    return [values.get(name, "") for name in names]


def _undone(reference: re.Match[str]) -> str:
    """A reference in an attribute: ``&copy=`` and ``&copyx`` are none there, so that queries keep their names."""
    if not reference[0].startswith("&#") and not reference[1] and (reference[2] or reference[0][1:] not in html5):
        return reference[0]
    return unescape(reference[0])
