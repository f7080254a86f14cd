"""Old outputs of tools, dropped from what a model is sent; the session keeps them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ...core.call_state import Completed, ToolPart, now_ms
from ...core.messages import Message
from ...core.registry import Registry
from .limits import PICTURE_TOKENS, estimate

if TYPE_CHECKING:
    from ..conversation import Conversation

KEPT_TOKENS = 40_000
"""Tokens of the newest outputs that stay (OpenCode's number)."""
LEAST_FREED = 20_000
"""Tokens that dropping must free (OpenCode's number): it makes a provider read the whole conversation anew."""
KEPT_TURNS = 2
"""The user's last turns, in which nothing is dropped."""


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
            if not isinstance(state, Completed) or (tool is not None and tool.keeps_output):
                continue
            if state.compacted is not None:  # those before it were marked earlier
                return outputs, freed
            size = estimate(state.output) + PICTURE_TOKENS * len(state.attachments)
            size_so_far += size
            if size_so_far > KEPT_TOKENS:
                freed += size
                outputs.append((message, part, state))
    return outputs, freed
