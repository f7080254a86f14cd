"""Rules and what a list of them decides: the last rule that fits wins, however specific another is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from os.path import isabs
from pathlib import Path
from typing import Any, cast, get_args

from ..errors import ConfigError, InvalidArgumentsError, short_repr
from ..wildcard import match
from .decision import Action, Rule, RuleSource
from .sensitive_files import is_key_file, is_startup_file

ACTIONS: tuple[str, ...] = get_args(Action)
STRICT: dict[Action, int] = {"allow": 0, "ask": 1, "deny": 2}

RuleConfig = str | Mapping[str, str | Mapping[str, str]]
"""The ``permission`` entry of a config: one action, or action (or pattern -> action) by permission."""

EDIT_TOOLS = frozenset({"edit", "write", "patch", "multiedit", "apply_patch", "notebook_edit"})
"""Names that mean ``edit`` in configuration files and in typed rules, as in OpenCode.

Both are read before any tool is imported. Which permission a tool requests stands in its manifest, so a new tool has no
place here.
"""

PATH_PERMISSIONS = frozenset({"read", "edit", "list"})
"""Permissions whose patterns are paths."""

NO_RULE = "the default (no rule matches)"

NOT_ANALYSED = "(not analysed) "
"""Prefix of a pattern that is known only at run time (a shell command whose words are computed)."""

_is_about = lru_cache(maxsize=4096)(match)  # there are few permission keys, and each is looked up on every call


def evaluate(permission: str, pattern: str, *rulesets: Sequence[Rule], spellings: Sequence[str] = ()) -> Rule:
    """The last rule of all rulesets together that fits both; a rule that asks if there is none.

    Args:
        permission: the key.
        pattern: what it is for.
        *rulesets: the later ones decide before the earlier ones.
        spellings: other paths of what it is for, see `fits_path`.
    """
    # Runs on every tool call and on every bash command of it: the common cases take no further call.
    for ruleset in reversed(rulesets):
        for rule in reversed(ruleset):
            key = rule.permission
            if key == permission or key == "*" or _is_about(permission, key):
                glob = rule.pattern
                if (
                    glob == "*"
                    or match(pattern, glob)
                    or (spellings and any(fits_path(path, glob) for path in spellings))
                ):
                    return _stricter(permission, pattern, rule, rulesets, spellings) if rule.stricter else rule
    return Rule(permission, "*", "ask", NO_RULE, source="default")


def fits_path(path: str, pattern: str) -> bool:
    """Return whether another path of the same thing fits a pattern.

    Only an absolute pattern fits an absolute path, so that the name of a folder above the project does not count.
    ``**/`` at the start stands for any folder, and for none.
    """
    if isabs(pattern):
        return isabs(path) and (match(path, pattern) or match(path, _follow_links(pattern)))
    return not isabs(path) and (match(path, pattern) or match(path, pattern.removeprefix("**/")))


def _follow_links(pattern: str) -> str:
    """An absolute pattern with the links in its folders followed, up to the first wildcard."""
    folder, slash, rest = pattern.partition("*")[0].rpartition("/")
    return os.path.realpath(folder or "/").rstrip("/") + slash + rest + pattern[len(folder + slash + rest) :]


def _stricter(
    permission: str, pattern: str, rule: Rule, rulesets: Sequence[Sequence[Rule]], spellings: Sequence[str]
) -> Rule:
    """`rule`, or what decides without the rules of its kind if `rule` is not stricter."""
    trusted = [[other for other in ruleset if not other.stricter] for ruleset in rulesets]
    decider = evaluate(permission, pattern, *trusted, spellings=spellings)
    return decider if decider.overrides or STRICT[decider.action] > STRICT[rule.action] else rule


def resolve_unanalysed(permission: str, pattern: str, allowing: Rule, *rulesets: Sequence[Rule]) -> Rule:
    """What decides a pattern that begins with `NOT_ANALYSED`, which a rule for everything would allow.

    It may hide what a later rule denies or asks for, so it needs approval wherever there is such a rule. A rule that
    allows this very text, or everything and comes last, still allows it.

    Args:
        permission: the key.
        pattern: the pattern.
        allowing: the result of `evaluate`.
        *rulesets: its rulesets.
    """
    if allowing.pattern == pattern:
        return allowing
    for ruleset in reversed(rulesets):
        for rule in reversed(ruleset):
            if rule is allowing:
                return allowing
            if rule.action != "allow" and _is_about(permission, rule.permission):
                why = f"it is unclear whether {permission} {rule.pattern} ({rule.action}) is meant"
                return _asking_rule(permission, rule, why)
    return allowing


def guard_file_rule(permission: str, path: str, allowing: Rule, *, own_data: bool = False) -> Rule:
    """What decides to change a start-up file or to read a key: a rule for everything does not cover them.

    Args:
        permission: the key, ``edit`` or ``read``.
        path: the file.
        allowing: the result of `evaluate`.
        own_data: the product keeps its own data there.
    """
    if permission == "edit":
        edit = not (own_data or is_startup_file(path))
        covered = is_startup_file(allowing.pattern, edit=edit) or (edit and not is_startup_file(path, edit=True))
        startup = "it is a start-up file, which decides what runs later"
        why = "approvals and sessions are kept there" if own_data else startup
    else:
        covered = allowing.pattern != "*" or not is_key_file(path)
        why = "it holds a key or a password"
    if covered or allowing.pattern == path:
        return allowing
    return _asking_rule(permission, allowing, why)


def _asking_rule(permission: str, rule: Rule, why: str) -> Rule:
    """A rule that asks, in place of another, with the reason."""
    origin = f"{rule.origin}: {why}" if rule.origin else why
    return Rule(permission, rule.pattern, "ask", origin, source=rule.source, source_name=rule.source_name)


def relevant(permission: str, ruleset: Iterable[Rule]) -> list[Rule]:
    """The rules about a permission, whatever their pattern and action."""
    return [rule for rule in ruleset if match(permission, rule.permission)]


def permission_key(tool: str) -> str:
    """The permission that a tool's name means in a configuration file."""
    return "edit" if tool in EDIT_TOOLS else tool


def disabled(tools: Iterable[str], ruleset: Sequence[Rule]) -> set[str]:
    """The tools that need not be offered to a model: the last rule about them denies every pattern.

    A rule for one pattern, later, keeps the tool: its calls are judged one by one.
    """
    denied: set[str] = set()
    for tool in tools:
        key = permission_key(tool)
        for rule in reversed(ruleset):
            if match(key, rule.permission) and not rule.approval:
                if rule.pattern == "*" and rule.action == "deny":
                    denied.add(tool)
                break
    return denied


def from_config(
    config: RuleConfig | None,
    origin: str = "",
    *,
    home: str | os.PathLike[str] | None = None,
    source: RuleSource = "code",
) -> list[Rule]:
    """Rules of a config's ``permission`` entry, in its order.

    Args:
        config: one action for everything, or permission -> action, or permission -> pattern -> action.
        origin: of each rule, for people.
        home: what ``~`` and ``$HOME`` at the start of a pattern stand for; the user's home if left out.
        source: of each rule.

    Raises:
        ConfigError: an action is none of allow, deny, ask, or the entry has another shape.
    """
    if config is None:
        return []
    if isinstance(config, str):
        return [Rule("*", "*", _action(config, "permission"), origin, source=source)]
    if not isinstance(config, Mapping):
        raise ConfigError(f"permission is {short_repr(config)}; write an action or an object of permission: action")
    rules: list[Rule] = []
    for permission, value in config.items():
        if isinstance(value, Mapping):
            for pattern, action in value.items():
                valid = _action(action, f"permission.{permission}[{pattern!r}]")
                rules.append(Rule(permission, expand(pattern, home), valid, origin, source=source))
        else:
            rules.append(Rule(permission, "*", _action(value, f"permission.{permission}"), origin, source=source))
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


def check_rules(rules: Any, option: str) -> None:
    """Refuse what is no list of rules with known actions.

    Raises:
        InvalidArgumentsError: it is something else; the message shows a rule.
    """
    is_list = isinstance(rules, Iterable) and not isinstance(rules, str | Mapping)
    for rule in rules if is_list else [None]:
        if not isinstance(rule, Rule) or rule.action not in ACTIONS:
            raise InvalidArgumentsError(
                f"{option} must be a list of rules, such as [Rule('bash', 'git *', 'allow')], with one of the actions "
                f"{', '.join(ACTIONS)}; not {rules!r:.80}."
            )


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
    raise ConfigError(f"{where} is {short_repr(value)}; use allow, deny or ask")
