"""A model in the test's own words: a function of the request says what it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from opencode_jupyter.agent.events import CallEnd, CallStart, Event, Finish, TextDelta, TextEnd, TextStart, Usage
from opencode_jupyter.agent.model import Cost, ModelInfo, Request
from opencode_jupyter.agent.turns import ResultPiece, TextPiece

Said = str | list[tuple[str, dict[str, Any]]]
"""Words, or tool calls."""


class Saying:
    """Answers as `say` tells, which is given the request; it may raise, wait, or return words or calls."""

    def __init__(self, say: Callable[[Request], Said | Awaitable[Said]], name: str = "test") -> None:
        self._say = say
        self.info = ModelInfo("test", name, context=100_000, output=4_000, cost=Cost(1.0, 2.0))
        self.asked = 0
        self.at_once = 0
        self.most_at_once = 0

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            answer = self._say(request)
            if not isinstance(answer, (str, list)):
                answer = await answer
        finally:
            self.at_once -= 1
        if isinstance(answer, str):
            yield TextStart(0)
            yield TextDelta(0, answer)
            yield TextEnd(0)
            yield Finish("stop", Usage(input=100, output=10))
            return
        for index, (name, arguments) in enumerate(answer):
            id = f"call_{self.asked}_{index}"
            yield CallStart(index, id, name)
            yield CallEnd(index, id, name, json.dumps(arguments))
        yield Finish("tool-calls", Usage(input=100, output=10))

    async def aclose(self) -> None:
        pass


def prompt_of(request: Request) -> str:
    """The user's words."""
    turn = next(turn for turn in request.turns if turn.role == "user")
    return " ".join(piece.text for piece in turn.pieces if isinstance(piece, TextPiece))


def results_of(request: Request) -> list[ResultPiece]:
    """What came of the calls so far."""
    return [piece for turn in request.turns for piece in turn.pieces if isinstance(piece, ResultPiece)]


async def slow(seconds: float, answer: Said) -> Said:
    """Say it later."""
    await asyncio.sleep(seconds)
    return answer
