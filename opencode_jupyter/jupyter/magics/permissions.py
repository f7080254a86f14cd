"""``%permissions``: the rules in force with where each comes from, adding and revoking some, modes, trying one out."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from ...core.audit import audit_log
from ...core.config.config import UNTRUSTED
from ...core.errors import InvalidArgumentsError, ToolError
from ...core.permission import ACTIONS, Rule, expand
from ...core.permission.modes import BYPASS, MODES, mode_of, set_mode
from ...core.project_rules import file_of
from ..cards.call_json import decision_json
from ..cards.wording import decision_sentence
from ..tables import Confirmation, Message, Table, Warned
from .completion import PERMISSIONS_COMMANDS
from .help import rule_now
from .history import local_time
from .rule_changes import (
    add_rules,
    in_order,
    known_permissions,
    own_rules,
    permission_named,
    revoke_rule,
    said,
    save_rules,
)
from .sessions_request import SessionRequest
from .tools import HISTORY, count_of, unknown
from .usage import pointer
from .words import Word, words

if TYPE_CHECKING:
    from ...core.permission.rules import Action
    from ...core.sessions import Session
    from ...workspace import Workspace
    from ..notebook import Notebook

_COLUMNS = ("n", "permission", "pattern", "action", "origin")
_HISTORY_COLUMNS = ("time", "permission", "patterns", "action", "decision")
_LOG_COLUMNS = ("time", "tool", "permission", "patterns", "action", "by", "rule", "origin")
PROJECT = "--project"
VERIFY = "--verify"
SESSION = "--session"


def run(notebook: Notebook, line: str, agent: str | None = None) -> Any:
    """What a ``%permissions`` line asks for.

    Raises:
        ToolError: it can't be read, or is not allowed.
    """
    workspace = notebook.workspace
    found = words(line)
    if not found:
        return listed(workspace, agent)
    command, rest = found[0].text, found[1:]
    if command in ACTIONS or command in ("revoke", "mode", "sandbox"):
        try:
            if command == "mode":
                session, rest = _session_option(notebook, rest, line)
                return notebook.on_engine(mode, workspace, [w.text for w in rest], session)
            if command == "sandbox":
                from .sandbox import sandbox

                return notebook.on_engine(sandbox, workspace, [w.text for w in rest])
            if command == "revoke":
                table: Confirmation = notebook.on_engine(revoke, workspace, rest, line, agent)
            else:
                table = notebook.on_engine(add, workspace, cast("Action", command), rest, line, agent)
            return table.show()
        finally:
            notebook.panel.changed("rules")
    if command == "test":
        return try_out(workspace, rest, line, agent)
    if command == "history":
        return history(workspace, [w.text for w in rest])
    if command == "log":
        return show_log(workspace, [w.text for w in rest])
    raise unknown("%permissions", command, PERMISSIONS_COMMANDS)


def listed(workspace: Workspace, agent: str | None = None) -> Table:
    """``%permissions``: the rules in order; the last matching rule decides."""
    rules = in_order(workspace, agent)
    rows = [{"n": n, **rule.to_wire(), "origin": rule.origin} for n, rule in enumerate(rules, 1)]
    name = workspace.agent(agent).name
    notes = [f"The last matching rule decides. Mode: {mode_of(workspace)}."]
    if workspace.permissions.approved:
        first = len(rules) - len(workspace.permissions.approved) + 1
        notes.append(f"Approvals (from {first} on) never override a deny above them.")
    notes += [warning.message for warning in workspace.config.warnings if warning.key == UNTRUSTED]
    notes.append(pointer("%permissions"))
    return Table(rows, _COLUMNS, title=f"Rules for calls from cells (agent {name})", notes=notes)


def add(workspace: Workspace, action: Action, rest: list[Word], line: str, agent: str | None = None) -> Confirmation:
    """``%permissions allow|ask|deny PERMISSION [PATTERN ...] [--project]``."""
    rest, line, project = _project_option(rest, line)
    if not rest:
        usage = f"%permissions {action} needs a permission: %permissions {action} bash 'git *'"
        raise InvalidArgumentsError(f"{usage}; permissions are {', '.join(known_permissions(workspace))}.")
    permission, note = permission_named(workspace, rest[0].text)
    notes = [note] if note else []
    patterns = _patterns(permission, rest[1:], line)
    if project:
        return _save(workspace, permission, patterns, action, notes, agent)
    rules, more = add_rules(workspace, action, permission, patterns, agent)
    notes += more
    rows = [{"n": _number(workspace, rule, agent), **rule.to_wire(), "origin": rule.origin} for rule in rules]
    return Confirmation(rows, _COLUMNS, title=_changed("Added until the kernel ends", rows), notes=notes)


def _changed(what: str, rows: list[dict[str, Any]]) -> str:
    rules = "; ".join(f"{row['action']} {row['permission']} {row['pattern']}" for row in rows)
    return f"{what}: {rules}."


def _save(
    workspace: Workspace, permission: str, patterns: list[str], action: Action, notes: list[str], agent: str | None
) -> Confirmation:
    saved, more = save_rules(workspace, action, permission, patterns, agent)
    rules = in_order(workspace, agent)
    rows = []
    for pattern in map(expand, saved.patterns):
        wanted = Rule(permission, pattern, action)
        places = [n for n, rule in enumerate(rules, 1) if rule == wanted and file_of(rule) is not None]
        rows += [{"n": n, **wanted.to_wire(), "origin": rules[n - 1].origin} for n in places[-1:]]
    title = _changed(f"Saved in {', '.join(saved.files)}", rows)
    return Confirmation(rows, _COLUMNS, title=title, notes=[*notes, *more])


def revoke(workspace: Workspace, rest: list[Word], line: str, agent: str | None = None) -> Confirmation:
    """``%permissions revoke N|PERMISSION [PATTERN ...]``: typed rules, approvals, and by number the project's rules."""
    if not rest:
        raise InvalidArgumentsError("%permissions revoke needs a rule's number (see %permissions) or a permission.")
    own = own_rules(workspace)
    first = rest[0].text
    if first.isascii() and first.isdigit():
        numbers = [int(word.text) for word in _all_numbers(rest)]
        chosen = [_by_number(workspace, number, agent) for number in numbers]
    else:
        numbers = []
        permission, _ = permission_named(workspace, first)
        patterns = [expand(p) for p in _patterns(permission, rest[1:], line)] if len(rest) > 1 else None
        chosen = [r for r in own if r.permission == permission and (patterns is None or r.pattern in patterns)]
        if not chosen:
            what = " ".join(w.text for w in rest)
            raise ToolError(f"No rule of this session is about {what}. {_revocable(own)}")
    gone: dict[tuple[Rule, str, str], str] = {}
    notes: list[str] = []
    try:
        for place, rule in enumerate(chosen):
            place_of = rule, rule.source, rule.source_name
            if place_of in gone:
                continue
            note = revoke_rule(workspace, rule, own, numbers[place] if numbers else 0, agent)
            notes += [note] if note else []
            gone[place_of] = rule.origin
    except ToolError as error:
        done = f" Revoked before that: {'; '.join(said(r) for r, *_ in gone)}." if gone else ""
        raise ToolError(f"{error}{done}") from None
    rows = [{**rule.to_wire(), "origin": origin} for (rule, *_), origin in gone.items()]
    return Confirmation(rows, _COLUMNS[1:], title=_changed("Revoked", rows), notes=notes)


def history(workspace: Workspace, rest: list[str]) -> Table:
    """``%permissions history [N]``: the last decisions of this kernel, the newest last."""
    limit = count_of("%permissions history", rest, HISTORY)
    decisions = list(workspace.permissions.history)[-limit:]
    rows = [
        {
            "time": datetime.fromtimestamp(decision.time / 1000).replace(microsecond=0),  # noqa: DTZ006
            "permission": decision.permission,
            "patterns": list(decision.patterns),
            "action": decision.action,
            "by": decision.by,
            "rule": "; ".join(dict.fromkeys(map(said, decision.rules))),
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


def show_log(workspace: Workspace, rest: list[str]) -> Table:
    """``%permissions log [-n N] [--verify]``: the audit log of all kernels, the newest decision first."""
    log = audit_log(workspace)
    verify = VERIFY in rest
    words = [word for word in rest if word not in (VERIFY, "-n")]
    limit = count_of("%permissions log", words, HISTORY)
    if verify:
        count, problems = log.verify()
        rows = [{"line": line, "problem": problem} for line, problem in problems]
        title = f"The chain of {log.path} is broken:" if rows else ""
        return Table(rows, ("line", "problem"), title=title, empty=f"{count} decisions; the chain is intact.")
    entries = log.last(limit)
    rows = [
        {
            **entry,
            "time": datetime.fromtimestamp(entry["time"] / 1000).replace(microsecond=0),  # noqa: DTZ006 - the user's own
            "rule": "; ".join(dict.fromkeys(f"{r['permission']} {r['pattern']} {r['action']}" for r in entry["rules"])),
            "origin": "; ".join(dict.fromkeys(r.get("origin") or "" for r in entry["rules"])),
        }
        for entry in entries
    ]
    note = f"{log.path}; %permissions log --verify checks it."
    return Table(rows, _LOG_COLUMNS, empty="No decisions yet.", notes=[note] if rows else [])


def mode(workspace: Workspace, rest: list[str], session: Session | None = None) -> Message:
    """``%permissions mode [NAME] [--session NAME]``."""
    where = f" of session {session.id}" if session is not None else ""
    if not rest:
        name = mode_of(workspace, session)
        others = "\n".join(f"  {n:<13} {one.said}" for n, one in MODES.items())
        return Message(f"Mode{where} {name}: {MODES[name].said}.\n{others}")
    name = " ".join(rest)
    before = set_mode(workspace, session, name)
    text = f"Mode{where} {name}: {MODES[name].said}." + (f" (It was {before}.)" if before != name else "")
    return Warned(text) if name == BYPASS else Message(text)


def _session_option(notebook: Notebook, rest: list[Word], line: str) -> tuple[Session | None, list[Word]]:
    """The session that ``--session NAME`` names, as `%sessions` takes names, and the other words."""
    places = [place for place, word in enumerate(rest) if word.text == SESSION and not word.quoted]
    if not places:
        return None, rest
    place = places[0]
    named, others = rest[place + 1 : place + 2], [*rest[:place], *rest[place + 2 :]]
    usage = f"{SESSION} needs a session: its number or title in %sessions, or its id."
    known = [one for one in notebook.workspace.sessions.list() if named and one.id == named[0].text]
    if known:
        return known[0], others
    if not named:
        raise InvalidArgumentsError(usage)
    return SessionRequest(notebook, line, named).session(usage, required=True), others


def try_out(workspace: Workspace, rest: list[Word], line: str, agent: str | None = None) -> Table:
    """``%permissions test PERMISSION PATTERN``: which rule decides."""
    if len(rest) < 2:
        raise InvalidArgumentsError("%permissions test needs a permission and a pattern: %permissions test bash 'rm x'")
    permission, note = permission_named(workspace, rest[0].text)
    pattern = rest[1].text if len(rest) == 2 else line[rest[1].start :].strip()
    rule = rule_now(workspace, permission, pattern, agent)
    notes = [note] if note else []
    if permission == "bash":
        notes.append("A line of several commands is judged command by command; %tool --dry-run bash ... shows each.")
    row = {
        "permission": permission,
        "pattern": pattern,
        "action": rule.action,
        "rule": f"{rule.permission} {rule.pattern}",
        "origin": rule.origin,
    }
    return Table([row], title=f"{permission} {pattern}: {rule.action}", notes=notes)


def _patterns(permission: str, rest: list[Word], line: str) -> list[str]:
    """The patterns of a line. A command's words belong together: ``git *`` must not become ``git`` and ``*``."""
    if not rest:
        return ["*"]
    if permission == "bash" and len(rest) > 1:
        if all(word.quoted for word in rest):
            return [word.text for word in rest]
        if any(word.quoted for word in rest):
            raise InvalidArgumentsError("Several commands go in quotes, each: %permissions allow bash 'git *' 'ls *'")
        return [line[rest[0].start :].strip()]
    return [word.text if word.key is None else line[word.start : word.end] for word in rest]


def _project_option(rest: list[Word], line: str) -> tuple[list[Word], str, bool]:
    """The words without ``--project``, which stands first or last (elsewhere it may be a command's own)."""
    for place in (0, -1):
        if rest and rest[place].text == PROJECT and not rest[place].quoted and rest[place].key is None:
            end = rest[place].start if place else len(line)
            return rest[1:] if place == 0 else rest[:-1], line[:end], True
    return rest, line, False


def _all_numbers(rest: list[Word]) -> list[Word]:
    for word in rest:
        if not (word.text.isascii() and word.text.isdigit()):
            raise InvalidArgumentsError(f"%permissions revoke takes numbers here, not {word.text}.")
    return rest


def _by_number(workspace: Workspace, number: int, agent: str | None) -> Rule:
    rules = in_order(workspace, agent)
    if not 1 <= number <= len(rules):
        raise ToolError(f"There is no rule {number}; %permissions shows 1 to {len(rules)}.")
    return rules[number - 1]


def _number(workspace: Workspace, rule: Rule, agent: str | None) -> int:
    rules = in_order(workspace, agent)
    return len(rules) - rules[::-1].index(rule)


def _revocable(own: list[Rule]) -> str:
    if not own:
        return "No rule was added here, and nothing was allowed for the session."
    return "Added here: " + "; ".join(dict.fromkeys(f"{r.permission} {r.pattern} {r.action}" for r in own)) + "."
