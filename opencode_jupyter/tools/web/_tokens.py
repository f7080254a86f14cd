"""The text and tags of a page, in their order: what WHATWG HTML 13.2.5 makes of any bytes, in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5

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
    r"<(/?)([a-zA-Z][^\s/>]*+)"  # then attributes: quotes count only behind an equals sign
    r"""((?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?=[^"'])[^\s>]*+|["']))*+)>"""
)
_RAW_END = {name: re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE) for name in RAW}
_COMMENT_END = re.compile(r"--!?>")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=][^\s>/=]*+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>]*+))?""")
_REFERENCE = re.compile(r"&(?:#[xX]?[0-9a-fA-F]++|[a-zA-Z][a-zA-Z0-9]*+)(;?)(=?)")

Event = tuple[str, str, str]
"""``("text", as written, "")``, ``("raw", what stands in it, name)``, ``("open", name, attributes)``,
``("close", name, "")`` or ``("comment", "", "")``."""


def events(html: str) -> Iterator[Event]:
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
    """Where a comment or declaration ends; 0 if it does not."""
    if not html.startswith("<!--", start):
        return html.find(">", start + 2) + 1
    for short in ("<!-->", "<!--->"):
        if html.startswith(short, start):
            return start + len(short)
    found = _COMMENT_END.search(html, start + 4)
    return found.end() if found else 0


def attributes(source: str, *wanted: str) -> list[str]:
    """The values of a tag's attributes, references undone, empty where it has none; of several the first counts."""
    found: dict[str, str] = {}
    for part in _ATTRIBUTE.finditer(source):
        name, value = part[1].lower(), part[2] or ""
        if name not in wanted or name in found:
            continue
        if value[:1] in ('"', "'"):
            value = value[1:-1]
        found[name] = _REFERENCE.sub(_undone, value) if "&" in value else value
    return [found.get(name, "") for name in wanted]


def _undone(found: re.Match[str]) -> str:
    """A reference in an attribute: ``&copy=`` and ``&copyx`` are none there, so that queries keep their names."""
    if not found[0].startswith("&#") and not found[1] and (found[2] or found[0][1:] not in html5):
        return found[0]
    return unescape(found[0])
