"""Rules and what a list of them decides: the last rule that fits wins, however specific another is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from os.path import isabs
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ..errors import ConfigError
from ..wildcard import match

Action = Literal["allow", "deny", "ask"]
ACTIONS: tuple[str, ...] = get_args(Action)
STRICT: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}

RuleConfig = str | Mapping[str, str | Mapping[str, str]]
"""The ``permission`` entry of a config: one action, or action (or pattern -> action) by permission."""

EDIT_TOOLS = frozenset({"edit", "write", "patch", "multiedit", "apply_patch", "notebook_edit"})
"""Tools that ask for ``edit``."""

PATH_PERMISSIONS = frozenset({"read", "edit", "list"})
"""Permissions whose patterns are paths."""

NO_RULE = "no rule speaks of it"

NOT_ANALYSED = "(not analysed) "
"""Begins a pattern for what only running it can tell (a shell command whose words are made when it runs)."""

_speaks_of = lru_cache(maxsize=4096)(match)  # there are few permission keys, and each is looked up on every call


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
    """

    permission: str
    pattern: str
    action: Action
    origin: str = field(default="", compare=False)
    approval: bool = field(default=False, compare=False, repr=False)
    over: tuple[Rule, ...] = field(default=(), compare=False, repr=False)

    def to_wire(self) -> dict[str, str]:
        """OpenCode's form of a rule, without its origin."""
        return {
            "permission": self.permission,
            "pattern": self.pattern,
            "action": self.action,
        }


def evaluate(permission: str, pattern: str, *rulesets: Sequence[Rule], spellings: Sequence[str] = ()) -> Rule:
    """The last rule of all rulesets together that fits both; a rule that asks if there is none.

    Args:
        permission: the key.
        pattern: what it is for.
        *rulesets: the later ones decide before the earlier ones.
        spellings: other names of what it is for. Only a rule for absolute paths fits an absolute one, and only another
            rule a relative one, so that the name of a folder above the project does not count.
    """
    # Runs on every tool call and on every bash command of it: the common cases are settled without a call.
    for ruleset in reversed(rulesets):
        for rule in reversed(ruleset):
            wanted = rule.permission
            if wanted == permission or wanted == "*" or _speaks_of(permission, wanted):
                of = rule.pattern
                if of == "*" or match(pattern, of):
                    return rule
                if spellings and any(match(other, of) for other in spellings if isabs(other) == isabs(of)):
                    return rule
    return Rule(permission, "*", "ask", NO_RULE)


def doubted(permission: str, pattern: str, allowing: Rule, *rulesets: Sequence[Rule]) -> Rule:
    """What decides a pattern that begins with `NOT_ANALYSED`, which a rule for everything would allow.

    It may be the very thing that a later rule refuses or asks for, hidden: so it asks wherever there is such a rule. A
    rule that allows this very text, or everything and comes last, stands.

    Args:
        permission: the key.
        pattern: the pattern.
        allowing: the rule that `evaluate` gave.
        *rulesets: those it was given.
    """
    if allowing.pattern == pattern:
        return allowing
    for ruleset in reversed(rulesets):
        for rule in reversed(ruleset):
            if rule is allowing:
                return allowing
            if rule.action != "allow" and _speaks_of(permission, rule.permission):
                why = f"it is unclear whether {permission} {rule.pattern} ({rule.action}) is meant"
                return Rule(permission, rule.pattern, "ask", f"{rule.origin}: {why}" if rule.origin else why)
    return allowing


def relevant(permission: str, ruleset: Iterable[Rule]) -> list[Rule]:
    """The rules that speak of a permission, whatever their pattern and action."""
    return [rule for rule in ruleset if match(permission, rule.permission)]


def disabled(tools: Iterable[str], ruleset: Sequence[Rule]) -> set[str]:
    """The tools that need not be offered to a model: the last rule about them denies every pattern.

    A rule for one pattern, later, keeps the tool: its calls are judged one by one.
    """
    out: set[str] = set()
    for tool in tools:
        key = "edit" if tool in EDIT_TOOLS else tool
        for rule in reversed(ruleset):
            if match(key, rule.permission) and not rule.approval:
                if rule.pattern == "*" and rule.action == "deny":
                    out.add(tool)
                break
    return out


def from_config(
    config: RuleConfig | None,
    origin: str = "",
    *,
    home: str | os.PathLike[str] | None = None,
) -> list[Rule]:
    """Rules of a config's ``permission`` entry, in its order.

    Args:
        config: one action for everything, or permission -> action, or permission -> pattern -> action.
        origin: said of each rule.
        home: what ``~`` and ``$HOME`` at the start of a pattern stand for; the user's home if left out.

    Raises:
        ConfigError: an action is none of allow, deny, ask, or the entry has another shape.
    """
    if config is None:
        return []
    if isinstance(config, str):
        return [Rule("*", "*", _action(config, "permission"), origin)]
    if not isinstance(config, Mapping):
        raise ConfigError(f"permission is {_shown(config)}; write an action or an object of permission: action")
    rules: list[Rule] = []
    for permission, value in config.items():
        if isinstance(value, Mapping):
            for pattern, action in value.items():
                checked = _action(action, f"permission.{permission}[{pattern!r}]")
                rules.append(Rule(permission, expand(pattern, home), checked, origin))
        else:
            rules.append(Rule(permission, "*", _action(value, f"permission.{permission}"), origin))
    return rules


def never_matches(permission: str, pattern: str) -> str:
    """Why a pattern of a rule about files can match no path, and what to write; "" if it can."""
    if permission not in PATH_PERMISSIONS | EDIT_TOOLS:
        return ""
    if pattern.startswith("./"):
        return f"paths are relative to the top of the project: write {pattern[2:]!r}"
    if pattern.startswith("~") and expand(pattern) == pattern:
        return "only ~/ and $HOME stand for a folder: write the absolute path"
    if pattern.endswith("/") and len(pattern) > 1:
        return f"no path ends in a slash: write {pattern + '*'!r}"
    return ""


def merge(*rulesets: Iterable[Rule]) -> list[Rule]:
    """All rules one after the other; nothing is sorted or left out, since order decides."""
    return [rule for ruleset in rulesets for rule in ruleset]


def expand(pattern: str, home: str | os.PathLike[str] | None = None) -> str:
    """The pattern with a ``~``, ``~/`` or ``$HOME`` at its start replaced by the home folder."""
    if pattern == "~" or pattern.startswith("~/"):
        return _home(home) + pattern[1:]
    if pattern.startswith("$HOME"):
        return _home(home) + pattern[5:]
    return pattern


def _home(home: str | os.PathLike[str] | None) -> str:
    return os.fspath(home) if home is not None else os.environ.get("OPENCODE_TEST_HOME") or str(Path.home())


def _action(value: Any, where: str) -> Action:
    if isinstance(value, str) and value in ACTIONS:
        return cast("Action", value)
    raise ConfigError(f"{where} is {_shown(value)}; use allow, deny or ask")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
