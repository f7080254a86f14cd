"""The answer to a prompt: the value of an agent's cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..core.call_state import Completed, Failed, ToolPart
from ..core.messages import Message, Part
from ..core.result import data_frame
from ..core.sessions import Session
from .events import Usage
from .model import ModelInfo

if TYPE_CHECKING:
    import pandas

RunEnd = Literal["done", "rejected", "max-steps", "length", "refused"]
"""done: the model was finished. rejected: a person denied a request, so the loop stopped. max-steps: its steps were
used up. length: its answer was cut at its limit of tokens. refused: the provider withheld the answer."""


class Calls(list[ToolPart]):
    """The calls of a run, in order; `df` is a table of them."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """One dict a call: tool, input, state, outcome, title, output (or error), seconds, waited, agent, id."""
        return [_row(part) for part in self]

    @property
    def df(self) -> pandas.DataFrame:
        """`records` as a data frame.

        Raises:
            ImportError: pandas is not installed.
        """
        return data_frame(self.records, "calls.df", "calls.records")


def _row(part: ToolPart) -> dict[str, Any]:
    state = part.state
    ended = isinstance(state, (Completed, Failed))
    return {
        "tool": part.tool,
        "input": state.input,
        "state": state.status,
        "outcome": part.outcome,
        "title": state.title if isinstance(state, Completed) else "",
        "output": state.output if isinstance(state, Completed) else state.error if isinstance(state, Failed) else "",
        "seconds": (state.end - state.start) / 1000 if isinstance(state, (Completed, Failed)) else None,
        "waited": part.waited if ended else None,
        "agent": part.agent,
        "id": part.id,
    }


@dataclass
class Answer:
    """A model's answer, with its messages and calls.

    Attributes:
        text: the text of its last message.
        messages: everything that the prompt added to the session, the prompt itself first.
        session: the session that it belongs to; the next prompt in it continues from here.
        model: the model that answered.
        usage: tokens of all requests together.
        cost: in US dollars; None if the model's prices are not known.
        steps: how many times the model was asked.
        finish: why it stopped, as OpenCode keeps it.
        ended: how the run ended.
        value: the validated object, if a form of the answer was requested; else None.
        notes: remarks for a person (a replay that differs, a retry).
    """

    text: str
    messages: list[Message]
    session: Session
    model: ModelInfo
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    steps: int = 0
    finish: str = ""
    ended: RunEnd = "done"
    value: Any = None
    notes: list[str] = field(default_factory=list)

    @property
    def parts(self) -> list[Part]:
        """Every part of the model's messages, in order; those of a summary that was made on the way are left out."""
        messages = [m for m in self.messages if m.role == "assistant" and not m.info.get("summary")]
        return [part for message in messages for part in message.parts]

    @property
    def calls(self) -> Calls:
        """The calls that the model made, in order."""
        return Calls(part for part in self.parts if isinstance(part, ToolPart))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        calls = len(self.calls)
        return (
            f"<answer of {self.model.full}, {self.ended}: {self.steps} steps, {calls} calls, {self.usage.whole} tokens>"
        )
