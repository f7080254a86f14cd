"""A conversation as a model is sent it: turns that never change once they are made.

A turn is compared by identity, so that its form for a provider can be kept beside it (in a
``WeakKeyDictionary``) and need not do it again at every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Words of the user or of the model."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    """A model's reasoning before its answer; `metadata` (signatures) only goes back to the model that made it."""

    text: str
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class MediaPiece:
    """A picture or another file."""

    mime: str
    data: str
    """Base64."""
    filename: str | None = None


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A tool call of the model."""

    id: str
    name: str
    arguments: dict[str, Any]
    metadata: dict[str, Any] | None = None
    """The provider's own data about the call; only goes back to the model that made it."""


@dataclass(frozen=True, slots=True)
class ResultPiece:
    """The result of a call."""

    call_id: str
    name: str
    text: str
    media: tuple[MediaPiece, ...] = ()
    failed: bool = False
    outcome: str = ""
    """How the call ended (`core.call_state.CallOutcome`); "" if it has not."""


Piece = TextPiece | ReasoningPiece | MediaPiece | CallPiece | ResultPiece


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Turn:
    """One message.

    Attributes:
        role: ``user`` (text and media), ``assistant`` (reasoning, text and calls, in order), ``tool`` (results).
        pieces: what is in it.
        model: provider and model id that made an assistant's turn; None for the others, and where it is not
            known. Provider metadata is sent back to this model only.
        purpose: of a user's turn that is no prompt: ``summary`` requests the summary that follows, ``notice`` is a
            notice of the agent loop for the model.
    """

    role: Literal["user", "assistant", "tool"]
    pieces: tuple[Piece, ...]
    model: tuple[str, str] | None = None
    purpose: Literal["", "summary", "notice"] = ""
