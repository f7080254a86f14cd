"""The request for a summary: streamed into its message, made again when it fails or does not fit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.messages import Message
from .. import events
from ..errors import ModelError
from ..masking import stream_masked
from ..model import Model, Request
from ..retry import pause, wait_before
from ..streamed_parts import StreamedParts
from ..turns import TextPiece, Turn
from .limits import estimate, estimate_turns, usable
from .transcript import LEVELS, render_transcript

if TYPE_CHECKING:
    from ...core.agents import Agent
    from ..run import Run

log = logging.getLogger(__name__)


class Summariser:
    """Asks one model for the summary of one conversation.

    `agent` is None if the agent for summaries is switched off; the summary goes into `message`.
    """

    def __init__(self, run: Run, model: Model, agent: Agent | None, message: Message) -> None:
        self._run = run
        self._model = model
        self._agent = agent
        self._message = message
        self._parts = StreamedParts(run, message)

    async def summarise(self, turns: Sequence[Turn], words: str) -> events.Finish:
        """Fill the message; less and less of the conversation is sent until it fits.

        Raises:
            ModelError: kind ``overflow`` if even the least does not fit; others as the model raises them.
        """
        system = (self._agent.prompt,) if self._agent is not None and self._agent.prompt else ()
        room = usable(self._model.info, self._run.workspace.config.data)
        sent = 0
        for level in LEVELS:
            shortened = _with_request(render_transcript(turns, level), words)
            size = estimate_turns(shortened) + estimate("".join(system))
            last = level is LEVELS[-1]
            if not last and ((room and size > room) or (sent and size >= 0.8 * sent)):
                continue  # it would not fit, or is what did not fit, nearly
            try:
                return await self._ask_with_retries(self._request(system, shortened))
            except ModelError as error:
                if error.kind != "overflow" or last:
                    raise
                sent = size
        raise AssertionError("unreachable")

    def _request(self, system: tuple[str, ...], turns: Sequence[Turn]) -> Request:
        agent = self._agent
        return Request(
            system=system,
            turns=turns,
            temperature=agent.temperature if agent is not None else None,
            top_p=agent.top_p if agent is not None else None,
            options=agent.options if agent is not None else {},
            session=self._run.session.id,
            agent="compaction",
            directory=str(self._run.workspace.directory),
        )

    async def _ask_with_retries(self, request: Request) -> events.Finish:
        """Ask, and again after errors that may go away."""
        for attempt in range(1, 1000):
            try:
                return await self._ask_once(request)
            except ModelError as error:
                self._parts.remove()
                wait = wait_before(error, attempt)
                if wait is None:
                    raise
                await pause(self._run, error, attempt, wait)
        raise AssertionError("unreachable")

    async def _ask_once(self, request: Request) -> events.Finish:
        finish: events.Finish | None = None
        provider = self._model.info.provider
        try:
            async with aclosing(stream_masked(self._run.workspace, self._model, request)) as stream:
                async for event in stream:
                    if isinstance(event, events.Finish):
                        finish = event
                    elif isinstance(event, events.TextEnd | events.ReasoningEnd):
                        self._parts.handle(replace(event, metadata=None))  # only the text is sent back
                    else:
                        self._parts.handle(event)
        except ModelError:
            raise
        except Exception as error:
            log.exception("the stream of %s failed", self._model.info.full)
            raise ModelError(f"{type(error).__name__}: {error}", "other", provider=provider) from error
        self._parts.close()
        if finish is None:
            raise ModelError("the stream ended before the answer was complete", "cut", provider=provider)
        if finish.reason == "content-filter":
            raise ModelError("the provider's filter withheld the summary", "refused", provider=provider)
        if not self._message.text.strip():
            raise ModelError("the model returned an empty summary", "protocol", provider=provider)
        return finish


def _with_request(turns: list[Turn], words: str) -> list[Turn]:
    """The turns with the request for the summary at their end, in the user's last turn if they end with one."""
    if turns and turns[-1].role == "user":
        return [*turns[:-1], Turn("user", (*turns[-1].pieces, TextPiece(words)))]
    return [*turns, Turn("user", (TextPiece(words),))]
