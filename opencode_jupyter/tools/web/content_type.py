"""Kind and encoding of a body: an attachment, HTML or other text, by its header and its first bytes."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

SAMPLE = 4096
"""Bytes or characters that are looked at."""
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_NOT_IMAGES = frozenset({"image/svg+xml", "image/vnd.fastbidsheet"})
"""Text in spite of their name (docs/opencode/tools.md 10)."""
_UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown"})
"""Content types that say nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a body.

    Attributes:
        attachment: the MIME type to attach it as, or None if it is text.
        html: whether it is an HTML page.
        xml: whether it is XML of another kind.
    """

    attachment: str | None = None
    html: bool = False
    xml: bool = False


def kind(body: bytes, content_type: str) -> Kind:
    """Judge a body by its header and its first bytes."""
    mime = content_type.partition(";")[0].strip().lower()
    sniffed = sniff(body)
    if mime.startswith("image/") and mime not in _NOT_IMAGES:
        if sniffed is None and looks_like_html(body):
            return Kind(html=True)  # an error page under an image's name
        return Kind(attachment=sniffed or mime)
    if sniffed is not None and (mime in _UNSAID or mime == sniffed):
        return Kind(attachment=sniffed)
    html = "text/html" in mime or mime == "application/xhtml+xml" or (not mime and looks_like_html(body))
    return Kind(html=html, xml=mime.endswith(("/xml", "+xml")))


def sniff(body: bytes) -> str | None:
    """The MIME type of a body that begins as an image or a PDF does."""
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        return "image/webp"
    if body[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    return next((mime for magic, mime in _MAGIC if body.startswith(magic)), None)


def looks_like_html(body: bytes) -> bool:
    """Return whether a body begins as an HTML page does."""
    return body[:SAMPLE].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))


def is_binary(text: str) -> bool:
    """Return whether a decoded body is no text after all."""
    return "\0" in text[:SAMPLE]


PRESCAN = 4096
"""Bytes in which a page's own declaration is looked for."""
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_PARAMETER = re.compile(r""";\s*charset\s*=\s*["']?\s*([^\s"';,]+)""", re.IGNORECASE)
_META = re.compile(rb"""<meta\s[^<>]{0,1000}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml\s[^<>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""", re.IGNORECASE)
# fmt: off
CODECS = {
    "utf-8": "utf-8", "utf8": "utf-8", "unicode-1-1-utf-8": "utf-8",
    "utf-16": "utf-16-le", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be",
    # the web means Windows' superset by these
    "us-ascii": "cp1252", "ascii": "cp1252", "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "latin1": "cp1252",
    "latin-1": "cp1252", "l1": "cp1252", "windows-1252": "cp1252", "cp1252": "cp1252",
    "iso-8859-9": "cp1254", "latin5": "cp1254", "iso-8859-11": "cp874", "tis-620": "cp874", "windows-874": "cp874",
    "gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "x-gbk": "gb18030", "chinese": "gb18030",
    "big5": "big5hkscs", "big5-hkscs": "big5hkscs",
    "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "windows-31j": "cp932", "x-sjis": "cp932",
    "euc-jp": "euc_jp", "x-euc-jp": "euc_jp", "iso-2022-jp": "iso2022_jp",
    "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "windows-949": "cp949", "korean": "cp949",
    "koi8-r": "koi8_r", "koi8-u": "koi8_u", "ibm866": "cp866", "cp866": "cp866",
    "macintosh": "mac_roman", "x-mac-cyrillic": "mac_cyrillic",
    **{f"windows-{n}": f"cp{n}" for n in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258)},
    **{f"cp{n}": f"cp{n}" for n in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258)},
    **{f"iso-8859-{n}": f"iso8859_{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
}
# fmt: on
"""The web's names of encodings and Python's. No other of Python's codecs is ever reached from a page."""


def codec(body: bytes, content_type: str, *, markup: bool) -> str:
    """The name of the Python codec for a body.

    Args:
        body: the page.
        content_type: its header.
        markup: whether the page may declare an encoding itself (HTML, XML).
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    declared = _PARAMETER.search(content_type)
    if declared is not None and declared[1].lower() in CODECS:
        return CODECS[declared[1].lower()]
    if markup:
        own = _META.search(body, 0, PRESCAN) or _XML.search(body, 0, PRESCAN)
        if own is not None:
            name = CODECS.get(own[1].decode("ascii", "replace").lower(), "utf-8")
            # a declaration that could be read as bytes is not in UTF-16
            return "utf-8" if name.startswith("utf-16") else name
    return "utf-8"


def decode(body: bytes, name: str) -> str:
    """The text, without its byte order mark."""
    return body.decode(name, "replace").removeprefix("\ufeff")
