"""A model that says what a test wants: it stands in for a provider, behind the protocol of `agent.model`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from opencode_jupyter.agent import events
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.model import ModelInfo, Request

Turn = dict[str, Any]
"""``text``, ``reasoning``, ``calls`` ([name, arguments or raw text, id?]), ``usage``, ``finish``, ``error`` (at once),
``cut`` (a `ModelError` after everything else), ``hang`` (``request``, ``text``, ``arguments``: wait there for ever)."""


class FakeModel:
    """Gives one turn after another.

    Args:
        turns: the turns, or a function of the request that makes one.

    Attributes:
        requests: what it was asked.
        hanging: set when it waits at a turn's ``hang``.
        closed: how many of its streams were ended before their time.
    """

    def __init__(self, turns: Sequence[Turn] | Callable[[Request], Turn], **info: Any) -> None:
        self.turns = turns
        self._n = 0
        self.info = ModelInfo("fake", "m", **info)
        self.requests: list[Request] = []
        self.hanging = asyncio.Event()
        self.closed = 0

    async def stream(self, request: Request) -> AsyncGenerator[events.Event, None]:
        """See `agent.model.Model`."""
        self.requests.append(request)
        k, self._n = self._n, self._n + 1
        turn = self.turns(request) if callable(self.turns) else self.turns[k]
        try:
            async for event in self._said(turn, k):
                yield event
                await asyncio.sleep(0)
        except GeneratorExit:
            self.closed += 1
            raise
        except asyncio.CancelledError:
            self.closed += 1
            raise

    async def _hang(self, turn: Turn, where: str) -> None:
        if turn.get("hang") == where:
            self.hanging.set()
            await asyncio.sleep(3600)

    async def _said(self, turn: Turn, k: int) -> AsyncGenerator[events.Event, None]:
        await self._hang(turn, "request")
        if "error" in turn:
            raise turn["error"]
        index = 0
        if "reasoning" in turn:
            yield events.ReasoningStart(index)
            yield events.ReasoningDelta(index, turn["reasoning"])
            yield events.ReasoningEnd(index, turn.get("signature"))
            index += 1
        if turn.get("text"):
            yield events.TextStart(index)
            for word in turn["text"].split():
                yield events.TextDelta(index, word + " ")
            await self._hang(turn, "text")
            yield events.TextEnd(index)
            index += 1
        for j, (name, arguments, *rest) in enumerate(turn.get("calls", ())):
            raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
            id = rest[0] if rest else f"call_{k}_{j}"
            yield events.CallStart(index, id, name)
            for at in range(0, len(raw), 7):
                yield events.CallDelta(index, raw[at : at + 7])
            await self._hang(turn, "arguments")
            if turn.get("cut_in") == j:
                raise ModelError("the stream broke off", "cut")
            yield events.CallEnd(index, id, name, raw)
            index += 1
        if "cut" in turn:
            raise turn["cut"]
        usage = turn.get("usage") or events.Usage(100 * (k + 1), 20, total=100 * (k + 1) + 20)
        yield events.Finish(turn.get("finish") or ("tool-calls" if turn.get("calls") else "stop"), usage)

    async def aclose(self) -> None:
        """Nothing to let go of."""
