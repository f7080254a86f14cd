"""Wire formats: write requests, read answers; and what all formats share.

A conversation grows by a turn or two at each step, and a provider wants the whole of it each time. So every turn is
encoded when it is first sent and its bytes are kept beside it (`TurnCache`); a request is these bytes, joined.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from ..events import Finish, FinishReason, Usage
from ..model import ModelInfo, Request, ToolSpec
from ..turns import CallPiece, MediaPiece, ResultPiece, Turn
from .api_keys import Key
from .event_assembler import EventAssembler
from .settings import ModelSettings, Provider

T = TypeVar("T")

ATTACHED = "Attached image(s) from tool result:"
"""Heads a message with the pictures of a tool's result, for models that take none there (docs/opencode/core.md 9.2)."""
MAX_NAME_LENGTH = 64
"""Characters of a tool's name, for OpenAI and Google; Anthropic takes more."""
_OTHER = re.compile(r"[^a-zA-Z0-9_-]")
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_LONE = re.compile("[\ud800-\udfff]")
"""Half characters, as bytes of another encoding become when they are read with ``surrogateescape``."""
NOOP = ToolSpec(
    "_noop",
    "Placeholder for LiteLLM/Anthropic proxy compatibility - required when message history contains tool calls but no "
    "active tools are needed",
    {"type": "object", "properties": {}},
)
"""Sent to a LiteLLM proxy, which refuses a history with calls and no tools (docs/opencode/core.md 7.1)."""


class BlockedPromptError(Exception):
    """The provider would not answer this prompt; the text is its reason."""


class MalformedCallError(Exception):
    """The model wrote a call that its own provider could not read; asking again may help."""


class ResponseParser(ABC):
    """Reads one answer.

    Attributes:
        assembler: where what it reads goes.
        finished: the provider has sent why it stopped.
        closed: the provider has announced the end.
    """

    def __init__(self, assembler: EventAssembler) -> None:
        self.assembler = assembler
        self.finished = False
        self.closed = False
        self.usage = Usage()
        self.reason: FinishReason = "unknown"
        self.metadata: dict[str, Any] = {}

    @abstractmethod
    def feed(self, value: Mapping[str, Any]) -> None:
        """One event of a stream."""

    def feed_complete(self, value: Mapping[str, Any]) -> None:
        """An answer that is no stream."""
        self.feed(value)
        self.finished = self.closed = True

    def finish(self) -> Finish:
        """The last event."""
        reason = self.reason
        if self.assembler.calls and reason in ("stop", "unknown"):
            reason = "tool-calls"  # many servers say "stop" then
        return Finish(reason, self.usage, self.metadata or None)


class ProviderAdapter(ABC):
    """One wire format for one model; it keeps what it has encoded.

    Attributes:
        parser: reads its answers.
    """

    parser: type[ResponseParser]

    def __init__(self, provider: Provider, info: ModelInfo, settings: ModelSettings) -> None:
        self.provider, self.info, self.settings = provider, info, settings
        self.api_id = info.api_id or info.model

    @abstractmethod
    def url(self) -> str:
        """The address of requests."""

    @abstractmethod
    def headers(self, key: Key | None) -> dict[str, str]:
        """The headers of a request, with the key."""

    @abstractmethod
    def body(self, request: Request) -> bytes:
        """A request."""

    # What each format has of its own:

    @abstractmethod
    def _encode_media(self, media: MediaPiece) -> dict[str, Any]: ...

    @abstractmethod
    def _encode_user(self, turn: Turn) -> list[Any]: ...

    @abstractmethod
    def _encode_assistant(self, turn: Turn) -> list[Any]: ...

    @abstractmethod
    def _encode_results(self, turn: Turn) -> list[Any]: ...

    def _encode(self, turn: Turn) -> list[Any]:
        """A turn as the messages, blocks or parts of the format."""
        if turn.role == "assistant":
            return self._encode_assistant(turn)
        return self._encode_results(turn) if turn.role == "tool" else self._encode_user(turn)

    def _each_result(self, turn: Turn) -> Iterator[tuple[ResultPiece, str, list[dict[str, Any]]]]:
        """Each result with its text, which names what is left out, and the media that the model takes."""
        for piece in turn.pieces:
            if isinstance(piece, ResultPiece):
                text = "\n".join(
                    [piece.text, *(self.omission_note(media) for media in piece.media if not self.accepts(media))]
                )
                yield piece, text, [self._encode_media(media) for media in piece.media if self.accepts(media)]

    def is_own(self, turn: Turn) -> bool:
        """Return whether this model made the turn, so that its metadata goes back with it."""
        return turn.model == (self.info.provider, self.info.model)

    def options(self, request: Request) -> dict[str, Any]:
        """Options of the provider's entry, the model's and the request's, the later over the earlier."""
        options = {**self.provider.options, **self.settings.options, **request.options}
        options.pop("litellmProxy", None)
        return options

    def with_noop(self, request: Request) -> Request:
        """The request as a LiteLLM proxy accepts it: with a placeholder tool where only its history has calls."""
        names = (self.provider.id, self.info.api_id or self.info.model)
        proxy = self.provider.options.get("litellmProxy") is True or any("litellm" in name.lower() for name in names)
        if not proxy or request.tools or next(call_ids(request.turns), None) is None:
            return request
        return replace(request, tools=(NOOP,))

    def accepts(self, media: MediaPiece) -> bool:
        """Return whether the model can be shown this."""
        if media.mime.startswith("image/"):
            return self.info.images
        return media.mime == "application/pdf" and self.info.documents

    def omission_note(self, media: MediaPiece) -> str:
        """The text in the place of media that the model does not accept."""
        name = media.filename or "a file"
        return f"[{name} ({media.mime}) is omitted: {self.info.full} cannot read it. Tell the user.]"


# ---------------------------------------------------------------------- ids, names, options


def call_ids(turns: Any) -> Iterator[str]:
    """The ids of all calls of a conversation."""
    for turn in turns:
        for piece in turn.pieces:
            if isinstance(piece, CallPiece):
                yield piece.id


def schema_of(tool: ToolSpec) -> dict[str, Any]:
    """A tool's schema without the version of JSON schema that it follows."""
    return {key: value for key, value in tool.schema.items() if key != "$schema"}


def snake(name: str) -> str:
    """``reasoningEffort`` -> ``reasoning_effort``: options may be written as OpenCode's libraries want them."""
    return _CAMEL.sub(lambda match: "_" + match.group(1).lower(), name)


def snake_keys(value: Any) -> Any:
    """The same for all keys of nested objects."""
    if isinstance(value, Mapping):
        return {snake(str(key)): snake_keys(item) for key, item in value.items()}
    return value


def token_count(value: Any) -> int:
    """A number of tokens; 0 for what is none."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0


def wire_name(name: str) -> str:
    """A tool's name in the characters ``^[a-zA-Z0-9_-]{1,64}$`` that every provider takes; the same each time."""
    plain = _OTHER.sub("_", name)
    if plain == name and 0 < len(name) <= MAX_NAME_LENGTH:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]  # two names must not become one
    return f"{plain[: MAX_NAME_LENGTH - 9]}_{mark}"


def original_names(names: Iterable[str]) -> dict[str, str]:
    """Name on the wire -> our name, for the names that differ."""
    return {wire: name for name in names if (wire := wire_name(name)) != name}


# ---------------------------------------------------------------------- JSON, encoded once


def encode(value: Any) -> bytes:
    """A value as compact JSON in UTF-8, whatever strings and numbers are in it.

    What JSON has no form for becomes the next best: half a character becomes U+FFFD, an infinite number null.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _LONE.sub("\ufffd", text).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


class TurnCache(Generic[T]):
    """The encoded form of each turn, for as long as the turn exists."""

    def __init__(self, make: Callable[[Turn], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Turn, T] = WeakKeyDictionary()

    def __call__(self, turn: Turn) -> T:
        """The encoded form, made now if it is new."""
        encoded = self._made.get(turn)
        if encoded is None:
            encoded = self._made[turn] = self._make(turn)
        return encoded


class ToolsCache(Generic[T]):
    """The encoded form of the last list of tools, which stays the same for most of a session."""

    def __init__(self, make: Callable[[Sequence[ToolSpec]], T]) -> None:
        self._make = make
        self._last: tuple[tuple[ToolSpec, ...], T] | None = None

    def __call__(self, tools: Sequence[ToolSpec]) -> T:
        """The encoded form, made now if it is new."""
        if self._last is not None:
            before, encoded = self._last
            if len(before) == len(tools) and all(a is b for a, b in zip(before, tools, strict=True)):
                return encoded
        self._last = (tuple(tools), self._make(tools))
        return self._last[1]


def join_members(head: dict[str, Any], **parts: bytes) -> bytes:
    """A JSON object of what is encoded now (`head`, not empty) and of members that are JSON already."""
    pieces = [encode(head)[:-1]]
    for name, value in parts.items():
        pieces += (b',"', name.encode(), b'":', value)
    pieces.append(b"}")
    return b"".join(pieces)


def join_array(items: Sequence[bytes]) -> bytes:
    """A JSON array of what is JSON already."""
    return b"[" + b",".join(items) + b"]"
