"""How Turndown 7 spells text, links, pictures and code in Markdown."""

from __future__ import annotations

import re

SPACE = "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What is white space in JavaScript."""
_ANYWHERE = re.compile(r"[\\*`\[\]_]")
_FIRST = re.compile(r"(?:-|\+ |=+|#{1,6} |~~~|>)")
_NUMBERED = re.compile(r"\A([0-9]+)\. ")
_MEANING = re.compile(r"[\\*`\[\]_]|\A(?:[-+=#~>]|[0-9]+\. )")
_DESTINATION = re.compile(r"[<>()]")
_LINES = re.compile(r"\n\s*")
_TICKS = re.compile("`+")
_FENCES = re.compile("^`{3,}", re.MULTILINE)
_IGNORED_IN_URLS = re.compile(r"[\t\r\n]")
_UNSAFE = ("javascript:", "vbscript:", "data:")
_CONTROLS = "".join(map(chr, range(33)))


def escape(text: str, first: bool = True) -> str:
    """Running text that means nothing in Markdown.

    Args:
        text: of one text node, or a part of one.
        first: whether it is the node's begin; dashes, numbers and the like count only there.
    """
    if not _MEANING.search(text):
        return text
    text = _ANYWHERE.sub(r"\\\g<0>", text)
    if not first:
        return text
    return "\\" + text if _FIRST.match(text) else _NUMBERED.sub(r"\1\\. ", text, count=1)


def link(href: str, title: str) -> str | None:
    """What stands in a link's parentheses; None if it leads nowhere, or would run something."""
    if not href or _unsafe(href):
        return None
    return _destination(href) + _title(title)


def picture(alt: str, source: str, title: str) -> str:
    """A picture; its words alone if its data stand in the page."""
    alt = _LINES.sub("\n", alt)
    if not source:
        return ""
    if _unsafe(source):
        return escape(alt).strip(SPACE)
    return f"![{escape(alt)}]({_destination(source)}{_title(title)})"


def code_span(content: str) -> str:
    """Code in running text, between more backticks than stand together in it."""
    if not content:
        return ""
    content = content.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
    inside = {len(found[0]) for found in _TICKS.finditer(content)} if "`" in content else set()
    count = 1
    while count in inside:
        count += 1
    bare = content.strip(" ")
    padded = content[0] == "`" or content[-1] == "`" or (content[0] == content[-1] == " " and bare)
    pad = " " if padded else ""
    return "`" * count + pad + content + pad + "`" * count


def fence(code: str, language: str) -> str:
    """A block of code."""
    longest = max((len(found[0]) for found in _FENCES.finditer(code)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{code.removesuffix(chr(10))}\n{ticks}"


def _destination(url: str) -> str:
    url = _DESTINATION.sub(r"\\\g<0>", url)
    return f"<{url}>" if " " in url else url


def _title(title: str) -> str:
    title = _LINES.sub("\n", title).replace('"', '\\"')
    return f' "{title}"' if title else ""


def _unsafe(url: str) -> bool:
    """Whether a URL is a script or data: browsers overlook controls before it and line ends in it."""
    return _IGNORED_IN_URLS.sub("", url[:200].lstrip(_CONTROLS)).lstrip(_CONTROLS).lower().startswith(_UNSAFE)
