"""The request for a summary: the conversation as text, shorter and shorter until it fits; retries; the stream."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ...core.messages import Message
from .. import events
from ..errors import ModelError
from ..masking import stream_masked
from ..model import Model, Request, agent_request
from ..retry import pause, wait_before
from ..streamed_parts import StreamedParts
from ..turns import CallPiece, MediaPiece, Piece, ReasoningPiece, ResultPiece, TextPiece, Turn
from .limits import estimate, estimate_turns, usable_tokens

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
        self._parts = StreamedParts(run.conversation, message, run.report)

    async def summarise(self, turns: Sequence[Turn], request: str) -> events.Finish:
        """Fill the message; less and less of the conversation is sent until it fits.

        Raises:
            ModelError: kind ``overflow`` if even the least does not fit; others as the model raises them.
        """
        system = (self._agent.prompt,) if self._agent is not None and self._agent.prompt else ()
        room = usable_tokens(self._model.info, self._run.workspace.config.data)
        sent = 0
        for level in LEVELS:
            shortened = _with_request(render_transcript(turns, level), request)
            size = estimate_turns(shortened) + estimate("".join(system))
            last = level is LEVELS[-1]
            if not last and ((room and size > room) or (sent and size >= 0.8 * sent)):
                continue  # it would not fit, or is what did not fit, nearly
            try:
                return await self._ask_with_retries(self._build_request(system, shortened))
            except ModelError as error:
                if error.kind != "overflow" or last:
                    raise
                sent = size
        raise AssertionError("unreachable")

    def _build_request(self, system: tuple[str, ...], turns: Sequence[Turn]) -> Request:
        run = self._run
        return agent_request(run.workspace, run.session, "compaction", self._agent, system=system, turns=turns)

    async def _ask_with_retries(self, request: Request) -> events.Finish:
        """Ask, and again after errors that may go away."""
        for attempt in itertools.count(1):
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


def _with_request(turns: list[Turn], request: str) -> list[Turn]:
    """The turns with the request for the summary at their end, in the user's last turn if they end with one."""
    if turns and turns[-1].role == "user":
        return [*turns[:-1], Turn("user", (*turns[-1].pieces, TextPiece(request)))]
    return [*turns, Turn("user", (TextPiece(request),))]


# ---------------------------------------------------------------------- the conversation as text


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
