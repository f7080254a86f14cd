"""A body's compression undone piece by piece, so that a few bytes can't become gigabytes unseen."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from ...core.errors import ToolError

PIECE = 256 << 10
"""Bytes of one decoded piece at the most."""
MEMBERS = 10_000
"""Parts that a gzip body may be put together from; empty ones cost time and make nothing."""
ACCEPTED = "gzip, deflate"
"""What requests say in Accept-Encoding."""


class Decoder:
    """Undoes ``Content-Encoding``.

    Args:
        encoding: the header.
        host: for messages.

    Raises:
        ToolError: it is one that was not asked for.
    """

    def __init__(self, encoding: str, host: str) -> None:
        names = [name.strip().lower() for name in encoding.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > 1 or (names and names[0] not in ("gzip", "x-gzip", "deflate")):
            raise ToolError(
                f"{host} compressed its answer with {encoding[:60]!a}, which was not asked for. "
                "Download it with a command (curl --compressed -L -o FILE URL) and look at the file."
            )
        self._host = host
        self._kind = names[0] if names else ""
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if self._kind.endswith("gzip") else None
        self._begun = False
        self._members = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The decoded pieces of what came, each at most `PIECE` long.

        Raises:
            ToolError: the data is damaged.
        """
        if not self._kind:
            for start in range(0, len(chunk), PIECE):
                yield chunk[start : start + PIECE]
            return
        self._begun = self._begun or bool(chunk)
        while chunk:
            try:
                inflate = self._inflate or self._deflate(chunk)
                piece = inflate.decompress(chunk, PIECE)
            except zlib.error as error:
                raise ToolError(f"The compressed answer of {self._host} is damaged ({error})") from None
            if piece:
                yield piece
            chunk = inflate.unconsumed_tail
            if inflate.eof:  # another member may follow; padding after the last one is left
                chunk = inflate.unused_data.lstrip(b"\0")
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
                self._members += 1
                if self._members > MEMBERS:
                    raise ToolError(f"The compressed answer of {self._host} has more than {MEMBERS} parts")
                if self._kind == "deflate" or not chunk.startswith(b"\x1f"):
                    self._kind, chunk = "done", b""

    def end(self) -> None:
        """Say that the body is whole.

        Raises:
            ToolError: it ends in the middle of compressed data.
        """
        if self._kind not in ("", "done") and self._begun:
            raise ToolError(f"The compressed answer of {self._host} is cut off")

    def _deflate(self, chunk: bytes) -> zlib._Decompress:
        """Servers send "deflate" with and without zlib's frame."""
        framed = chunk[0] & 15 == 8 and (len(chunk) < 2 or int.from_bytes(chunk[:2], "big") % 31 == 0)
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)
        return self._inflate
