"""The conversation in a request: the prompts, and for each the model's turns with the results of their calls.

It alone determines which turn of a script comes next, never a counter. So a retry, a fork, a revert, a cell that runs
again and a session opened another day all get the turn that fits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core.call_state import CallOutcome
from ...core.errors import PermissionCorrectedError
from ...core.repair import INVALID
from ..model import Request
from ..turns import CallPiece, ResultPiece, TextPiece, Turn

TITLE_AGENT = "title"
"""The agent that writes a session's title."""
SUMMARY_AGENTS = ("compaction", "summary")
"""Agents that summarise a conversation."""
_CORRECTED = str(PermissionCorrectedError(""))
"""Begins the error of a call that a person denied with a reason."""
_OUTCOMES: dict[str, str] = {
    CallOutcome.DENIED_BY_RULE: "denied",
    CallOutcome.DISMISSED: "dismissed",
    CallOutcome.TIMED_OUT: "timeout",
    **dict.fromkeys(
        (CallOutcome.STOPPED, CallOutcome.INTERRUPTED, CallOutcome.ENDED, CallOutcome.CANCELLED), "stopped"
    ),
}
"""A failed call's outcome in a script's terms; ``failed`` for all others."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call: its tool, text and outcome, and the arguments of the call.

    Attributes:
        outcome: ``completed``, ``failed``, ``rejected`` (a person denied it), ``corrected`` (denied with a reason),
            ``denied`` (by a rule), ``dismissed`` (a question), ``stopped``, ``timeout``,
            ``invalid`` (a malformed call).
    """

    tool: str
    output: str
    outcome: str
    call_id: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True if the call ended with an error."""
        return self.outcome not in ("completed", "invalid")


@dataclass(slots=True)
class AnsweredTurn:
    """One turn of the model in the conversation, and the results of its calls."""

    calls: tuple[CallPiece, ...]
    results: list[CallResult] = field(default_factory=list)


@dataclass(slots=True)
class AnsweredPrompt:
    """A user's prompt, and the steps that answer it so far.

    Attributes:
        number: of the prompt in the conversation, from 1.
        texts: the user's own, then those that were inserted for the model.
    """

    number: int
    texts: tuple[str, ...]
    steps: list[AnsweredTurn] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The user's own text."""
        return self.texts[0] if self.texts else ""

    @property
    def all_text(self) -> str:
        """All of its texts."""
        return "\n\n".join(self.texts)


class ScriptConversation:
    """The conversation of a request.

    Attributes:
        prompts: oldest first.
        turns: how many turns of the model it holds.
        key: the last turn that is not the loop's own: the same object when the same request comes again.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.agent: str = request.agent
        self.session = request.session
        self.directory = request.directory or str(Path.cwd())
        self.tools = tuple(spec.name for spec in request.tools)
        self.prompts: list[AnsweredPrompt] = []
        self.call_ids: set[str] = set()
        self.turns = 0
        self.key: Turn | None = None
        self._starts_with_summary = False
        turns = list(request.turns)
        while turns and turns[-1].role == "assistant":  # the beginning of an answer that the caller prescribes
            turns.pop()
        for turn in turns:
            self._add(turn)

    def _add(self, turn: Turn) -> None:
        if turn.role == "user":
            texts = tuple(piece.text for piece in turn.pieces if isinstance(piece, TextPiece))
            if not self.prompts or turn.purpose != "notice":
                self._starts_with_summary = self._starts_with_summary or turn.purpose == "summary"
                self.key = turn
                self.prompts.append(AnsweredPrompt(len(self.prompts) + 1, texts))
            return
        if turn.role == "assistant":
            calls = tuple(piece for piece in turn.pieces if isinstance(piece, CallPiece))
            self.call_ids.update(call.id for call in calls)
            self.turns += 1
            if self.prompts and not self._is_summary():
                self.prompts[-1].steps.append(AnsweredTurn(calls))
            return
        self.key = turn
        if not self.prompts or not self.prompts[-1].steps:
            return
        step = self.prompts[-1].steps[-1]
        arguments = {call.id: call.arguments for call in step.calls}
        step.results += [
            CallResult(piece.name, piece.text, _outcome(piece), piece.call_id, arguments.get(piece.call_id, {}))
            for piece in turn.pieces
            if isinstance(piece, ResultPiece)
        ]

    def _is_summary(self) -> bool:
        """True if the next answer summarises the turns before it."""
        return len(self.prompts) == 1 and self._starts_with_summary and self.turns == 1

    @property
    def prompt(self) -> AnsweredPrompt | None:
        """The last prompt, which is to be answered."""
        return self.prompts[-1] if self.prompts else None


def _outcome(piece: ResultPiece) -> str:
    if not piece.failed:
        return "invalid" if piece.name == INVALID else "completed"
    if piece.outcome == CallOutcome.DENIED_BY_PERSON:
        return "corrected" if piece.text.startswith(_CORRECTED) else "rejected"
    return _OUTCOMES.get(piece.outcome, "failed")
