"""The rules in force and what they decide; adding, saving and revoking rules. For magics and the panel.

Rules of the session come after the agent's (``Workspace.rules``), those of the project into its configuration. What
a person allows on a card, and what a mode sets, are approvals: they decide before other rules, but never override a
rule that denies.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.call_approval import rules_for
from ...core.errors import InvalidArgumentsError, ToolError
from ...core.permission import Decision, Rule, expand, never_matches, permission_key
from ...core.suggestions import did_you_mean

if TYPE_CHECKING:
    from ...core.call import By
    from ...core.config.save import SavedRules
    from ...core.permission.decision import Action
    from ...core.tool import Tool
    from ...workspace import Workspace

OF_NO_TOOL = ("external_directory", "doom_loop", "sandbox")
"""Permissions that calls of any tool request."""
OF_COMMANDS = "bash"
"""The permission whose patterns are commands, of which each may have blanks."""
OF_PATHS = ("edit", "read", "external_directory")
"""Permissions whose patterns are paths."""
TYPED = "this session"
"""Origin of the rules that are typed in a cell, and of those allowed on a card."""
PANEL = "this session, from the panel"
"""Origin of the rules that a person adds in the panel."""


def rules_in_force(workspace: Workspace, agent: str | None = None, by: By = "user") -> list[Rule]:
    """The rules that a call from a cell (`by` a person or a model) is judged by, but for this session's approvals."""
    return list(rules_for(workspace, workspace.agent(agent), workspace.sessions.default, by))


def rule_now(workspace: Workspace, permission: str, pattern: str, agent: str | None = None, by: By = "user") -> Rule:
    """The rule that would decide this now, approvals included."""
    return workspace.permissions.check(permission, [pattern], rules_in_force(workspace, agent, by))[0]


def deciding_rule(workspace: Workspace, tool: Tool, rules: Sequence[Rule]) -> Rule:
    """The rule that decides a call of a tool, whatever it is for: on its permission, or one that denies its id."""
    check = workspace.permissions.check
    own = check(tool.id, ["*"], rules)[0]
    denied = own.action == "deny" and own.permission != "*"
    return own if denied or not tool.permission else check(tool.permission, ["*"], rules)[0]


def ordered_rules(workspace: Workspace, agent: str | None = None, by: By = "user") -> list[Rule]:
    """Every rule in force, approvals last."""
    approved = workspace.permissions.approved
    # A rule of the session that was added after the approvals too is shown there, where it decides.
    rules = [r for r in rules_in_force(workspace, agent, by) if not (r.source == "session" and r in approved)]
    return [*rules, *approved]


def add_rules(
    workspace: Workspace,
    action: Action,
    permission: str,
    patterns: Sequence[str],
    agent: str | None = None,
    origin: str = TYPED,
) -> tuple[list[Rule], list[str]]:
    """Add rules that hold until the kernel ends.

    Returns:
        The rules, and notes on those that another rule still decides.
    """
    rules = [Rule(permission, expand(p), action, origin, source="session") for p in patterns]
    for rule in rules:
        workspace.rules[:] = [r for r in workspace.rules if r != rule]
        workspace.rules.append(rule)
        if action != "deny" and workspace.permissions.approved:
            # Approvals decide before rules of the session, and what is added later should win.
            workspace.permissions.revoke(rule)
            workspace.permissions.remember(rule)
    notes = []
    for rule in rules:
        now = rule_now(workspace, permission, rule.pattern, agent)
        if now.action != action:
            notes.append(f"{permission} {rule.pattern} is still decided by: {describe_rule(now)}")
    return rules, [*unmatchable(permission, patterns), *notes]


def save_rules(
    workspace: Workspace, action: Action, permission: str, patterns: Sequence[str], agent: str | None = None
) -> tuple[SavedRules, list[str]]:
    """Add rules to the project's configuration.

    Returns:
        What was saved, and notes on what another rule still decides.

    Raises:
        ToolError: none could be saved.
    """
    saved = workspace.save_rules(permission, patterns, action, agent=agent)
    notes = []
    for pattern in map(expand, saved.patterns):
        now = rule_now(workspace, permission, pattern, agent)
        if now.action != action and not any(describe_rule(now) in note for note in saved.notes):
            notes.append(f"{permission} {pattern} is still decided by: {describe_rule(now)}")
    return saved, [*unmatchable(permission, saved.patterns), *notes, *saved.notes]


def unmatchable(permission: str, patterns: Sequence[str]) -> list[str]:
    """A warning for each pattern that can never match, as configuration files get it."""
    reasons = ((pattern, never_matches(permission, pattern)) for pattern in patterns)
    return [f"{permission} {pattern} can never match; {reason}." for pattern, reason in reasons if reason]


def own_rules(workspace: Workspace) -> list[Rule]:
    """The rules of this session that can be revoked: added ones, and approvals."""
    return [*workspace.rules, *workspace.permissions.approved]


def revoke_rule(workspace: Workspace, rule: Rule, own: Sequence[Rule], number: int, agent: str | None = None) -> str:
    """Revoke a rule: one of the session, or one of the project's configuration, which is removed from its file.

    Args:
        workspace: whose.
        rule: one that `ordered_rules` gave.
        own: what `own_rules` gave at that time.
        number: its position there, for the error.
        agent: for whom to report what decides now.

    Returns:
        A note about a rule that was removed from a file; "" for one of the session.

    Raises:
        ToolError: it is neither of this session nor of the project's files; the message says what to do.
    """
    if any(rule is r for r in own):
        workspace.rules[:] = [r for r in workspace.rules if r != rule]
        workspace.permissions.revoke(rule)
        return ""
    file = workspace.forget_rule(rule)
    if file is None:
        edit = "Add" if rule.source == "default" or not rule.origin else f"Edit it in {rule.origin}, or add"
        raise ToolError(
            f"Rule {number} ({describe_rule(rule)}) was not added here. {edit} a later rule: "
            f"%permissions allow|ask|deny {rule.permission} '{rule.pattern}'"
        )
    now = rule_now(workspace, rule.permission, rule.pattern, agent)
    return f"Removed from {file}. {rule.permission} {rule.pattern} is now decided by: {describe_rule(now)}"


def permission_named(workspace: Workspace, name: str) -> tuple[str, str]:
    """The permission of a typed name, and a note about it.

    Raises:
        InvalidArgumentsError: it looks like a typing error.
    """
    key = permission_key(name)
    if key != name:
        return key, f"{name} needs {key}, so the rule is for {key}."
    known = known_permissions(workspace)
    if name in known or any(c in name for c in "*?"):
        return name, ""
    hint = did_you_mean(name, known)
    if hint:
        raise InvalidArgumentsError(f"There is no permission {name}.{hint}")
    return name, f"No tool here is known to need {name}."


def permission_names(workspace: Workspace) -> list[str]:
    """The permissions that the tools request, as far as names tell (no tool is imported), those of all tools last."""
    return [*map(permission_key, workspace.registry.names()), *OF_NO_TOOL]


def known_permissions(workspace: Workspace) -> list[str]:
    """The permissions that tools request, that rules name, or that were requested."""
    requested = [d.permission for d in list(workspace.permissions.history)]
    in_rules = [rule.permission for rule in ordered_rules(workspace)]
    names = [*permission_names(workspace), *requested, *in_rules]
    return [name for name in dict.fromkeys(names) if name not in ("*", "invalid")]


def note_change(workspace: Workspace, rules: Sequence[Rule], what: str) -> None:
    """Record in the history that a person changed rules in the panel.

    Args:
        workspace: whose.
        rules: those that were added or revoked, all of one permission and action.
        what: what happened, as a text.
    """
    if rules:
        first = rules[0]
        patterns = [rule.pattern for rule in rules]
        now = time.time_ns() // 1_000_000
        noted = Decision(first.permission, patterns, first.action, list(rules), by="panel", message=what, time=now)
        workspace.permissions.history.append(noted)


def describe_rule(rule: Rule) -> str:
    """A rule with its origin, in one line."""
    origin = f" ({rule.origin})" if rule.origin else ""
    return f"{rule.permission} {rule.pattern} {rule.action}{origin}"
