"""What is asked, what is answered, what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from .rules import Action, Rule

Reply = Literal["once", "always", "reject"] | tuple[Literal["reject"], str]
"""An answer. The tuple carries a word to the model about why not."""

TOGETHER = "answered together with another request"
"""`Decision.message` of an ask that another one's answer "always" covered."""


@dataclass(slots=True)
class PermissionRequest:
    """One ask, waiting for an answer.

    Attributes:
        id: ``per_...``.
        session_id: ``ses_...``.
        permission: the key asked for (``bash``, ``edit``, ...).
        patterns: everything the call needs it for, also what rules allow already.
        metadata: what a card shows (a diff, a command, a path).
        always: the patterns that "for this session" remembers.
        tool: ``{"messageID", "callID"}`` of the call that asks, if any.
        agent: for whom the call runs.
        rule: the rule that says ask.
        rules: the rule that decides each pattern, in the order of `patterns`.
        asked: Unix milliseconds.
        also: what the call needs besides and rules ask for too, but OpenCode does not name (where a file is moved to).
    """

    id: str
    session_id: str
    permission: str
    patterns: list[str]
    metadata: dict[str, Any] = field(default_factory=dict)
    always: list[str] = field(default_factory=list)
    tool: dict[str, str] | None = None
    agent: str = ""
    rule: Rule | None = None
    asked: int = 0
    rules: list[Rule] = field(default_factory=list)
    also: list[str] = field(default_factory=list)

    @property
    def everything(self) -> list[str]:
        """All that the answer is about, for a text that shows nothing else: `patterns` and `also`."""
        return [*self.patterns, *self.also]

    def to_wire(self) -> dict[str, Any]:
        """OpenCode's form: the payload of ``permission.asked``."""
        wire: dict[str, Any] = {
            "id": self.id,
            "sessionID": self.session_id,
            "permission": self.permission,
            "patterns": list(self.patterns),
            "metadata": self.metadata,
            "always": list(self.always),
        }
        if self.tool is not None:
            wire["tool"] = dict(self.tool)
        return wire


@dataclass(slots=True)
class Decision:
    """How one ask ended, for the card and the history.

    Attributes:
        permission: the key asked for.
        patterns: what for.
        action: ``allow`` or ``deny``.
        rules: the deciding rule of each pattern, in the order of `patterns`.
        reply: None if rules alone decided, else the person's ``once``, ``always`` or ``reject``.
        by: who decided: ``rule``, ``reply``, ``approve``, ``cancelled``, ``closed``, or the way in that was given
            to `PermissionService.reply` (``card``, ``prompt``, ``policy``, ...).
        message: the person's word, or why it ended without one.
        note: what else came of it, such as the file that a rule was saved in.
        waited: seconds spent waiting for the answer.
        time: Unix milliseconds of the end.
        session_id: whose ask it was.
        request_id: the request, if one was made.
        revised: it was no answer: the person changed the call's arguments, and the call begins again.
    """

    permission: str
    patterns: list[str]
    action: Action
    rules: list[Rule]
    reply: Literal["once", "always", "reject"] | None = None
    by: str = "rule"
    message: str | None = None
    waited: float = 0.0
    time: int = 0
    session_id: str = ""
    request_id: str | None = None
    note: str | None = None
    revised: bool = False
