"""The limits of a conversation: when it is too long for its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..events import Usage
from ..model import ModelInfo
from ..turns import CallPiece, MediaPiece, ReasoningPiece, ResultPiece, TextPiece, Turn

LONGEST_ANSWER = 32_000
"""Tokens that are kept free for an answer at the most (OpenCode's number)."""
CHARS_PER_TOKEN = 4
"""Characters of a token, roughly (OpenCode's estimate)."""
PICTURE_TOKENS = 1_600
"""Tokens of a picture, roughly: what Anthropic's largest one (1.15 megapixels, 750 pixels a token) comes to."""


def usable_tokens(info: ModelInfo, config: Mapping[str, Any]) -> int:
    """Tokens that a conversation may have before it is summarised; 0 if the model's window is not known.

    OpenCode keeps the length of an answer free, at most `LONGEST_ANSWER`; ``compaction.reserved`` overrides it. Half
    of the window always stays usable: else a small window would be summarised at every step.
    """
    reserved = _section(config).get("reserved")
    if isinstance(reserved, bool) or not isinstance(reserved, int) or reserved < 0:
        reserved = min(info.output or LONGEST_ANSWER, LONGEST_ANSWER)
    return info.context - min(reserved, info.context // 2)


def overflows(usage: Usage, info: ModelInfo, config: Mapping[str, Any]) -> bool:
    """Return whether a conversation should be summarised before it continues.

    ``compaction.auto: false`` of the configuration switches this off.
    """
    if info.context <= 0 or _section(config).get("auto") is False:
        return False
    return usage.whole > usable_tokens(info, config)


def estimate(text: str) -> int:
    """Tokens of a text, roughly."""
    return round(len(text) / CHARS_PER_TOKEN)


def estimate_turns(turns: Sequence[Turn]) -> int:
    """Tokens of a conversation, roughly."""
    return sum(_piece_tokens(piece) for turn in turns for piece in turn.pieces)


def _piece_tokens(piece: object) -> int:
    match piece:
        case TextPiece(text) | ReasoningPiece(text):
            return estimate(text)
        case MediaPiece():
            return PICTURE_TOKENS
        case CallPiece(arguments=arguments):
            return estimate(str(arguments))
        case ResultPiece(text=text, media=media):
            return estimate(text) + PICTURE_TOKENS * len(media)
    return 0


def _section(config: Mapping[str, Any]) -> Mapping[str, Any]:
    section = config.get("compaction")
    return section if isinstance(section, Mapping) else {}
