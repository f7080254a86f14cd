"""A MIME bundle that was displayed, as a tool's result can carry it: pictures as attachments, the rest in words."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

from ...core.result import Attachment

MIMES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
"""Pictures that are attached, best first, and the ends of their names. SVG is text, and may carry script."""
MOST = 20
"""Pictures of one run that are attached."""
LARGEST = 5 * 1024 * 1024
"""Bytes of one of them."""
SOURCE_CHARS = 20_000
"""Characters of a source (HTML, Markdown) shown for want of a plain text."""
_EMPTY = "<IPython.core.display."
"""What the plain text of ``display(HTML(...))`` begins with; it says nothing."""


@dataclass(slots=True)
class Found:
    """The pictures of a bundle, and why some are left out."""

    pictures: list[Attachment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def pictures_of(data: dict[str, Any], before: int) -> Found:
    """The picture of a bundle, in the best form it has.

    Args:
        data: MIME type -> content; pictures as bytes or base64 text.
        before: pictures that the run has attached already.
    """
    found = Found()
    for mime, end in MIMES.items():
        if mime not in data:
            continue
        content = _bytes(data[mime])
        if content is None:
            continue
        if before >= MOST:
            found.notes.append(f"[a picture omitted: {MOST} are attached already]")
        elif len(content) > LARGEST:
            found.notes.append(f"[a picture of {len(content) / 1e6:.1f} MB omitted: the limit is 5 MB]")
        else:
            found.pictures.append(Attachment.from_bytes(content, mime, f"figure-{before + 1}.{end}"))
        break
    return found


def words_of(data: dict[str, Any], pictured: bool = False) -> str:
    """A bundle in words: its plain text, or the source of its Markdown, LaTeX or HTML where that says nothing.

    Args:
        data: MIME type -> content.
        pictured: its picture is attached, so nothing is missing if there are no words.
    """
    plain = data.get("text/plain")
    text = plain if isinstance(plain, str) else ""
    if text and not text.startswith(_EMPTY):
        return text
    for mime in ("text/markdown", "text/latex", "text/html"):
        source = data.get(mime)
        if isinstance(source, str) and source:
            return source if len(source) <= SOURCE_CHARS else source[:SOURCE_CHARS] + "…"
    return "" if pictured else text


def _bytes(content: Any) -> bytes | None:
    if isinstance(content, (bytes, bytearray)):
        return bytes(content)
    if isinstance(content, str):
        try:
            return base64.b64decode(content)
        except (binascii.Error, ValueError):
            return None
    return None
