"""Plays a model against a conversation that is kept as data, so that a script can be tested turn by turn."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any

from opencode_jupyter.agent import events
from opencode_jupyter.agent.errors import ModelError
from opencode_jupyter.agent.model import Model, Request, ToolSpec
from opencode_jupyter.agent.scripted.script import Script
from opencode_jupyter.agent.scripted.yaml_document import parse
from opencode_jupyter.agent.turns import CallPiece, Piece, ReasoningPiece, ResultPiece, TextPiece, Turn
from opencode_jupyter.core.call_state import outcome_of
from opencode_jupyter.core.repair import INVALID


def script_of_text(text: str, name: str = "script") -> Script:
    """The script in a YAML text."""
    return Script(parse(text, name))


class Talk:
    """A conversation with a model; calls are answered by `answer`, a function of a tool's name and its arguments."""

    def __init__(
        self,
        model: Model,
        answer: Callable[[str, Any], Any] = lambda tool, arguments: "",
        *,
        agent: str = "build",
        session: str = "ses_1",
        tools: Sequence[str] = (),
        directory: str = "",
    ) -> None:
        self.model = model
        self.answer = answer
        self.agent = agent
        self.session = session
        self.tools = [ToolSpec(name, f"The tool {name}", {"type": "object"}) for name in tools]
        self.directory = directory
        self.turns: list[Turn] = []
        self.all: list[events.Event] = []
        self.finishes: list[events.Finish] = []

    def request(self) -> Request:
        return Request(
            turns=list(self.turns),
            tools=self.tools,
            session=self.session,
            agent=self.agent,
            directory=self.directory,
        )

    def say(self, prompt: str) -> None:
        self.turns.append(Turn("user", (TextPiece(prompt),)))

    async def ask(self) -> list[events.Event]:
        """One request; its answer is not kept."""
        return await gathered(self.model.stream(self.request()))

    async def step(self) -> list[events.Event]:
        """One request; its answer and what its calls give join the conversation."""
        got = await self.ask()
        self.all += got
        finish = got[-1]
        assert isinstance(finish, events.Finish)
        self.finishes.append(finish)
        made: list[Piece] = [
            TextPiece(part[1]) if part[0] == "text" else ReasoningPiece(part[1])
            for part in event_parts(got)
            if part[0] in ("text", "reasoning") and part[1]
        ]
        results: list[Piece] = []
        for event in got:
            if isinstance(event, events.CallEnd):
                made.append(CallPiece(event.id, event.name, {}))
                result = self.answer(event.name, event.arguments)
                failed = isinstance(result, Exception)
                name = INVALID if result is None else event.name
                outcome = outcome_of(result) if isinstance(result, Exception) else ""
                results.append(ResultPiece(event.id, name, str(result), failed=failed, outcome=outcome))
        if made:
            self.turns.append(Turn("assistant", tuple(made), (self.model.info.provider, self.model.info.model)))
        if results:
            self.turns.append(Turn("tool", tuple(results)))
        return got

    async def prompt(self, text: str, *, tries: int = 5) -> list[tuple[str, ...]]:
        """Say something, and go on until the model makes no more calls. Retries are at once.

        Returns: what it said, see `event_parts`.
        """
        self.say(text)
        parts: list[tuple[str, ...]] = []
        while True:
            for left in range(tries, 0, -1):
                try:
                    got = await self.step()
                    break
                except ModelError as error:
                    if not error.retryable or left == 1:
                        raise
            parts += event_parts(got)
            if not any(isinstance(event, events.CallEnd) for event in got):
                return parts


async def gathered(stream: AsyncIterable[events.Event]) -> list[events.Event]:
    return [event async for event in stream]


def event_parts(got: Sequence[events.Event]) -> list[tuple[str, ...]]:
    """Parts in order: (``text`` | ``reasoning``, words) and (``call``, tool, arguments)."""
    order: list[int] = []
    parts: dict[int, tuple[str, ...]] = {}
    for event in got:
        if isinstance(event, events.Finish):
            continue
        if event.index not in parts:
            order.append(event.index)
            parts[event.index] = ()
        if isinstance(event, events.TextDelta):
            parts[event.index] = ("text", "".join(parts[event.index][1:]) + event.text)
        elif isinstance(event, events.ReasoningDelta):
            parts[event.index] = ("reasoning", "".join(parts[event.index][1:]) + event.text)
        elif isinstance(event, events.CallEnd):
            parts[event.index] = ("call", event.name, event.arguments)
    return [parts[index] for index in order if parts[index]]
