"""The events of a model's stream, in order, whichever provider it comes from.

A part's events carry its `index`: start, any number of deltas, end. Parts may overlap (some providers interleave
calls). The last event is `Finish`. A stream that breaks off raises `ModelError` instead; then no `CallEnd` has been
given for a call whose arguments are not whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

FinishReason = Literal["stop", "tool-calls", "length", "content-filter", "error", "other", "unknown"]
"""Why a model stopped, as in OpenCode's step-finish parts."""


@dataclass(frozen=True, slots=True)
class TextStart:
    """A text begins."""

    index: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of a text."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class TextEnd:
    """A text is complete."""

    index: int
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReasoningStart:
    """Reasoning begins."""

    index: int


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the reasoning."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnd:
    """Reasoning is complete; `metadata` is what the provider wants back with it (a signature)."""

    index: int
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call begins: its tool is known, its arguments are still to come."""

    index: int
    id: str
    """The provider's; made up by the adapter (unique in the conversation) if the provider sent none or one twice."""
    name: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of a call's arguments, as JSON text."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call is complete and can be made.

    Attributes:
        arguments: the JSON text as the model wrote it: it may be empty, not parse, or be no object.
    """

    index: int
    id: str
    name: str
    arguments: str
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request. `input` leaves out what was read from or written to a cache; `output` leaves out
    reasoning. So the sum of all five is what the request took.
    """

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int | None = None
    """The provider's own sum; None if it gave none."""

    @property
    def whole(self) -> int:
        """All tokens of the request: what counts against the context window."""
        return self.total or self.input + self.output + self.reasoning + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.reasoning + other.reasoning,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.whole + other.whole,
        )

    @classmethod
    def from_wire(cls, tokens: Any) -> Usage:
        """Read OpenCode's ``tokens``; what is missing counts as 0."""
        tokens = tokens or {}
        cache = tokens.get("cache") or {}
        counts = {key: tokens.get(key) or 0 for key in ("input", "output", "reasoning")}
        cached = {"cache_read": cache.get("read") or 0, "cache_write": cache.get("write") or 0}
        return cls(**counts, **cached, total=tokens.get("total"))

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's ``tokens``."""
        wire: dict[str, Any] = {} if self.total is None else {"total": self.total}
        cache = {"read": self.cache_read, "write": self.cache_write}
        return {**wire, "input": self.input, "output": self.output, "reasoning": self.reasoning, "cache": cache}


@dataclass(frozen=True, slots=True)
class Finish:
    """The answer is complete."""

    reason: FinishReason
    usage: Usage = Usage()
    metadata: dict[str, Any] | None = None


Event = (
    TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | CallStart
    | CallDelta
    | CallEnd
    | Finish
)
