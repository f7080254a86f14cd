"""A permission rule, and the decision that rules or a person made: data, without the code that judges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Action = Literal["allow", "deny", "ask"]
Answer = Literal["once", "always", "reject"]

RuleSource = Literal["default", "config", "project", "session", "mode", "code"]
"""Where a rule comes from: built in, the user's configuration, a file in the project, a person in this session (typed
or approved), a permission mode, code."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        permission: wildcard over permission keys (``bash``, ``edit``, ``*``).
        pattern: wildcard over what the permission is for (a command, a path).
        action: what happens.
        origin: where the rule comes from, in words for a person. Two rules are equal whatever their origin.
        approval: it counts as a person's approval (a session's mode): it undoes no rule that denies.
        over: approvals that were there before it, which it comes after.
        stricter: it counts only where it is stricter than the rules without this mark: a project's that nobody trusts.
        overrides: such rules do not count against it.
        source: the kind of place that it comes from; `origin` is its display text.
        source_name: the mode's name; of a rule in the top-level ``permission`` of a config file, the file's path.
    """

    permission: str
    pattern: str
    action: Action
    origin: str = field(default="", compare=False)
    approval: bool = field(default=False, compare=False, repr=False)
    over: tuple[Rule, ...] = field(default=(), compare=False, repr=False)
    stricter: bool = field(default=False, compare=False, repr=False)
    overrides: bool = field(default=False, compare=False, repr=False)
    source: RuleSource = field(default="code", compare=False, repr=False)
    source_name: str = field(default="", compare=False, repr=False)

    def to_wire(self) -> dict[str, str]:
        """OpenCode's form of a rule, without its origin."""
        return {
            "permission": self.permission,
            "pattern": self.pattern,
            "action": self.action,
        }

    def to_json(self) -> dict[str, str]:
        """The rule with its origin, as cards and lists of rules have it."""
        return {**self.to_wire(), "origin": self.origin}


@dataclass(slots=True)
class Decision:
    """How a permission request ended, for the card and the history.

    Attributes:
        permission: the key asked for.
        patterns: what for.
        action: ``allow`` or ``deny``.
        rules: the deciding rule of each pattern, in the order of `patterns`.
        reply: None if rules alone decided, else the person's ``once``, ``always`` or ``reject``.
        by: who decided: ``rule``, ``reply``, ``approve``, ``cancelled``, ``closed``, or the channel that was passed
            to `PermissionService.reply` (``card``, ``prompt``, ``policy``, ...).
        message: the person's reason, or why it ended without a reply.
        note: a further effect, such as the file that a rule was saved in.
        waited: seconds spent waiting for the answer.
        time: Unix milliseconds of the end.
        session_id: the session of the request.
        request_id: the request, if one was made.
        revised: no reply: the person changed the call's arguments, and the call starts again.
        together: it was another request of the session that the person answered.
    """

    permission: str
    patterns: list[str]
    action: Action
    rules: list[Rule]
    reply: Answer | None = None
    by: str = "rule"
    message: str | None = None
    waited: float = 0.0
    time: int = 0
    session_id: str = ""
    request_id: str | None = None
    note: str | None = None
    revised: bool = False
    together: bool = False
