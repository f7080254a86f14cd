"""``%permissions``: the rules in force; adding, revoking and testing rules; modes, the sandbox, past decisions."""

from __future__ import annotations

import shlex
from datetime import datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

from ...core.audit import audit_log
from ...core.config.config import UNTRUSTED
from ...core.errors import InvalidArgumentsError, ToolError
from ...core.permission import ACTIONS, Rule, expand
from ...core.permission.modes import BYPASS, MODES, mode_of, set_mode
from ...core.project_rules import file_of
from ...sandbox.confine import describe
from ...sandbox.policy import PROFILES, Profile
from ...sandbox.service import Sandbox
from ..cards.call_json import decision_json
from ..cards.wording import decision_sentence
from ..tables import Confirmation, Notice, Table, WarningNotice
from .command_line import as_typed, whole_number
from .commands import PERMISSIONS
from .history import local_datetime, local_time
from .rules import (
    OF_COMMANDS,
    add_rules,
    describe_rule,
    known_permissions,
    ordered_rules,
    own_rules,
    permission_named,
    revoke_rule,
    rule_now,
    save_rules,
)
from .sessions import SessionLine
from .tools import HISTORY

if TYPE_CHECKING:
    from ...core.permission.decision import Action
    from ...core.sessions import Session
    from ...workspace import Workspace
    from ..notebook import Notebook
    from .line_syntax import LineWord

_COLUMNS = ("n", "permission", "pattern", "action", "origin")
_HISTORY_COLUMNS = ("time", "permission", "patterns", "action", "decision")
_LOG_COLUMNS = ("time", "tool", "permission", "patterns", "action", "by", "rule", "origin")
PROJECT = "--project"
DEFAULT = "default"
SANDBOX_PROFILES = (*PROFILES, DEFAULT)
_MEANING = {
    "off": "everything is possible",
    "workspace-write": "changes the project and a private temporary folder; reads no secrets",
    "read-only": "changes only a private temporary folder; reads no secrets",
}
_PROGRAMS = {
    "formatter": "formatters",
    "lsp": "language servers",
    "tools": "JavaScript tool files",
    "mcp": "local MCP servers",
}


class PermissionLine(SessionLine):
    """One line, and the agent whose rules it is about."""

    agent: str | None = None


def run(notebook: Notebook, text: str, agent: str | None = None) -> Any:
    """Run a ``%permissions`` line.

    Raises:
        ToolError: it cannot be read, or is not allowed.
    """
    line = PermissionLine(notebook, PERMISSIONS, text)
    line.agent = agent
    try:
        return line.run(_HANDLERS | dict.fromkeys(_ENGINE_HANDLERS, _run_on_engine))
    finally:
        if line.command in CHANGING:
            notebook.panel.changed("rules")


def _run_on_engine(line: PermissionLine) -> Table:
    table: Table = line.notebook.on_engine(_ENGINE_HANDLERS[line.command], line)
    return table.show() if isinstance(table, Confirmation) else table


def _list(line: PermissionLine) -> Table:
    line.end()
    workspace, agent = line.workspace, line.agent
    rules = ordered_rules(workspace, agent)
    rows = [{"n": n, **rule.to_json()} for n, rule in enumerate(rules, 1)]
    name = workspace.agent(agent).name
    notes = [f"The last matching rule decides. Mode: {mode_of(workspace)}."]
    if workspace.permissions.approved:
        first = len(rules) - len(workspace.permissions.approved) + 1
        notes.append(f"Approvals (from {first} on) never override a deny above them.")
    notes += [warning.message for warning in workspace.config.warnings if warning.key == UNTRUSTED]
    notes.append(PERMISSIONS.pointer)
    return Table(rows, _COLUMNS, title=f"Rules for calls from cells (agent {name})", notes=notes)


def _add(line: PermissionLine) -> Confirmation:
    workspace, agent, action = line.workspace, line.agent, cast("Action", line.command)
    rest, text, project = _project_option(line.rest, line.line)
    if not rest:
        usage = f"%permissions {action} needs a permission: %permissions {action} bash 'git *'"
        raise InvalidArgumentsError(f"{usage}; permissions are {', '.join(known_permissions(workspace))}.")
    permission, note = permission_named(workspace, rest[0].text)
    notes = [note] if note else []
    patterns = _patterns(permission, rest[1:], text)
    notes += _exact_commands(action, permission, patterns, project=project)
    if project:
        return _save(workspace, permission, patterns, action, notes, agent)
    rules, warnings = add_rules(workspace, action, permission, patterns, agent)
    notes += warnings
    rows = [{"n": _number(workspace, rule, agent), **rule.to_json()} for rule in rules]
    return Confirmation(rows, _COLUMNS, title=_changed("Added until the kernel ends", rows), notes=notes)


def _changed(what: str, rows: list[dict[str, Any]]) -> str:
    rules = "; ".join(f"{row['action']} {row['permission']} {row['pattern']}" for row in rows)
    return f"{what}: {rules}."


def _save(
    workspace: Workspace, permission: str, patterns: list[str], action: Action, notes: list[str], agent: str | None
) -> Confirmation:
    saved, warnings = save_rules(workspace, action, permission, patterns, agent)
    rules = ordered_rules(workspace, agent)
    rows = []
    for pattern in map(expand, saved.patterns):
        saved_rule = Rule(permission, pattern, action)
        numbers = [n for n, rule in enumerate(rules, 1) if rule == saved_rule and file_of(rule) is not None]
        rows += [{"n": n, **saved_rule.to_wire(), "origin": rules[n - 1].origin} for n in numbers[-1:]]
    title = _changed(f"Saved in {', '.join(saved.files)}", rows)
    return Confirmation(rows, _COLUMNS, title=title, notes=[*notes, *warnings])


def _revoke(line: PermissionLine) -> Confirmation:
    workspace, agent, rest = line.workspace, line.agent, line.rest
    if not rest:
        raise InvalidArgumentsError("%permissions revoke needs a rule's number (see %permissions) or a permission.")
    own = own_rules(workspace)
    first = rest[0].text
    if first.isascii() and first.isdigit():
        numbers = [whole_number("%permissions revoke", word.text) for word in rest]
        rules = [_by_number(workspace, number, agent) for number in numbers]
    else:
        numbers = []
        permission, _ = permission_named(workspace, first)
        patterns = [expand(p) for p in _patterns(permission, rest[1:], line.line)] if len(rest) > 1 else None
        rules = [r for r in own if r.permission == permission and (patterns is None or r.pattern in patterns)]
        if not rules:
            what = " ".join(w.text for w in rest)
            raise ToolError(f"No rule of this session is about {what}. {_revocable(own)}")
    unique = {(rule, rule.source, rule.source_name): number for rule, number in zip_longest(rules, numbers)}
    notes = [revoke_rule(workspace, rule, own, number or 0, agent) for (rule, *_), number in unique.items()]
    rows = [rule.to_json() for rule, *_ in unique]
    return Confirmation(rows, _COLUMNS[1:], title=_changed("Revoked", rows), notes=[note for note in notes if note])


def _history(line: PermissionLine) -> Table:
    limit = line.last_count(HISTORY)
    decisions = list(line.workspace.permissions.history)[-limit:]
    rows = [
        {
            "time": local_datetime(decision.time),
            "permission": decision.permission,
            "patterns": list(decision.patterns),
            "action": decision.action,
            "by": decision.by,
            "rule": "; ".join(dict.fromkeys(map(describe_rule, decision.rules))),
            "reply": decision.reply,
            "message": " ".join(filter(None, [decision.message, decision.note])) or None,
        }
        for decision in decisions
    ]
    display = [
        {
            **row,
            "time": local_time(cast("datetime", row["time"])),
            "decision": decision_sentence(decision_json(decision)),
        }
        for row, decision in zip(rows, decisions, strict=True)
    ]
    return Table(rows, _HISTORY_COLUMNS, empty="No decisions yet.", display=display)


def _log(line: PermissionLine) -> Table:
    verify = line.flag("--verify")
    return show_log(line.workspace, line.last_count(HISTORY), verify=verify)


def show_log(workspace: Workspace, limit: int = HISTORY, *, verify: bool = False) -> Table:
    """The audit log of all kernels, the newest decision first; or the places where its chain is broken."""
    log = audit_log(workspace.data_dir)
    if verify:
        count, problems = log.verify()
        rows = [{"line": line, "problem": problem} for line, problem in problems]
        title = f"The chain of {log.path} is broken:" if rows else ""
        return Table(rows, ("line", "problem"), title=title, empty=f"{count} decisions; the chain is intact.")
    entries = log.last(limit)
    rows = [
        {
            **entry,
            "time": local_datetime(entry["time"]),
            "rule": "; ".join(dict.fromkeys(f"{r['permission']} {r['pattern']} {r['action']}" for r in entry["rules"])),
            "origin": "; ".join(dict.fromkeys(r.get("origin") or "" for r in entry["rules"])),
        }
        for entry in entries
    ]
    note = f"{log.path}; %permissions log --verify checks it."
    return Table(rows, _LOG_COLUMNS, empty="No decisions yet.", notes=[note] if rows else [])


def _mode(line: PermissionLine) -> Notice:
    session_name = line.option("--session")
    session = None if session_name is None else line.named_session(session_name)
    name = " ".join(map(as_typed, line.rest))
    message: Notice = line.notebook.on_engine(show_mode, line.workspace, name, session)
    return message


def show_mode(workspace: Workspace, name: str = "", session: Session | None = None) -> Notice:
    """Show the mode, or set it."""
    where = f" of session {session.id}" if session is not None else ""
    if not name:
        name = mode_of(workspace, session)
        others = "\n".join(f"  {n:<13} {mode.description}" for n, mode in MODES.items())
        return Notice(f"Mode{where} {name}: {MODES[name].description}.\n{others}")
    before = set_mode(workspace, session, name)
    text = f"Mode{where} {name}: {MODES[name].description}." + (f" (It was {before}.)" if before != name else "")
    return WarningNotice(text) if name == BYPASS else Notice(text)


def _test(line: PermissionLine) -> Table:
    workspace, rest = line.workspace, line.rest
    if len(rest) < 2:
        raise InvalidArgumentsError("%permissions test needs a permission and a pattern: %permissions test bash 'rm x'")
    permission, note = permission_named(workspace, rest[0].text)
    pattern = rest[1].text if len(rest) == 2 else line.line[rest[1].start :].strip()
    rule = rule_now(workspace, permission, pattern, line.agent)
    notes = [note] if note else []
    if permission == OF_COMMANDS:
        notes.append("A line of several commands is judged command by command; %tool --dry-run bash ... shows each.")
    row = {
        "permission": permission,
        "pattern": pattern,
        "action": rule.action,
        "rule": f"{rule.permission} {rule.pattern}",
        "origin": rule.origin,
    }
    return Table([row], title=f"{permission} {pattern}: {rule.action}", notes=notes)


def _patterns(permission: str, rest: list[LineWord], line: str) -> list[str]:
    """The patterns of a line. A command's words belong together: ``git *`` must not become ``git`` and ``*``."""
    if not rest:
        return ["*"]
    if permission == OF_COMMANDS and len(rest) > 1:
        if all(word.quoted for word in rest):
            return [word.text for word in rest]
        if any(word.quoted for word in rest):
            raise InvalidArgumentsError("Several commands go in quotes, each: %permissions allow bash 'git *' 'ls *'")
        return [line[rest[0].start :].strip()]
    return [word.text if word.key is None else line[word.start : word.end] for word in rest]


def _exact_commands(action: Action, permission: str, patterns: list[str], *, project: bool) -> list[str]:
    """A note for each command without ``*`` or ``?``, which a person may expect to match with arguments too."""
    if permission != OF_COMMANDS:
        return []
    option = f" {PROJECT}" if project else ""
    exact = [pattern for pattern in patterns if not any(char in pattern for char in "*?")]
    return [
        f"{permission} {command} matches this command only as it is written. With arguments too: "
        f"%permissions {action} {permission} {shlex.quote(command + ' *')}{option}"
        for command in exact
    ]


def _project_option(rest: list[LineWord], line: str) -> tuple[list[LineWord], str, bool]:
    """The words without ``--project``, which is the first or last one (elsewhere it may be a command's own)."""
    for index in (0, -1):
        if rest and rest[index].text == PROJECT and not rest[index].quoted and rest[index].key is None:
            end = rest[index].start if index else len(line)
            return rest[1:] if index == 0 else rest[:-1], line[:end], True
    return rest, line, False


def _by_number(workspace: Workspace, number: int, agent: str | None) -> Rule:
    rules = ordered_rules(workspace, agent)
    if not 1 <= number <= len(rules):
        raise ToolError(f"There is no rule {number}; %permissions shows 1 to {len(rules)}.")
    return rules[number - 1]


def _number(workspace: Workspace, rule: Rule, agent: str | None) -> int:
    rules = ordered_rules(workspace, agent)
    return len(rules) - rules[::-1].index(rule)


def _revocable(own: list[Rule]) -> str:
    if not own:
        return "No rule was added here, and nothing was allowed for the session."
    return "Added here: " + "; ".join(dict.fromkeys(f"{r.permission} {r.pattern} {r.action}" for r in own)) + "."


def _sandbox(line: PermissionLine) -> Table:
    service = line.workspace.service(Sandbox)
    options = [name for name in line.options if line.flag(name)]
    name = line.next("") if line.rest else None
    if name is not None and (name not in SANDBOX_PROFILES or line.rest):
        profiles, wrong = ", ".join(SANDBOX_PROFILES), line.rest[0].text if line.rest else name
        raise InvalidArgumentsError(f"A profile is one of {profiles}, not {wrong}. Usage: {line.usage}")
    if "--network" in options or "--no-network" in options:
        service.network = "--no-network" not in options
    if name is not None:
        profile = None if name == DEFAULT else cast("Profile", name)
        if "--user" in options:
            service.user = profile
        else:
            service.model_profile = profile
        if name == DEFAULT and not options:
            service.user = service.network = None
    return sandbox_table(line.workspace)


def sandbox_table(workspace: Workspace) -> Table:
    """Who runs in which profile."""
    service = workspace.service(Sandbox)
    agent = workspace.agent()
    rows = [
        ("a model's commands", service.profile("model", agent.name, agent.model_permission)),
        ("your commands", service.profile("user", agent.name)),
        *((f"{kind}: {what}", service.settings.program(kind)) for kind, what in _PROGRAMS.items()),
    ]
    network = service.settings.network if service.network is None else service.network
    notes = [
        f"Enforced by {service.backend}." if service.backend else "This machine has no sandbox: nothing is enforced.",
        f"Commands in the sandbox {'may use' if network else 'have no access to'} the network.",
        f"Sandboxes of this machine: {describe()}.",
        PERMISSIONS.usage("sandbox").replace("PROFILE|default", "|".join(SANDBOX_PROFILES)),
    ]
    columns = ("for", "profile", "what")
    return Table(
        [{"for": who, "profile": profile, "what": _MEANING[profile]} for who, profile in rows],
        columns,
        title=f"Sandbox (agent {agent.name})",
        notes=notes,
    )


CHANGING = (*ACTIONS, "revoke", "mode", "sandbox")
_HANDLERS = {"list": _list, "mode": _mode, "test": _test, "history": _history, "log": _log}
_ENGINE_HANDLERS = {**dict.fromkeys(ACTIONS, _add), "revoke": _revoke, "sandbox": _sandbox}
