"""Save a permission rule or an MCP server in a config file, and remove it again; the file's other bytes stay.

Nothing is written before the configuration has been read as it would be afterwards: the rule or server must be in
effect, and a rule must change no other decision. Comments would be lost, so a file that has some is never rewritten.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .. import atomic
from ..errors import ToolError
from ..flags import flag
from ..permission import ACTIONS, Rule, expand
from . import rule_effects
from .config import Config
from .files import display
from .json_edit import JsonText, NotStrictError, read
from .load import TOML_FILE, load_config

NAME = "opencode.json"
FOLDER = ".opencode"
EMPTY_FILE = b'{\n  "$schema": "https://opencode.ai/config.json"\n}\n'
"""OpenCode adds this schema to a file that lacks it."""
ACTION_ONLY = frozenset({"todowrite", "todoread", "question", "webfetch", "websearch", "codesearch", "doom_loop"})
"""Permissions that take no patterns in OpenCode's files: it refuses a file with some (docs/opencode/core.md 14.4)."""
Scope = Literal["project", "user"]
_USER_FILES = ("opencode.jsonc", NAME, "config.json")
"""The user's own files, the one that is read last first."""
_READ_LATER = (("", "opencode.jsonc"), (FOLDER, "opencode.jsonc"), (FOLDER, TOML_FILE))
"""Files that are read after ``opencode.json``: where the project has one, nothing is saved there."""
_ATTEMPTS = 5
_REFERENCE = re.compile(r"\{(?:env|file):")
_lock = threading.Lock()


class _RuleInTheWayError(ToolError):
    """Another rule decides instead in this file."""


@dataclass(slots=True)
class SavedRules:
    """The outcome of saving rules.

    Attributes:
        patterns: those that are in a file now.
        files: the files' names, relative to the project.
        notes: what a person should know: a pattern that could not be saved and why, a rule that still decides, an
            agent that may now do what it might not.
    """

    patterns: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """The config files of one project and its user, to be changed.

    Args:
        directory: where calls run.
        worktree: top of the project; ``/`` or None without version control, where `directory` is the project.
        overrides: as for `load_config`.
        home: as for `load_config`.
        env: as for `load_config`.
    """

    directory: str | os.PathLike[str]
    worktree: str | os.PathLike[str] | None
    overrides: Mapping[str, Any] | None = None
    home: str | os.PathLike[str] | None = None
    env: Mapping[str, str] | None = None

    # ------------------------------------------------------------------ rules

    def save_rule(self, permission: str, pattern: str, action: str, *, keep_denies: bool = False) -> Path:
        """Add a rule to the project's configuration, or change the one that is there for the same pattern.

        It goes into ``opencode.json`` at the top of the project; where that has comments, or the project keeps its
        configuration in ``opencode.jsonc`` or ``config.toml``, into ``.opencode/opencode.json``, which is read later.

        Args:
            permission: the key, such as ``bash``.
            pattern: as a config file has it: a ``~/`` or ``$HOME`` at its start stands for the home folder.
            action: ``allow``, ``deny`` or ``ask``.
            keep_denies: refuse to overrule a rule that denies, also for a part of what it denies.

        Returns:
            The file that has the rule now.

        Raises:
            ToolError: the rule would not decide, or other decisions would change (the message names the other rule),
                or the file cannot be written. Nothing has changed then.
            ConfigError: the configuration cannot be read as it is.
        """
        if action not in ACTIONS:
            raise ToolError(f"{action!r} is not an action; use allow, deny or ask")
        if not permission or not pattern:
            raise ToolError("a rule needs a permission and a pattern; * matches anything")
        if _REFERENCE.search(permission + "\n" + pattern):
            raise ToolError(f"{pattern} can't be kept in a config file, which fills in {{env:...}} and {{file:...}}")
        self._check_project_is_read()
        refusal = ""
        with _lock:
            files = self._project_files()
            for path in [path for path in files if _refusal(path) == ""] or files[-1:]:
                try:
                    self._save_rule_in(path, permission, pattern, action, keep_denies)
                except _RuleInTheWayError as error:
                    refusal = refusal or str(error)
                else:
                    return path
        raise ToolError(refusal)

    def _save_rule_in(self, path: Path, permission: str, pattern: str, action: str, keep_denies: bool) -> None:
        """Write a rule into one file, in the first arrangement that changes nothing else."""
        _stay_inside(path, self.root)

        def change(file: JsonText | None) -> bytes | None:
            before = self._load()
            new = Rule(permission, expand(pattern, before.home), action)  # type: ignore[arg-type]
            base = file or JsonText(EMPTY_FILE)
            problem = ""
            for section in _arrangements(base, before, permission, pattern, action, keep_denies):
                changed = base.with_entry("permission", section)
                after = self._load({path: JsonText(changed).text})
                obstacle = _obstacle(before, after, new, keep_denies)
                if not obstacle:
                    old = base.data.get("permission")
                    return None if section == old and _key_orders(section) == _key_orders(old) else changed
                problem = problem or obstacle
            shown = display(path, self.root, before.home)
            raise _RuleInTheWayError(f"{permission} {pattern} {action} can't be saved in {shown}: {problem}")

        _rewrite(path, change, f'add "{permission}": {{"{pattern}": "{action}"}} to its "permission" yourself')

    # ------------------------------------------------------------------ MCP servers

    def save_server(self, name: str, entry: Mapping[str, Any], scope: Scope = "project") -> Path:
        """Put a server into the project's configuration, or the user's own, in place of one of that name.

        Args:
            name: its name.
            entry: its object under ``mcp``; ``{env:NAME}`` in it stays as it is.
            scope: whose configuration.

        Returns:
            The file that has it now.

        Raises:
            ToolError: no file can take it, or another one overrules it; nothing has changed then.
            ConfigError: the configuration cannot be read as it is.
        """
        if scope == "project":
            self._check_project_is_read()
        by_hand = f'add {json.dumps({name: dict(entry)})[1:-1]} to its "mcp" yourself'
        with _lock:
            files = self._user_files() if scope == "user" else self._project_files()
            refusals = [_refusal(path) for path in files]
            if "" not in refusals:
                raise ToolError(f"{files[0]} {refusals[0]}, which would be lost; {by_hand}")
            path = files[refusals.index("")]
            if scope == "project":
                _stay_inside(path, self.root)

            def change(file: JsonText | None) -> bytes:
                base = file or JsonText(EMPTY_FILE)
                changed = base.with_entry("mcp", {**_servers(base, path), name: dict(entry)})
                self._check_server(path, JsonText(changed).text, name, entry)
                return changed

            _rewrite(path, change, by_hand)
            return path

    def remove_server(self, name: str, path: Path) -> bool:
        """Take a server out of a file; False if the file has none of that name.

        Raises:
            ToolError: the file cannot be rewritten without losing something, or leads out of the project.
        """
        if path.parent != self._load().directories[0]:
            _stay_inside(path, self.root)

        def change(file: JsonText | None) -> bytes | None:
            if file is None or name not in _servers(file, path):
                return None
            return file.with_entry("mcp", {key: value for key, value in _servers(file, path).items() if key != name})

        with _lock:
            return _rewrite(path, change, f"remove {name} there yourself")

    def _check_server(self, path: Path, text: str, name: str, entry: Mapping[str, Any]) -> None:
        """Refuse a server that the whole configuration would not have as it is saved."""
        after = self._load({path: text})
        merged = after.get("mcp", name)
        for key, value in entry.items():
            if not isinstance(merged, Mapping) or not _is_contained(value, merged.get(key)):
                origin = after.origin("mcp", name, key) or "another file"
                raise ToolError(
                    f"{name} can't be saved in {path}: its {key} would have no effect, because {origin} overrides it"
                )

    # ------------------------------------------------------------------ files

    @property
    def root(self) -> Path:
        """The folder of the project's own files: the worktree, or the directory if there is no version control."""
        here = Path(os.path.realpath(self.directory))
        top = Path(os.path.realpath(self.worktree)) if self.worktree is not None else here
        return here if top == Path(top.anchor) or not here.is_relative_to(top) else top

    def _load(self, texts: Mapping[Path, str] | None = None) -> Config:
        return load_config(
            self.directory, self.worktree, overrides=self.overrides, home=self.home, env=self.env, texts=texts
        )

    def _check_project_is_read(self) -> None:
        if flag("OPENCODE_DISABLE_PROJECT_CONFIG", self.env):
            raise ToolError("OPENCODE_DISABLE_PROJECT_CONFIG is set, so the project's configuration is not read")

    def _project_files(self) -> list[Path]:
        """The project's files that may be changed, the preferred one first. The last is read last."""
        root = self.root
        here = Path(os.path.realpath(self.directory))
        folders = [folder for folder in (here, *here.parents) if folder.is_relative_to(root)]
        has_later = any((folder / sub / name).exists() for folder in folders for sub, name in _READ_LATER)
        return [root / FOLDER / NAME] if has_later else [root / NAME, root / FOLDER / NAME]

    def _user_files(self) -> list[Path]:
        folder = self._load().directories[0]
        return [folder / name for name in _USER_FILES if (folder / name).exists()] or [folder / NAME]


def remove_rule(path: Path, permission: str, pattern: str, *, root: Path | None = None) -> bool:
    """Take a rule out of a config file.

    Args:
        path: the file, JSON without comments.
        permission: the rule's key.
        pattern: as the file has it, or with its ``~/`` filled in; ``*`` is also an action without patterns.
        root: the folder that the file must not lead out of; its own if left out.

    Returns:
        False if the file has no such rule.

    Raises:
        ToolError: the file cannot be rewritten without losing something, or leads elsewhere.
    """

    def change(file: JsonText | None) -> bytes | None:
        section = _without_rule(file.data.get("permission"), permission, pattern) if file is not None else None
        return None if file is None or section is None else file.with_entry("permission", section)

    with _lock:
        _stay_inside(path, root or path.parent)
        return _rewrite(path, change, "remove the rule there yourself")


# ---------------------------------------------------------------------- writing


def _refusal(path: Path) -> str:
    """Why a file cannot be rewritten; "" if it can."""
    try:
        read(path)
    except NotStrictError as error:
        return str(error)
    return ""


def _rewrite(path: Path, change: Callable[[JsonText | None], bytes | None], by_hand: str) -> bool:
    """Replace a file, again if another program writes it meanwhile.

    Args:
        path: the file.
        change: gives the new bytes; None for no change.
        by_hand: what a person can do where the file cannot be rewritten.

    Returns:
        Whether it was changed.
    """
    for _ in range(_ATTEMPTS):
        try:
            file = read(path)
        except NotStrictError as error:
            raise ToolError(f"{path} {error}, which would be lost; {by_hand}") from error
        data = change(file)
        if data is None:
            return False
        if _replace(path, file, data):
            return True
    raise ToolError(f"{path} keeps changing on disk; nothing was written")


def _replace(path: Path, before: JsonText | None, data: bytes) -> bool:
    """Write, unless another program has written in the meantime."""
    try:
        now = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        now = None
    except OSError as error:
        raise ToolError(atomic.explain(error, str(path))) from error
    if now != (before.raw if before is not None else None):
        return False
    atomic.write(path, data)
    return True


def _stay_inside(path: Path, root: Path) -> None:
    actual = Path(os.path.realpath(path))
    if not actual.is_relative_to(os.path.realpath(root)):
        raise ToolError(f"{path} leads to {actual}, outside the project; it is not changed from here. Edit it there")


# ---------------------------------------------------------------------- rules


def _arrangements(
    file: JsonText, before: Config, permission: str, pattern: str, action: str, keep_denies: bool
) -> Iterator[dict[str, Any]]:
    """The ways to add the rule to the file's ``permission`` object, the least change first."""
    section = file.data.get("permission", {})
    if isinstance(section, str):
        section = {"*": section}
    if not isinstance(section, dict):
        raise ToolError('its "permission" is neither an action nor an object; fix that first')
    inherited = before.get("permission", permission)
    # An object takes the place of an action that an earlier file has, so that action is repeated.
    value = section.get(permission, inherited if isinstance(inherited, str) else {})
    if not isinstance(value, str | dict):
        raise ToolError(f'its "permission" for {permission} is neither an action nor an object; fix that first')
    if permission in ACTION_ONLY and pattern != "*" and (isinstance(value, str) or not value):
        raise ToolError(
            f"OpenCode's files take one action for all of {permission}, and it refuses a file that has a pattern "
            f"there; * would be saved"
        )
    entries = {"*": value} if isinstance(value, str) else value
    short = permission not in section or isinstance(value, str)
    rest = {key: entry for key, entry in section.items() if key != permission}
    orders = list(_pattern_orders(entries, pattern, action, keep_denies))
    values = [action if short and list(order) == ["*"] else order for order in orders]
    if permission in section:
        yield from ({**section, permission: entry} for entry in values)
    yield from ({**rest, permission: entry} for entry in values)


def _obstacle(before: Config, after: Config, new: Rule, keep_denies: bool) -> str:
    """Why a change must not be made; "" if it may."""
    old, rules = before.permission_rules, after.permission_rules
    if keep_denies and (rule := rule_effects.undone_deny(old, rules, new)) is not None:
        return f"the rule {_describe_rule(rule)} denies a part of it"
    if (rule := rule_effects.overruling_rule(rules, new)) is not None:
        return f"the rule {_describe_rule(rule)} would still decide"
    if (rule := rule_effects.changed_rule(old, rules, new)) is not None:
        return f"the rule {_describe_rule(rule)} would decide other cases than now"
    return ""


def _describe_rule(rule: Rule) -> str:
    return f"{rule.permission} {rule.pattern} {rule.action}" + (f" ({rule.origin})" if rule.origin else "")


def _pattern_orders(entries: dict[str, str], pattern: str, action: str, keep_denies: bool) -> Iterator[dict[str, str]]:
    """The patterns with the new one in its old place, at the end (the last that fits wins), before what denies."""
    if pattern in entries:
        yield {**entries, pattern: action}
    others = {key: entry for key, entry in entries.items() if key != pattern}
    yield {**others, pattern: action}
    if keep_denies:
        items = list(others.items())
        for index in reversed(range(len(items))):
            if items[index][1] == "deny":
                yield dict([*items[:index], (pattern, action), *items[index:]])


def _without_rule(section: Any, permission: str, pattern: str) -> dict[str, Any] | None:
    """A ``permission`` entry without a rule; None if it has none such."""
    if isinstance(section, str):
        return {} if (permission, pattern) == ("*", "*") else None
    if not isinstance(section, dict) or permission not in section:
        return None
    value = section[permission]
    rest = {key: entry for key, entry in section.items() if key != permission}
    if not isinstance(value, dict):
        return rest if pattern == "*" else None
    written = pattern if pattern in value else next((key for key in value if expand(key) == pattern), None)
    if written is None:
        return None
    remaining = {key: entry for key, entry in value.items() if key != written}
    return {**section, permission: remaining} if remaining else rest


def _key_orders(section: Mapping[str, Any]) -> list[Any]:
    return [(key, list(value) if isinstance(value, dict) else None) for key, value in section.items()]


# ---------------------------------------------------------------------- MCP servers


def _servers(file: JsonText, path: Path) -> dict[str, Any]:
    section = file.data.get("mcp", {})
    if not isinstance(section, dict):
        raise ToolError(f'the "mcp" of {path} is not an object ({{...}}); fix that first')
    return section


def _is_contained(value: Any, merged: Any) -> bool:
    """Return whether all of `value` is in the merged configuration; references are filled in there."""
    if isinstance(value, Mapping):
        return isinstance(merged, Mapping) and all(_is_contained(v, merged.get(k)) for k, v in value.items())
    return bool(value == merged) or "{env:" in str(value) or "{file:" in str(value)
