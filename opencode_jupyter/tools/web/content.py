"""What a body is: an attachment, HTML, or other text. The header says so, and a look at the first bytes."""

from __future__ import annotations

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
    """What a body is.

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
    seen = sniff(body)
    if mime.startswith("image/") and mime not in _NOT_IMAGES:
        if seen is None and looks_like_html(body):
            return Kind(html=True)  # an error page under an image's name
        return Kind(attachment=seen or mime)
    if seen is not None and (mime in _UNSAID or mime == seen):
        return Kind(attachment=seen)
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
