"""Permission modes: names for sets of rules, for one session or for all of a workspace.

What a mode denies is a rule like any other. What it allows or asks for counts as a person's approval: it comes after
the agent's rules, but undoes none that denies. A session's mode also holds for the sessions that its calls start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidArgumentsError, ToolError
from ..ids import clean_tool_id
from ..repair import INVALID
from ..suggestions import did_you_mean
from ..wildcard import match
from .decision import Action, Rule

if TYPE_CHECKING:
    from ..host import ToolHost
    from ..sessions import Session

DEFAULT = "default"
BYPASS = "bypass"
STORED_UNDER = "opencode_jupyter"
"""Key of a stored session's info under which its mode is."""
_WRITERS = ("edit", "bash", "webfetch", "python")
"""Permissions, not tools: of everything that changes something or leaves the machine."""
_OTHERS = "<others>"
"""All tools of MCP servers and of other libraries: it is unknown what they change."""


class PermissionMode(NamedTuple):
    """One mode.

    Attributes:
        name: as a person writes it.
        description: what it means, for people.
        entries: permission and action of its rules, in order; each is for everything.
    """

    name: str
    description: str
    entries: tuple[tuple[str, Action], ...] = ()


MODES: dict[str, PermissionMode] = {
    mode.name: mode
    for mode in (
        PermissionMode(DEFAULT, "the agent's own rules apply"),
        PermissionMode(
            "accept-edits", "edits go through without asking; rules that deny still hold", (("edit", "allow"),)
        ),
        PermissionMode(
            "plan",
            "nothing is written, no command and no Python runs",
            (("edit", "deny"), ("bash", "deny"), ("python", "deny"), (_OTHERS, "ask")),
        ),
        PermissionMode(
            "ask",
            "everything that writes or runs needs approval",
            (*((key, "ask") for key in _WRITERS), (_OTHERS, "ask")),
        ),
        PermissionMode(BYPASS, "NOTHING NEEDS APPROVAL; only deny rules still apply", (("*", "allow"),)),
    )
}
"""The modes by name. ``accept-edits`` is about files in the project: one outside still asks for external_directory."""


def set_mode(workspace: ToolHost, session: Session | None, mode: str) -> str:
    """Set a mode in place of the one that was set.

    Args:
        workspace: whose.
        session: for this session alone, and those that its calls start; None for every session. It is stored with
            the session, but for ``bypass``.
        mode: a name of `MODES`.

    Returns:
        The mode that was set there before.

    Raises:
        InvalidArgumentsError: there is no such mode.
        ToolError: ``bypass``, and the configuration does not allow it; the message has the line to add.
    """
    new_mode = _mode(mode)
    if mode == BYPASS and workspace.config.get("experimental", "allow_bypass") is not True:
        raise ToolError(
            'Mode bypass is off. To allow it, put {"experimental": {"allow_bypass": true}} into opencode.json '
            "and load the extension again (in Python: make a new Workspace); mode accept-edits may be enough."
        )
    before = _set_mode_of(session.permission) if session is not None else notebook_mode(workspace)
    approved = workspace.permissions.approved
    if session is None:
        workspace.rules[:] = [r for r in workspace.rules if not is_mode_rule(r)]
        approved[:] = [r for r in approved if not is_mode_rule(r)]
        for rule in _rules(workspace, new_mode):
            if rule.action == "deny":
                workspace.rules.append(rule)
            else:
                workspace.permissions.remember(rule)  # so that no rule that denies is undone, whoever the agent is
        return before
    _apply(workspace, session, new_mode, over=tuple(approved))
    stored = {k: v for k, v in _stored(session).items() if k != "mode"}
    if mode not in (DEFAULT, BYPASS):
        stored["mode"] = mode
    session.extra = {k: v for k, v in session.extra.items() if k != STORED_UNDER}
    if stored:
        session.extra[STORED_UNDER] = stored
    workspace.sessions.save(session)
    return before


def mode_of(workspace: ToolHost, session: Session | None = None) -> str:
    """The mode that holds: the session's own, else that of the session that started it, else the workspace's."""
    holder = _holder(workspace, session)
    return _set_mode_of(holder.permission) if holder is not None else notebook_mode(workspace)


def notebook_mode(workspace: ToolHost) -> str:
    """The mode that holds for every session of the workspace."""
    return _set_mode_of([*workspace.rules, *workspace.permissions.approved])


def rules_of(workspace: ToolHost, session: Session) -> list[Rule]:
    """A session's rules, with those of the mode of the session that started it."""
    if session.parent_id is None:
        return session.permission
    holder = _holder(workspace, session)
    if holder is None or holder is session:
        return session.permission
    return [*session.permission, *(rule for rule in holder.permission if is_mode_rule(rule))]


def tool_denied(workspace: ToolHost, session: Session, name: str) -> Rule | None:
    """The rule of a prompt's ``tools`` that denies a tool, in this session or one that started it, if there is one."""
    for ancestor in _lineage(workspace, session):
        rule = next((rule for rule in reversed(ancestor.tool_rules) if match(name, rule.permission)), None)
        if rule is not None and rule.action == "deny" and workspace.registry.get(name) is not None and name != INVALID:
            return rule
    return None


def replace_rules(session: Session, rules: list[Rule]) -> None:
    """Give a session other rules of its own (a prompt's ``tools``); its mode stays."""
    session.permission = [*rules, *(rule for rule in session.permission if is_mode_rule(rule))]


def restore_mode(workspace: ToolHost, session: Session) -> None:
    """Set the mode that is stored with a session."""
    name = _stored(session).get("mode")
    if isinstance(name, str) and name in MODES and name != BYPASS:
        _apply(workspace, session, MODES[name], over=())


def is_mode_rule(rule: Rule) -> bool:
    """Return whether a rule is a mode's."""
    return rule.source == "mode"


def _mode(name: str) -> PermissionMode:
    if name not in MODES:
        raise InvalidArgumentsError(
            f"There is no mode {name}.{did_you_mean(name, MODES)} Modes are {', '.join(MODES)}."
        )
    return MODES[name]


def _apply(workspace: ToolHost, session: Session, mode: PermissionMode, over: tuple[Rule, ...]) -> None:
    firm = [rule for rule in session.permission if not is_mode_rule(rule)]
    session.permission = firm + [
        rule if rule.action == "deny" else replace(rule, approval=True, over=over) for rule in _rules(workspace, mode)
    ]


def _rules(workspace: ToolHost, mode: PermissionMode) -> list[Rule]:
    entries = [
        (key, action) for p, action in mode.entries for key in (_other_permissions(workspace) if p == _OTHERS else [p])
    ]
    return [
        Rule(key, "*", action, f"mode {mode.name}", source="mode", source_name=mode.name) for key, action in entries
    ]


def _other_permissions(workspace: ToolHost) -> list[str]:
    """The permissions of other tools: an MCP server's begin with its name (docs/opencode/core.md 19.4)."""
    servers = [clean_tool_id(name) + "_*" for name in workspace.config.get("mcp", default={}) or {}]
    return list(dict.fromkeys([*servers, *workspace.registry.custom_names()]))


def _holder(workspace: ToolHost, session: Session | None) -> Session | None:
    """The session, or the nearest of those that started it, that has a mode of its own."""
    return next(
        (ancestor for ancestor in _lineage(workspace, session) if any(map(is_mode_rule, ancestor.permission))), None
    )


def _lineage(workspace: ToolHost, session: Session | None) -> Iterator[Session]:
    """The session, the one that started it, and so on, as far as they are open."""
    seen: set[str] = set()
    while session is not None and session.id not in seen:
        yield session
        seen.add(session.id)
        try:
            session = workspace.sessions.get(session.parent_id) if session.parent_id else None
        except KeyError:  # it was deleted, or is not open
            return


def _set_mode_of(rules: list[Rule]) -> str:
    return next((rule.source_name for rule in rules if is_mode_rule(rule)), DEFAULT)


def _stored(session: Session) -> dict[str, Any]:
    stored = session.extra.get(STORED_UNDER)
    return stored if isinstance(stored, dict) else {}
