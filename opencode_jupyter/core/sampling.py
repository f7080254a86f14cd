"""Sampling: one answer of a model, for what is below the agent layer (an MCP server that requests one)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Media:
    """A picture or a sound of a message: its MIME type, and its bytes in base64."""

    mime: str
    data: str


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """What a model is asked, without tools.

    Attributes:
        messages: who wrote each, and its texts and media.
        max_output: the most tokens of the answer.
    """

    messages: Sequence[tuple[Literal["user", "assistant"], Sequence[str | Media]]]
    system: str = ""
    temperature: float | None = None
    max_output: int | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's answer.

    Attributes:
        reason: why it ended: ``stop``, ``length`` or another of the model layer's reasons; "" if none was given.
    """

    text: str
    reason: str


class Completer(Protocol):
    """Has a model answer a request."""

    async def __call__(self, model: str, request: CompletionRequest) -> Completion:
        """Ask the model of this name (``provider:model``).

        Raises:
            ToolError: there is no such model, or it failed.
        """
