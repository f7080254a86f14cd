"""Text of a file without loss: what can't be decoded comes back byte for byte when it is written.

Strict UTF-8, with or without a byte order mark; otherwise single bytes ride along as lone surrogates
(``surrogateescape``). Nothing is guessed: guessing a legacy encoding is wrong too often to edit by.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from ..core.errors import ToolError

BOM = codecs.BOM_UTF8
_SURROGATE = re.compile("[\ud800-\udfff]")


class DecodedText(NamedTuple):
    """A file's text and what is needed to write it back."""

    text: str
    bom: bool = False
    """Begins with a UTF-8 byte order mark, which `text` leaves out."""
    exact: bool = True
    """False when some bytes are no UTF-8 and stand in `text` as lone surrogates."""

    @property
    def newline(self) -> str:
        """How most lines end: CRLF if any does, else LF (OpenCode's rule)."""
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def shown(self) -> str:
        """`text` fit for display and JSON: bytes that are no UTF-8 as U+FFFD."""
        return self.text if self.exact else printable(self.text)


def decode(data: bytes) -> DecodedText:
    """The text of a file's bytes; never fails."""
    bom = data.startswith(BOM)
    body = data[len(BOM) :] if bom else data
    try:
        return DecodedText(body.decode("utf-8"), bom)
    except UnicodeDecodeError:
        return DecodedText(body.decode("utf-8", "surrogateescape"), bom, exact=False)


def encode(text: str, *, bom: bool = False) -> bytes:
    """The bytes of `text`, the inverse of `decode`.

    Raises:
        ToolError: `text` has half of a surrogate pair, which stands for no byte and no character.
    """
    try:
        body = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ToolError(
            f"The text can't be written as UTF-8: character {error.start} is U+{ord(text[error.start]):04X}, half of a "
            "surrogate pair. Send the whole character."
        ) from error
    return BOM + body if bom and not body.startswith(BOM) else body


def printable(text: str) -> str:
    """`text` with each lone surrogate as U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def escaped(json: str) -> str:
    """JSON with each lone surrogate as its escape, as JavaScript writes it."""
    return json if json.isascii() else _SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", json)


def to_newline(text: str, newline: str) -> str:
    """`text` with every line end as `newline` (LF or CRLF)."""
    plain = text.replace("\r\n", "\n")
    return plain if newline == "\n" else plain.replace("\n", newline)
