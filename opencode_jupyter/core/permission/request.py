"""Permission requests, replies and decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .rules import Action, Rule

Reply = Literal["once", "always", "reject"] | tuple[Literal["reject"], str]
"""An answer. The tuple carries a word to the model about why not."""

TRUST = "trust"
"""Permission of the ask for code that a project brings (`core.trust`)."""
SANDBOX = "sandbox"
"""Permission of the request to run a command again without the sandbox that blocked it."""
DOOM_LOOP = "doom_loop"
"""Permission of the request for a call that repeats itself."""


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
    exact: PermissionRequest | None = field(default=None, repr=False, compare=False)
    """The same without masks, for the rules; None if no secret is in it."""

    @property
    def everything(self) -> list[str]:
        """All that the answer is about, for a text that shows nothing else: `patterns` and `also`."""
        return [*self.patterns, *self.also]

    def masked(self, mask: Callable[[Any], Any]) -> PermissionRequest:
        """This request as it is shown: itself if no secret is in it."""
        shown: PermissionRequest = mask(self)
        if shown is not self:
            shown.exact = self
        return shown

    def remembered(self, patterns: Sequence[str] | None) -> list[str]:
        """The patterns for rules of the session: `always`, or those that a person chose of what was shown."""
        exact = dict(zip(self.always, (self.exact or self).always, strict=True))
        return [exact.get(pattern, pattern) for pattern in (self.always if patterns is None else patterns)]

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
        together: it was another request of the session that the person answered.
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
    together: bool = False
