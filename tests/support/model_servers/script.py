"""What a scripted provider says in one answer, faults included."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Turn:
    """One answer. A script gives it as a dict of these fields.

    Attributes:
        text: said before the calls.
        after: said behind the calls.
        reasoning: thought before the text.
        signature: the provider's mark on the thought (Anthropic, Google).
        calls: ``[name, arguments]`` or ``[name, arguments, id]``; arguments are a dict, or a string sent as it stands
            (cut JSON); the id is ``call_TURN_CALL`` if left out, and left out of the answer if it is None.
        finish: the provider's own word; what fits if None.
        usage: the provider's own numbers, laid over the usual ones (100 in, 20 out).
        chunk: characters of a piece of text or arguments; 0 sends each in one piece.
        wait: seconds before the first byte.
        delay: seconds between two events.
        cut: after so many events the connection is dropped.
        hold: after so many events nothing more comes until the client goes away.
        end: False leaves out what marks the end of the stream (``[DONE]``, ``message_stop``).
        crlf: lines end with CR LF.
        comments: a keep-alive comment before each event.
        sliced: the stream comes in pieces of so many bytes, wherever that falls (inside characters too).
        raw: the body as it stands, piece by piece, instead of all the above.
        status: of the response; with another than 200, `body` is sent.
        headers: laid over the usual ones.
        body: a plain body: bytes, text, or what is sent as JSON.
    """

    text: str = ""
    after: str = ""
    reasoning: str = ""
    signature: str = ""
    calls: Sequence[Sequence[Any]] = ()
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    chunk: int = 12
    wait: float = 0.0
    delay: float = 0.0
    cut: int | None = None
    hold: int | None = None
    end: bool = True
    crlf: bool = False
    comments: bool = False
    sliced: int = 0
    raw: Sequence[bytes | str] | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    number: int = 0
    """Which answer of the script it is, from 0."""

    def pieces(self, text: str) -> Iterator[str]:
        """A text as it comes in."""
        size = self.chunk or len(text) or 1
        for at in range(0, len(text), size):
            yield text[at : at + size]

    def calls_whole(self) -> Iterator[tuple[str, str, str | None]]:
        """Name, arguments as text, id of each call."""
        for at, (name, arguments, *ids) in enumerate(self.calls):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            yield name, text, ids[0] if ids else f"call_{self.number}_{at}"

    def plain(self) -> bytes | None:
        """The body if it is no stream."""
        if self.body is None and self.status == 200:
            return None
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    def stream(self, events: Sequence[bytes]) -> Iterator[bytes]:
        """The pieces of the body, as they are to be written, of these server-sent events."""
        if self.raw is not None:
            yield from (piece.encode() if isinstance(piece, str) else piece for piece in self.raw)
            return
        if self.comments:
            events = [b": keep-alive\n\n" + piece for piece in events]
        if self.crlf:
            events = [piece.replace(b"\n", b"\r\n") for piece in events]
        if self.cut is not None:
            events = events[: self.cut]
        elif self.hold is not None:
            events = events[: self.hold]
        if self.sliced:
            whole = b"".join(events)
            yield from (whole[at : at + self.sliced] for at in range(0, len(whole), self.sliced))
        else:
            yield from events
