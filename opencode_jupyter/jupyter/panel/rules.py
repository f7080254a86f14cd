"""The rules of this kernel for the panel: those in force with their origin, changing them, trying them out.

A person makes these changes: the origin of a rule and the history name the panel.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...core.errors import InvalidArgumentsError, ToolError
from ...core.permission import ACTIONS, Rule
from ...core.permission.modes import MODES, is_mode_rule, mode_of, set_mode
from ...core.project_rules import file_of
from ..magics.parameters import spec_of
from ..magics.rules import (
    PANEL,
    add_rules,
    known_permissions,
    note_change,
    ordered_rules,
    own_rules,
    permission_named,
    revoke_rule,
    rule_now,
    save_rules,
)

if TYPE_CHECKING:
    from ...core.call import By
    from ...core.permission import Decision
    from ...core.permission.decision import Action
    from .service import Panel

LONGEST = 10_000
"""Characters of a pattern or a command."""


def rules(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """The rules in the order in which they decide (the last that matches does); ``agent``, and ``by``: whose calls.

    Returns:
        ``rules``: of each ``n``, ``permission``, ``pattern``, ``action``, ``origin``, ``kind`` (``session``,
        ``project``: these can be revoked; ``mode``; "" for all others) and ``approval`` (never overrides a deny).
        ``mode``, ``modes`` (what each means), ``agent``, ``agents``, ``permissions``.
    """
    panel.watch("permission.replied", "rules")
    answer: dict[str, Any] = panel.on_engine(_rules, panel, _agent(panel, request), _by(request))
    return answer


def _rules(panel: Panel, agent: str | None, by: By) -> dict[str, Any]:
    workspace = panel.notebook.workspace
    own = own_rules(workspace)
    approvals = len(workspace.permissions.approved)
    ordered = ordered_rules(workspace, agent, by)
    shown = []
    for n, rule in enumerate(ordered, 1):
        if is_mode_rule(rule):
            kind = "mode"
        elif any(rule is own_rule for own_rule in own):
            kind = "session"
        else:
            kind = "project" if file_of(rule) is not None else ""
        approval = n > len(ordered) - approvals
        shown.append({"n": n, **rule.to_json(), "kind": kind, "approval": approval})
    return {
        "rules": shown,
        "mode": mode_of(workspace),
        "modes": {name: mode.description for name, mode in MODES.items()},
        "agent": workspace.agent(agent).name,
        "agents": [name for name, info in workspace.agents.items() if not info.hidden],
        "permissions": known_permissions(workspace),
    }


def add(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Add a rule: ``permission``, ``pattern``, ``action``, ``project`` (whether in its configuration), ``agent``.

    Returns:
        ``notes``: texts for the person.

    Raises:
        ToolError: it is no rule, or could not be saved; the message says why.
    """
    action = request.get("action")
    if action not in ACTIONS:
        raise InvalidArgumentsError(f"A rule is {', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}.")
    name, pattern = _text(request, "permission"), _text(request, "pattern") or "*"
    if not name:
        raise InvalidArgumentsError("A rule needs a permission, such as bash or edit.")
    notes = panel.on_engine(
        _add, panel, cast("Action", action), name, pattern, request.get("project") is True, _agent(panel, request)
    )
    panel.changed("rules")
    return {"notes": notes}


def _add(panel: Panel, action: Action, name: str, pattern: str, project: bool, agent: str | None) -> list[str]:
    workspace = panel.notebook.workspace
    permission, note = permission_named(workspace, name)
    if project:
        saved, notes = save_rules(workspace, action, permission, [pattern], agent)
        where = ", ".join(saved.files)
        notes = [f"Saved in {where}.", *notes]
        changed = [Rule(permission, saved_pattern, action, where) for saved_pattern in saved.patterns]
    else:
        changed, notes = add_rules(workspace, action, permission, [pattern], agent, PANEL)
        where = "this session"
    note_change(workspace, changed, f"rule added in the panel, for {where}")
    return list(filter(None, (note, *notes)))


def revoke(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Revoke the rule ``n``, which must equal ``rule`` (the list may have changed meanwhile).

    Returns:
        ``notes``: texts for the person.

    Raises:
        ToolError: the rule is another one now, or can't be revoked here.
    """
    number, wire = request.get("n"), request.get("rule")
    if not isinstance(number, int) or not isinstance(wire, dict):
        raise ToolError("Which rule?")
    notes = panel.on_engine(_revoke, panel, number, wire, _agent(panel, request), _by(request))
    panel.changed("rules")
    return {"notes": notes}


def _revoke(panel: Panel, number: int, wire: dict[str, Any], agent: str | None, by: By) -> list[str]:
    workspace = panel.notebook.workspace
    ordered = ordered_rules(workspace, agent, by)
    rule = ordered[number - 1] if 1 <= number <= len(ordered) else None
    if rule is None or rule.to_json() != {key: wire.get(key) for key in _SHOWN}:
        raise ToolError("The rules have changed meanwhile; look again.")
    if is_mode_rule(rule):
        raise ToolError(f"This rule is of the {rule.origin}; choose another mode.")
    note = revoke_rule(workspace, rule, own_rules(workspace), number, agent)
    note_change(workspace, [rule], "rule revoked in the panel")
    return [note] if note else []


_SHOWN = ("permission", "pattern", "action", "origin")


def mode(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Set the ``mode`` of every session of this kernel; returns ``{"before"}``.

    Raises:
        ToolError: there is none of that name, or it is not allowed.
    """
    name = _text(request, "mode")
    before = panel.on_engine(_mode, panel, name)
    panel.changed("rules")
    return {"before": before}


def _mode(panel: Panel, name: str) -> str:
    workspace = panel.notebook.workspace
    old = [rule for rule in own_rules(workspace) if is_mode_rule(rule)]
    before = set_mode(workspace, None, name)
    if before != name:
        # the default mode has no rules: then those of the other, which it takes away
        brought = [rule for rule in own_rules(workspace) if is_mode_rule(rule)] or old
        for action in dict.fromkeys(rule.action for rule in brought):
            same = [rule for rule in brought if rule.action == action]
            for permission in dict.fromkeys(rule.permission for rule in same):
                note_change(workspace, [r for r in same if r.permission == permission], f"mode {name}, in the panel")
    return before


def test(panel: Panel, request: dict[str, Any]) -> dict[str, Any]:
    """Try out ``text`` under ``name`` (a tool or a permission), called ``by`` a person or a model.

    For a tool with a JSON object, and for one that takes a command or code, a call is made that only requests approval
    (``%tool --dry-run``); anything else is a pattern of a permission. The same functions judge it as judge calls.

    Returns:
        ``verdict`` (``allow``, ``ask`` or ``deny``), ``how`` (``call`` or ``pattern``), ``rows``: of each
        ``permission`` and ``pattern`` the ``action`` and the ``rule`` that decides.

    Raises:
        ToolError: there is no such tool or permission, or no such call could be made.
    """
    name, text = _text(request, "name"), _text(request, "text")
    if not name:
        raise InvalidArgumentsError("Name a tool or a permission, such as bash.")
    agent, by = _agent(panel, request), _by(request)
    workspace = panel.notebook.workspace
    arguments = panel.run_on_thread(_arguments, panel, name, text)
    if arguments is not None:
        dry_run = partial(workspace.dry_run, name, arguments, agent=agent, by=by)
        decisions: list[Decision] = panel.on_engine(dry_run)
        rows = [
            _row(decision.permission, pattern, rule)
            for decision in decisions
            for pattern, rule in zip(decision.patterns, decision.rules, strict=False)
        ]
        actions = {row["action"] for row in rows}
        verdict = "deny" if "deny" in actions else "ask" if "ask" in actions else "allow"
        return {"how": "call", "verdict": verdict, "rows": rows}
    permission, note = permission_named(workspace, name)
    pattern = text or "*"
    row = _row(permission, pattern, rule_now(workspace, permission, pattern, agent, by))
    return {"how": "pattern", "verdict": row["action"], "rows": [row], "note": note}


def _arguments(panel: Panel, name: str, text: str) -> dict[str, Any] | None:
    """The arguments of the call that ``text`` means; None if it is a pattern."""
    registry = panel.notebook.workspace.registry
    tool = registry.get(name)
    if tool is None:
        return None
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentsError(f"These arguments are not a JSON object: {error}") from None
        return value if isinstance(value, dict) else None
    spec = spec_of(tool, registry)
    if not spec.raw or not text or spec.body is None:
        return None
    arguments = {spec.body.name: text}
    if spec.find("description") is not None:
        arguments["description"] = "tried out"
    return arguments


def _row(permission: str, pattern: str, rule: Rule) -> dict[str, Any]:
    return {
        "permission": permission,
        "pattern": pattern,
        "action": rule.action,
        "rule": rule.to_json(),
    }


def _agent(panel: Panel, request: dict[str, Any]) -> str | None:
    name = request.get("agent")
    if not isinstance(name, str) or not name:
        return None
    panel.notebook.workspace.agent(name)  # raises where there is none
    return name


def _by(request: dict[str, Any]) -> By:
    return "model" if request.get("by") == "model" else "user"


def _text(request: dict[str, Any], key: str) -> str:
    value = request.get(key)
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > LONGEST:
        raise InvalidArgumentsError(f"That is too long: {len(text):,} characters; {LONGEST:,} are taken here.")
    return text


HANDLERS: dict[str, Any] = {
    "rules": rules,
    "rule_add": add,
    "rule_revoke": revoke,
    "rule_mode": mode,
    "rule_test": test,
}
