"""What a request shows of its conversation: the prompts, and for each the model's turns and what their calls gave.

Which turn of a script comes next is told by this alone, never by a counter. So a retry, a fork, a revert, a cell that
runs again and a session opened another day all get the turn that fits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...core.errors import PermissionRejectedError, QuestionRejectedError, ToolAbortedError
from ...core.repair import INVALID
from ..history import SUMMARY_QUESTION
from ..model import Request
from ..prompt.reminders import LAST_STEP
from ..structured import NUDGE
from ..turns import CallPiece, ResultPiece, TextPiece, Turn

OUTCOMES = (
    "completed",
    "error",
    "rejected",
    "corrected",
    "denied",
    "dismissed",
    "stopped",
    "timeout",
    "invalid",
    "failed",
)
"""How a call can end, as a condition names it; `error` stands for all but ``completed`` and ``invalid``."""
_REJECTED = str(PermissionRejectedError()).rstrip(".")
_TEXTS = (
    (_REJECTED + " with the following feedback", "corrected"),
    (_REJECTED, "rejected"),
    ("The user has specified a rule which prevents", "denied"),
    (str(QuestionRejectedError()), "dismissed"),
    (str(ToolAbortedError()), "stopped"),
    ("[Tool execution was interrupted]", "stopped"),
)
NOTICES = (NUDGE, LAST_STEP)
"""How words begin that the loop puts in for the model as the user's; they are no prompt."""
_DIRECTORY = re.compile(
    r"^[-\s]*Working (?:directory|folder): *(\S.*?)(?: \((?:a git repository|not under git).*)?$", re.MULTILINE
)
"""As the system prompt's paragraph on the environment has it (`agent.prompt.environment`)."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a call gave: its tool, its text, how it ended, and the arguments it was called with."""

    tool: str
    output: str
    outcome: str
    call_id: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True if it ended with an error."""
        return self.outcome not in ("completed", "invalid")

    def is_(self, outcome: str) -> bool:
        """Return whether it ended so."""
        return self.failed if outcome == "error" else self.outcome == outcome


@dataclass(slots=True)
class Step:
    """One turn of the model that the conversation holds, and what its calls gave."""

    calls: tuple[CallPiece, ...]
    results: list[Result] = field(default_factory=list)


@dataclass(slots=True)
class Prompt:
    """A prompt of the user's, and what has been done about it so far.

    Attributes:
        number: which one of the conversation it is, from 1.
        texts: its texts; beside the user's own there may be others that were put in for the model.
    """

    number: int
    texts: tuple[str, ...]
    steps: list[Step] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its first text, which is the user's own."""
        return self.texts[0] if self.texts else ""

    @property
    def whole(self) -> str:
        """All of its texts."""
        return "\n\n".join(self.texts)


class Seen:
    """A request, read."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.agent: str = getattr(request, "agent", "") or str(request.options.get("agent") or "")
        self.session = request.session
        self.tools = tuple(spec.name for spec in request.tools)
        self.prompts: list[Prompt] = []
        self.call_ids: set[str] = set()
        self.turns = 0
        """How many turns of the model the conversation holds."""
        turns = list(request.turns)
        while turns and turns[-1].role == "assistant":  # words put into the model's mouth are no answer it gave
            turns.pop()
        self.key: Turn | None = None
        """The last turn that is not the loop's own: the same one when the same is asked again."""
        for turn in turns:
            self._take(turn)

    def _take(self, turn: Turn) -> None:
        if turn.role == "user":
            texts = tuple(piece.text for piece in turn.pieces if isinstance(piece, TextPiece))
            if self.prompts and any(text.startswith(NOTICES) for text in texts):
                return
            self.key = turn
            self.prompts.append(Prompt(len(self.prompts) + 1, texts))
            return
        if turn.role == "assistant":
            calls = tuple(piece for piece in turn.pieces if isinstance(piece, CallPiece))
            self.call_ids.update(call.id for call in calls)
            self.turns += 1
            if self.prompts and not self._is_summary():
                self.prompts[-1].steps.append(Step(calls))
            return
        self.key = turn
        if not self.prompts or not self.prompts[-1].steps:
            return
        step = self.prompts[-1].steps[-1]
        arguments = {call.id: call.arguments for call in step.calls}
        for piece in turn.pieces:
            if isinstance(piece, ResultPiece):
                step.results.append(
                    Result(piece.name, piece.text, _outcome(piece), piece.call_id, arguments.get(piece.call_id, {}))
                )

    def _is_summary(self) -> bool:
        """Return whether an answer that comes now only sums up what was cut off before it."""
        return len(self.prompts) == 1 and self.prompts[0].text == SUMMARY_QUESTION and self.turns == 1

    @property
    def prompt(self) -> Prompt | None:
        """The last prompt, which is to be answered."""
        return self.prompts[-1] if self.prompts else None

    @cached_property
    def directory(self) -> Path:
        """Where the session works, as the system prompt says; else where this process does."""
        for paragraph in self.request.system:
            found = _DIRECTORY.search(paragraph)
            if found:
                return Path(found[1])
        return Path.cwd()


def _outcome(piece: ResultPiece) -> str:
    if not piece.failed:
        return "invalid" if piece.name == INVALID else "completed"
    for text, outcome in _TEXTS:
        if piece.text.startswith(text):
            return outcome
    return "timeout" if re.match(r"The \S+ tool ran longer than its limit of ", piece.text) else "failed"
