"""Save permission rules in the project's configuration, and remove them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import Config, load_config
from .config.files import display
from .config.rule_effects import overlap
from .config.save import ConfigFiles, SavedRules, remove_rule
from .errors import InvalidArgumentsError, ToolError
from .option_checks import check_kind
from .permission import Rule, evaluate, expand
from .permission.request import SANDBOX

if TYPE_CHECKING:
    from .agents import Agent
    from .host import ToolHost


def save(
    workspace: ToolHost,
    permission: str,
    patterns: Sequence[str],
    action: str,
    *,
    agent: str | None = None,
    literal: bool = False,
    keep_denies: bool = False,
) -> SavedRules:
    """Write rules and read the configuration again; running calls keep the rules they started with.

    Args:
        workspace: whose project.
        permission: the rules' key.
        patterns: one rule each.
        action: of all.
        agent: for whom a remaining rule is looked for; the default one if left out.
        literal: a ``~`` or ``$HOME`` at a pattern's start is itself, not the home folder.
        keep_denies: never overrule a rule of the configuration that denies.

    Raises:
        ToolError: none could be saved; the message has the reason.
    """
    check_kind(permission, str, "permission", "the key of a rule, such as 'bash'")
    texts = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(texts, Iterable) or not all(isinstance(text, str) for text in texts):
        raise InvalidArgumentsError(f"patterns must be a list of texts, such as ['git *'], not {patterns!r:.80}.")
    if (permission, action) == (SANDBOX, "allow"):
        raise ToolError(
            "A project's configuration can't let commands out of the sandbox; write it to your global opencode.json."
        )
    saved = SavedRules()
    files = ConfigFiles(workspace.directory, workspace.worktree, workspace.overrides)
    before = {name: agent_entry.permission for name, agent_entry in workspace.agents.items() if not agent_entry.hidden}
    problems: list[ToolError] = []
    renewal = _TrustRenewal(workspace, permission)
    for pattern in dict.fromkeys(texts):
        if literal and expand(pattern) != pattern:
            problems.append(ToolError(f"{pattern} would mean the home folder in a config file"))
            continue
        try:
            path = files.save_rule(permission, pattern, action, keep_denies=keep_denies)
        except ToolError as error:
            problems.append(error)
            continue
        saved.patterns.append(pattern)
        saved.files.append(display(path, _root(workspace), workspace.config.home))
    if not saved.patterns:
        raise problems[0] if problems else ToolError("there is no pattern to save")
    saved.files = list(dict.fromkeys(saved.files))
    saved.notes += [f"Not saved: {error}" for error in problems]
    try:
        renewal.renew(dict.fromkeys(saved.patterns, action))
    except ToolError as error:
        saved.notes.append(str(error))
    workspace.reload_config()
    if workspace.config.withheld and action == "allow":
        saved.notes.append("Not in effect until you trust this project: %tools trust --project")
    who = workspace.agents.get(agent or "") or workspace.agent()
    expanded = [expand(pattern) for pattern in saved.patterns]
    for text in expanded:
        rule = evaluate(permission, text, who.permission)
        if rule.action != action:
            decider = f"{rule.permission} {rule.pattern} {rule.action} ({rule.origin})"
            saved.notes.append(f"For agent {who.name}, {permission} {text} is still decided by: {decider}")
    if action != "deny":
        loosened = [
            name
            for name, rules in before.items()
            if _is_loosened(workspace.agents.get(name), rules, permission, expanded)
        ]
        if loosened:
            saved.notes.append(
                f"It lifts a deny for {'agent' if len(loosened) == 1 else 'agents'} {', '.join(loosened)} too."
            )
    return saved


def forget(workspace: ToolHost, rule: Rule) -> str | None:
    """Remove a rule from the project's file that it comes from, and read the configuration again.

    Returns:
        The file's name; None if the rule comes from no file of the project.

    Raises:
        ToolError: it can't be removed there; the message has the reason.
    """
    check_kind(rule, Rule, "rule", "a Rule")
    path = file_of(rule)
    if path is None:
        return None
    renewal = _TrustRenewal(workspace, rule.permission)
    if not remove_rule(path, rule.permission, rule.pattern, root=_root(workspace)):
        raise ToolError(f'{rule.origin} no longer has such a rule in its "permission"; edit it there')
    try:
        renewal.renew({})
    finally:
        workspace.reload_config()
    return rule.origin


def file_of(rule: Rule) -> Path | None:
    """The project's config file that a rule comes from, if it is one that can be rewritten."""
    path = Path(rule.source_name)
    return path if rule.source == "project" and path.suffix in (".json", ".jsonc") else None


def without_project_rules(rules: Sequence[Rule]) -> list[Rule]:
    """The rules but for those of the project's own files that allow something."""
    return [rule for rule in rules if rule.action != "allow" or rule.source != "project"]


class _TrustRenewal:
    """Keeps a project trusted while a person has rules of one permission written to its files.

    One that was not trusted, and one into which anything else came meanwhile, does not become trusted by it.
    """

    def __init__(self, workspace: ToolHost, permission: str) -> None:
        self.workspace, self.permission = workspace, permission
        self.before = self._load()

    def renew(self, rules: Mapping[str, str]) -> None:
        """Trust the files as they are now, if nothing but these rules was added.

        Raises:
            ToolError: the trust can't be stored.
        """
        trust, before = self.workspace.trust, self.before.trust_subject
        if before is not None and not trust.known(before):
            return
        after = self._load()
        if after.trust_subject is None or after.trust_subject == before or not self._adds_only(rules, after):
            return
        try:
            (trust.grant if before is None or trust.is_stored(before) else trust.grant_temporarily)(after.trust_subject)
        except ToolError as error:
            raise ToolError(f"The configuration is changed, but your trust in it was not stored: {error}") from error

    def _load(self) -> Config:
        return load_config(self.workspace.directory, self.workspace.worktree, overrides=self.workspace.overrides)

    def _adds_only(self, rules: Mapping[str, str], after: Config) -> bool:
        before = dict(self.before.sources)
        allowed = {entry for data in before.values() for entry in self._entries(data)} | set(rules.items())
        return all(
            self._other_entries(data) == self._other_entries(before.get(path, {}))
            and set(self._entries(data)) <= allowed
            for path, data in after.sources
        )

    def _entries(self, data: Mapping[str, Any]) -> list[tuple[str, str]]:
        value = (data.get("permission") or {}).get(self.permission) or {}
        return list(value.items()) if isinstance(value, Mapping) else [("*", value)]

    def _other_entries(self, data: Mapping[str, Any]) -> dict[str, Any]:
        rest = {key: value for key, value in data.items() if key not in ("permission", "$schema")}
        permission = data.get("permission") or {}
        return {**rest, "permission": {key: permission[key] for key in permission if key != self.permission}}


def _root(workspace: ToolHost) -> Path:
    return ConfigFiles(workspace.directory, workspace.worktree).root


def _is_loosened(agent: Agent | None, before: list[Rule], permission: str, texts: list[str]) -> bool:
    """Return whether an agent may (or may be asked) now what a rule denied it before."""
    if agent is None:
        return False
    probes = [*texts]
    for rule in before:
        if rule.action == "deny" and overlap(permission, rule.permission):
            probes += [rule.pattern] if any(overlap(text, rule.pattern) for text in texts) else []
    denied = [probe for probe in probes if evaluate(permission, probe, before).action == "deny"]
    return any(evaluate(permission, probe, agent.permission).action != "deny" for probe in denied)
