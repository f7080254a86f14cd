"""Permission rules of an open workspace that outlive it: written to the project's configuration, and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .config.parse import display
from .config.rule_changes import overlap
from .config.save import project_root, remove_rule, save_rule
from .errors import ToolError
from .permission import Rule, evaluate, expand

if TYPE_CHECKING:
    from .agents import Agent
    from .workspace import Workspace


@dataclass(slots=True)
class SavedRules:
    """What became of rules that were to be saved.

    Attributes:
        patterns: those that are in a file now.
        files: the files' names, relative to the project.
        notes: what a person should know: a pattern that could not be saved and why, a rule that still decides, an
            agent that may now do what it might not.
    """

    patterns: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def save(
    workspace: Workspace,
    permission: str,
    patterns: Sequence[str],
    action: str,
    *,
    agent: str | None = None,
    literal: bool = False,
    keep_denies: bool = False,
) -> SavedRules:
    """Write rules and read the configuration again; running calls keep the rules they began with.

    Args:
        workspace: whose project.
        permission: the rules' key.
        patterns: one rule each.
        action: of all.
        agent: for whom a remaining rule is looked for; the default one if left out.
        literal: a ``~`` or ``$HOME`` at a pattern's start is itself, not the home folder.
        keep_denies: never overrule a rule of the configuration that denies.

    Raises:
        ToolError: none could be saved; it says why.
    """
    saved = SavedRules()
    before = {name: found.permission for name, found in workspace.agents.items() if not found.hidden}
    problems: list[ToolError] = []
    for pattern in dict.fromkeys([patterns] if isinstance(patterns, str) else patterns):
        if literal and expand(pattern) != pattern:
            problems.append(ToolError(f"{pattern} would mean the home folder in a config file"))
            continue
        try:
            path = save_rule(
                workspace.directory,
                workspace.worktree,
                permission,
                pattern,
                action,
                keep_denies=keep_denies,
                overrides=workspace.overrides,
            )
        except ToolError as error:
            problems.append(error)
            continue
        saved.patterns.append(pattern)
        saved.files.append(display(path, _root(workspace), workspace.config.home))
    if not saved.patterns:
        raise problems[0] if problems else ToolError("there is no pattern to save")
    saved.files = list(dict.fromkeys(saved.files))
    saved.notes += [f"Not saved: {error}" for error in problems]
    workspace.reload_config()
    who = workspace.agents.get(agent or "") or workspace.agent()
    texts = [expand(pattern) for pattern in saved.patterns]
    for text in texts:
        rule = evaluate(permission, text, who.permission)
        if rule.action != action:
            decides = f"{rule.permission} {rule.pattern} {rule.action} ({rule.origin})"
            saved.notes.append(f"For agent {who.name}, {permission} {text} is still decided by: {decides}")
    if action != "deny":
        freed = [name for name, rules in before.items() if _freed(workspace.agents.get(name), rules, permission, texts)]
        if freed:
            saved.notes.append(
                f"It lifts a deny for {'agent' if len(freed) == 1 else 'agents'} {', '.join(freed)} too."
            )
    return saved


def forget(workspace: Workspace, rule: Rule) -> str | None:
    """Take a rule out of the project's file that it comes from, and read the configuration again.

    Returns:
        The file's name; None if the rule comes from no file of the project.

    Raises:
        ToolError: it can't be taken out there; it says why.
    """
    path = file_of(workspace, rule)
    if path is None:
        return None
    if not remove_rule(path, rule.permission, rule.pattern, root=_root(workspace)):
        raise ToolError(f'{rule.origin} no longer has such a rule in its "permission"; edit it there')
    workspace.reload_config()
    return rule.origin


def file_of(workspace: Workspace, rule: Rule) -> Path | None:
    """The project's config file that a rule comes from, if it is one that can be rewritten."""
    root = _root(workspace)
    for source, _ in workspace.config.sources:
        path = Path(source)
        if not path.is_absolute() or not path.is_relative_to(root) or path.suffix not in (".json", ".jsonc"):
            continue
        if display(path, root, workspace.config.home) == rule.origin:
            return path
    return None


def _root(workspace: Workspace) -> Path:
    return project_root(workspace.directory, workspace.worktree)


def _freed(agent: Agent | None, before: list[Rule], permission: str, texts: list[str]) -> bool:
    """Whether an agent may (or may be asked) now what a rule denied it before."""
    if agent is None:
        return False
    probes = [*texts]
    for rule in before:
        if rule.action == "deny" and overlap(permission, rule.permission):
            probes += [rule.pattern] if any(overlap(text, rule.pattern) for text in texts) else []
    denied = [probe for probe in probes if evaluate(permission, probe, before).action == "deny"]
    return any(evaluate(permission, probe, agent.permission).action != "deny" for probe in denied)
