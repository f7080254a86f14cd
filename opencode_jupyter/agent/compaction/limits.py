"""A conversation's limits: when it is too long for its model, and what is dropped (pruned) from it before that."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.call_state import Completed, ToolPart, now_ms
from ...core.messages import Message
from ...core.registry import Registry
from ..events import Usage
from ..model import ModelInfo
from ..turns import CallPiece, MediaPiece, ReasoningPiece, ResultPiece, TextPiece, Turn

if TYPE_CHECKING:
    from ..conversation import Conversation

LONGEST_ANSWER = 32_000
"""Tokens that are kept free for an answer at the most (OpenCode's number)."""
CHARS_PER_TOKEN = 4
"""Characters of a token, roughly (OpenCode's estimate)."""
PICTURE_TOKENS = 1_600
"""Tokens of a picture, roughly: what Anthropic's largest one (1.15 megapixels, 750 pixels a token) comes to."""
KEPT_TOKENS = 40_000
"""Tokens of the newest outputs that stay (OpenCode's number)."""
LEAST_FREED = 20_000
"""Tokens that dropping must free (OpenCode's number): it makes a provider read the whole conversation anew."""
KEPT_TURNS = 2
"""The user's last turns, in which nothing is dropped."""


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


def prune(conversation: Conversation) -> int:
    """Mark old outputs, so that a model is sent a note in their place.

    Returns:
        Tokens that this frees, roughly; 0 if there was too little, or ``compaction.prune`` is false.
    """
    if conversation.workspace.config.get("compaction", "prune") is False:
        return 0
    old, freed = _old_outputs(conversation.session.messages, conversation.workspace.registry)
    if freed < LEAST_FREED:
        return 0
    for message, part, state in old:
        part.state = dataclasses.replace(state, compacted=now_ms())
        conversation.put(message, part)
    return freed


def _old_outputs(messages: list[Message], registry: Registry) -> tuple[list[tuple[Message, ToolPart, Completed]], int]:
    """The outputs beyond the newest ones, and how many tokens they have. Nothing before a summary is looked at."""
    outputs: list[tuple[Message, ToolPart, Completed]] = []
    turns = size_so_far = freed = 0
    for message in reversed(messages):
        if message.role == "user":
            turns += 1
            continue
        if message.info.get("summary") is True and message.info.get("finish"):
            break
        if turns < KEPT_TURNS:
            continue
        for part in reversed(message.calls):
            state = part.state
            tool = registry.get(part.tool)
            if not isinstance(state, Completed) or (tool is not None and tool.manifest.keeps_output):
                continue
            if state.compacted is not None:  # those before it were marked earlier
                return outputs, freed
            size = estimate(state.output) + PICTURE_TOKENS * len(state.attachments)
            size_so_far += size
            if size_so_far > KEPT_TOKENS:
                freed += size
                outputs.append((message, part, state))
    return outputs, freed
