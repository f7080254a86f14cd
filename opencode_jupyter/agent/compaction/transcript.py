"""The conversation as text for a summary, at levels of detail from much to little."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..turns import CallPiece, MediaPiece, Piece, ReasoningPiece, ResultPiece, TextPiece, Turn


@dataclass(frozen=True, slots=True)
class DetailLevel:
    """How much of a conversation is kept.

    Attributes:
        result: characters of a call's result.
        call: characters of a call's arguments.
        text: characters of a text.
        share: of the turns, the newest ones.
    """

    result: int
    call: int
    text: int
    share: float = 1.0


LEVELS: tuple[DetailLevel, ...] = (
    DetailLevel(8_000, 4_000, 200_000),
    DetailLevel(2_000, 1_000, 50_000),
    DetailLevel(500, 300, 10_000),
    DetailLevel(500, 300, 5_000, 0.5),
    DetailLevel(300, 200, 3_000, 0.25),
    DetailLevel(200, 100, 2_000, 0.12),
    DetailLevel(100, 60, 1_000, 0.06),
    DetailLevel(100, 60, 500, 0.0),
)
"""From much to little. The first prompt and the last summary are kept at every level."""
OMITTED = "[{} turns were omitted here to save space.]"


def render_transcript(turns: Sequence[Turn], level: DetailLevel) -> list[Turn]:
    """The turns as texts, the user's and the model's alternating."""
    pinned = 2 if turns and turns[0].purpose == "summary" else 1
    first, rest = turns[:pinned], turns[pinned:]
    newest = rest[len(rest) - max(1, round(len(rest) * level.share)) :] if rest else rest
    omitted = len(rest) - len(newest)
    texts_by_role: list[tuple[Literal["user", "assistant"], str]] = [_role_and_text(turn, level) for turn in first]
    if omitted:
        texts_by_role.append(("user", OMITTED.format(omitted)))
    texts_by_role += [_role_and_text(turn, level) for turn in newest]
    out: list[tuple[Literal["user", "assistant"], list[str]]] = []
    for role, text in texts_by_role:
        if not text:
            continue
        if out and out[-1][0] == role:
            out[-1][1].append(text)
        else:
            out.append((role, [text]))
    return [Turn(role, (TextPiece("\n\n".join(texts)),)) for role, texts in out]


def _role_and_text(turn: Turn, level: DetailLevel) -> tuple[Literal["user", "assistant"], str]:
    texts = [text for text in (_piece_text(piece, level) for piece in turn.pieces) if text]
    return "assistant" if turn.role == "assistant" else "user", "\n\n".join(texts)


def _piece_text(piece: Piece, level: DetailLevel) -> str:
    match piece:
        case TextPiece(text):
            return shortened(text, level.text)
        case CallPiece(_, name, arguments):
            arguments_text = json.dumps(arguments, ensure_ascii=False, default=str)
            return f"[called {name} with {shortened(arguments_text, level.call)}]"
        case ResultPiece(_, name, text, media, failed):
            shown = " ".join(map(_media_text, media))
            verb = "failed" if failed else "gave"
            return f"[{name} {verb}] {shortened(text, level.result)} {shown}".rstrip()
        case MediaPiece():
            return _media_text(piece)
        case ReasoningPiece():
            return ""


def _media_text(piece: MediaPiece) -> str:
    return f"[{'document' if piece.mime == 'application/pdf' else 'picture'} {piece.filename or piece.mime}]"


def shortened(text: str, limit: int) -> str:
    """A text's beginning and, where there is room, its end; with a note about what was omitted between."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    end = text[-tail:] if tail else ""
    return f"{text[: limit - tail]}\n[... {len(text) - limit:,} characters omitted ...]\n{end}"
