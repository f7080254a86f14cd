"""The part of the system prompt on rules: what is denied, what asks, which tools are unavailable."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...core.permission import Rule
from ...core.permission.modes import DEFAULT, MODES, mode_of, rules_of
from ...core.wildcard import match

if TYPE_CHECKING:
    from ...core.agents import Agent
    from ...core.host import ToolHost
    from ...core.permission import PermissionService
    from ...core.sessions import Session

MAX_LINES = 12
"""Lines about single permissions; the others are counted."""
MAX_PATTERNS = 5
"""Patterns that are named of one kind; the others are counted."""
MAX_NAMES = 20
"""Tools that are named as not offered."""
MAX_CHARS = 120
"""Characters of a pattern that are shown."""

_OF_SOME_AGENTS = frozenset({"question", "plan_enter", "plan_exit"})
"""Tools that OpenCode gives to some agents only: no rule of the user is the reason where one is missing."""
_ABOUT_FILES = frozenset({"read", "edit", "list", "glob", "grep", "bash"})
"""Permissions of tools that request external_directory too when they leave the project."""
_ANYTHING = "\0\0"
"""Stands for what no pattern names but ``*``."""
_ACTION_TEXTS = {"deny": "is denied", "ask": "asks a person first", "allow": "goes through"}
_SHORT_TEXTS = {"deny": "denied", "ask": "asks", "allow": "goes through"}


def describe_rules(workspace: ToolHost, agent: Agent, session: Session, tools: Iterable[str]) -> str:
    """A paragraph about the rules in force for a model's calls; "" if everything that it is offered goes through."""
    rules = model_rules(workspace, agent, session)
    grouped: OrderedDict[str, list[str]] = OrderedDict()
    for key in _permissions_of(workspace, tools):
        description = _describe_permission(workspace.permissions, key, rules)
        if description:
            grouped.setdefault(description, []).append(key)
    lines = [f"- {', '.join(keys)}: {description}" for description, keys in grouped.items()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"- and {len(lines) - MAX_LINES} more; a call reports which rule denies it"]
    names = [name for name in workspace.registry.names() if _permission_of(workspace, name)]
    unavailable = sorted(workspace.registry.disabled(names, rules))
    if unavailable:
        lines.append(f"- unavailable, because a rule denies every use of them: {_listed(unavailable, MAX_NAMES)}")
    mode = mode_of(workspace, session)
    if mode != DEFAULT:
        lines.insert(0, f"- permission mode {mode}: {MODES[mode].description}")
    return "\n".join(["The user's rules for your calls, which no call can change:", *lines]) if lines else ""


def model_rules(workspace: ToolHost, agent: Agent, session: Session) -> list[Rule]:
    """The rules that a model's calls are judged by, but for a person's approvals."""
    return [*agent.model_permission, *workspace.rules, *rules_of(workspace, session)]


def _permissions_of(workspace: ToolHost, tools: Iterable[str]) -> list[str]:
    """The permissions that these tools request."""
    keys = dict.fromkeys(key for name in tools if (key := _permission_of(workspace, name)))
    if _ABOUT_FILES & set(keys):
        keys["external_directory"] = None
    return list(keys)


def _permission_of(workspace: ToolHost, name: str) -> str:
    """The permission that a tool requests by its manifest; "" if rules are not what decides about it."""
    tool = workspace.registry.get(name)
    return "" if tool is None or tool.group == "internal" or name in _OF_SOME_AGENTS else tool.permission


def _describe_permission(permissions: PermissionService, key: str, rules: Sequence[Rule]) -> str:
    """A description of the rules for one permission; "" if they allow everything."""
    # What a rule's own pattern gets is asked too, so that rules which later ones overrule are left out.
    usual = permissions.check(key, [_ANYTHING], rules)[0].action
    other: dict[str, dict[str, None]] = {"deny": {}, "ask": {}, "allow": {}}
    for rule in (*rules, *permissions.approved):
        if rule.pattern != "*" and rule.action != usual and match(key, rule.permission):
            decided = permissions.check(key, [rule.pattern], rules)[0].action
            if decided == rule.action:
                other[decided][rule.pattern] = None
    if usual == "allow" and not other["deny"] and not other["ask"]:
        return ""
    exceptions = [
        f"{_SHORT_TEXTS[action]}: {_listed([_shortened(p) for p in patterns], MAX_PATTERNS)}"
        for action, patterns in other.items()
        if patterns
    ]
    return "; ".join([_ACTION_TEXTS[usual], *exceptions])


def _listed(names: Sequence[str], most: int) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _shortened(pattern: str) -> str:
    text = " ".join(pattern.split())
    return f"`{text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + '…'}`"
