"""The request for a summary: streamed into its message, made again when it fails or does not fit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ...core.messages import Message, new_part
from ...core.state import now_ms
from .. import events
from ..errors import ModelError
from ..masking import stream_masked
from ..model import Model, Request
from ..retry import wait_before
from ..turns import TextPiece, Turn
from .limits import estimate, estimate_turns, usable
from .transcript import LEVELS, render_transcript

if TYPE_CHECKING:
    from ...core.agents import Agent
    from ..run import Run

log = logging.getLogger(__name__)


class Summariser:
    """Asks one model for the summary of one conversation.

    Args:
        run: whose conversation; told of what happens.
        model: who is asked.
        agent: as whom; None if that agent is switched off.
        message: where the summary is to stand.
    """

    def __init__(self, run: Run, model: Model, agent: Agent | None, message: Message) -> None:
        self._run = run
        self._model = model
        self._agent = agent
        self._message = message
        self._open: dict[int, tuple[dict[str, Any], list[str]]] = {}
        self._made: list[str] = []

    async def summarise(self, turns: Sequence[Turn], words: str) -> events.Finish:
        """Fill the message; less and less is told of the conversation until it fits.

        Raises:
            ModelError: kind ``overflow`` if even the least does not fit; others as the model raises them.
        """
        system = (self._agent.prompt,) if self._agent is not None and self._agent.prompt else ()
        room = usable(self._model.info, self._run.workspace.config.data)
        sent = 0
        for level in LEVELS:
            told = _asking(render_transcript(turns, level), words)
            size = estimate_turns(told) + estimate("".join(system))
            last = level is LEVELS[-1]
            if not last and ((room and size > room) or (sent and size >= 0.8 * sent)):
                continue  # it would not fit, or is what did not fit, nearly
            try:
                return await self._patiently(self._request(system, told))
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
        )

    async def _patiently(self, request: Request) -> events.Finish:
        """Ask, and again after errors that may go away."""
        run = self._run
        for attempt in range(1, 1000):
            try:
                return await self._once(request)
            except ModelError as error:
                self._forget()
                wait = wait_before(error, attempt)
                if wait is None:
                    raise
                run.retry = {"attempt": attempt, "message": str(error), "next": now_ms() + round(wait * 1000)}
                run.set_status("retrying")
                await asyncio.sleep(wait)
                run.retry = None
                run.set_status("compacting")
        raise AssertionError("unreachable")

    async def _once(self, request: Request) -> events.Finish:
        finish: events.Finish | None = None
        provider = self._model.info.provider
        try:
            async with aclosing(stream_masked(self._run.workspace, self._model, request)) as stream:
                async for event in stream:
                    match event:
                        case events.TextDelta(index, text):
                            self._grow(index, "text", text)
                        case events.ReasoningDelta(index, text):
                            self._grow(index, "reasoning", text)
                        case events.TextEnd(index) | events.ReasoningEnd(index):
                            self._end(index)
                        case events.Finish():
                            finish = event
                        case _:
                            pass
        except ModelError:
            raise
        except Exception as error:
            log.exception("the stream of %s failed", self._model.info.full)
            raise ModelError(f"{type(error).__name__}: {error}", "other", provider=provider) from error
        for index in list(self._open):
            self._end(index)
        if finish is None:
            raise ModelError("the stream ended before the answer was complete", "cut", provider=provider)
        if finish.reason == "content-filter":
            raise ModelError("the provider's filter withheld the summary", "refused", provider=provider)
        if not self._message.text.strip():
            raise ModelError("the model returned an empty summary", "protocol", provider=provider)
        return finish

    # ------------------------------------------------------------------ the message

    def _grow(self, index: int, kind: str, text: str) -> None:
        if not text:
            return
        run = self._run
        if index not in self._open:
            part = new_part(self._message, kind, text="", time={"start": now_ms()})
            self._made.append(part["id"])
            self._open[index] = (part, [])
            run.conversation.put(self._message, part)
            run.tell("part", part)
        part, pieces = self._open[index]
        pieces.append(text)
        run.conversation.grown(part, "text", text)
        run.tell("delta", (part, text))

    def _end(self, index: int) -> None:
        if index not in self._open:
            return
        part, pieces = self._open.pop(index)
        part["text"] = "".join(pieces)
        part["time"] = {**part["time"], "end": now_ms()}
        self._run.conversation.put(self._message, part)
        self._run.tell("part", part)

    def _forget(self) -> None:
        """Take out what the broken stream had begun."""
        self._open.clear()
        made = set(self._made)
        self._made.clear()
        self._run.conversation.drop(self._message, made)
        if made:
            self._run.tell("dropped", made)


def _asking(turns: list[Turn], words: str) -> list[Turn]:
    """The turns with the request for the summary at their end, in the user's last turn if they end with one."""
    if turns and turns[-1].role == "user":
        return [*turns[:-1], Turn("user", (*turns[-1].pieces, TextPiece(words)))]
    return [*turns, Turn("user", (TextPiece(words),))]
