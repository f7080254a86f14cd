"""The last lines that a server logged, without the secrets it was given."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ..core.secrets import hide

LINES = 500
"""Lines kept of each server."""
LENGTH = 2000
"""Characters kept of a line."""


class Log:
    """A ring of lines; any thread may read it.

    Args:
        secrets: values that are never to be shown.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secrets)
        self._lines: deque[str] = deque(maxlen=LINES)
        self._open = b""

    def add(self, text: str, source: str = "") -> None:
        """Add what is one line or more; `source` says where it came from."""
        head = f"[{source}] " if source else ""
        for line in text.splitlines():
            self._lines.append(head + self.clean(line[:LENGTH]))

    def feed(self, data: bytes) -> None:
        """Add a chunk of the server's stderr; its last line is kept until it is whole."""
        *lines, self._open = (self._open + data).split(b"\n")
        self._open = self._open[-LENGTH:]
        for line in lines:
            if line.strip():
                self.add(line.decode("utf-8", "replace").rstrip())

    def end(self) -> None:
        """The server is over: what stands open is a line too."""
        if self._open.strip():
            self.add(self._open.decode("utf-8", "replace"))
        self._open = b""

    def lines(self) -> list[str]:
        """The lines, oldest first."""
        return list(self._lines)

    def last(self) -> str:
        """The last line of stderr, which often says why a server ended; "" if there is none."""
        return next((line for line in reversed(self._lines) if line.strip() and not line.startswith("[")), "")

    def clean(self, text: str) -> str:
        """A text with the secrets replaced."""
        return hide(text, self._secrets)
