"""Writes one permission rule into the project's own configuration, and takes it out again.

Nothing is written before the configuration has been read as it would be afterwards: the rule must decide, and no
decision outside of what it speaks of may change. Comments can't be kept, so a file that has some is never rewritten.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import atomic
from ..errors import ToolError
from ..flags import flag
from ..permission import ACTIONS, Rule, expand
from . import rule_changes
from .json_text import JsonText, NotStrictError, read
from .load import TOML_FILE, Config, load_config
from .reading import display

NAME = "opencode.json"
FOLDER = ".opencode"
SCHEMA = "https://opencode.ai/config.json"
"""OpenCode adds this to a file that lacks it."""
ACTION_ONLY = frozenset({"todowrite", "todoread", "question", "webfetch", "websearch", "codesearch", "doom_loop"})
"""Permissions that take no patterns in OpenCode's files; it refuses a file with some (docs/opencode/core.md 14.4)."""
_ATTEMPTS = 5
_REFERENCE = re.compile(r"\{(?:env|file):")
_lock = threading.Lock()


def save_rule(
    directory: str | os.PathLike[str],
    worktree: str | os.PathLike[str] | None,
    permission: str,
    pattern: str,
    action: str,
    *,
    keep_denies: bool = False,
    overrides: Mapping[str, Any] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> Path:
    """Add a rule to the project's configuration, or change the one that is there for the same pattern.

    It goes into ``opencode.json`` at the top of the project; where that has comments, or the project keeps its
    configuration in ``opencode.jsonc`` or ``config.toml``, into ``.opencode/opencode.json``, which is read later.

    Args:
        directory: where calls run.
        worktree: top of the project; ``/`` or None without version control, where `directory` is the project.
        permission: the key, such as ``bash``.
        pattern: as a config file has it: a ``~/`` or ``$HOME`` at its start stands for the home folder.
        action: ``allow``, ``deny`` or ``ask``.
        keep_denies: refuse to overrule a rule that denies, also for a part of what it denies.
        overrides: as for `load_config`.
        home: as for `load_config`.
        env: as for `load_config`.

    Returns:
        The file that has the rule now.

    Raises:
        ToolError: the rule would not decide, or other decisions would change (the message names the rule that stands
            in the way), or the file can't be written. Nothing has changed then.
        ConfigError: the configuration can't be read as it is.
    """
    saver = _Saver(directory, worktree, overrides, home, env)
    return saver.save(permission, pattern, action, keep_denies)


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
        ToolError: the file can't be rewritten without losing something, or leads elsewhere.
    """
    with _lock:
        _stay_inside(path, root or path.parent)
        for _ in range(_ATTEMPTS):
            try:
                file = read(path)
            except NotStrictError as error:
                raise ToolError(f"{path} {error}, which would be lost; remove the rule there yourself") from error
            if file is None:
                return False
            section = _without(file.data.get("permission"), permission, pattern)
            if section is None:
                return False
            if _replace(path, file, file.with_entry("permission", section)):
                return True
        raise ToolError(f"{path} keeps changing on disk; nothing was written")


def project_root(directory: str | os.PathLike[str], worktree: str | os.PathLike[str] | None) -> Path:
    """The folder that a project's own files are in: the worktree, or the directory if there is no version control."""
    here = Path(os.path.realpath(directory))
    top = Path(os.path.realpath(worktree)) if worktree is not None else here
    return here if top == Path(top.anchor) or not here.is_relative_to(top) else top


class _InTheWayError(ToolError):
    """Another rule stands in the way in this file."""


@dataclass(slots=True)
class _Saver:
    """One project's configuration, as it is and as it would be."""

    directory: str | os.PathLike[str]
    worktree: str | os.PathLike[str] | None
    overrides: Mapping[str, Any] | None
    home: str | os.PathLike[str] | None
    env: Mapping[str, str] | None

    @property
    def root(self) -> Path:
        return project_root(self.directory, self.worktree)

    def load(self, texts: Mapping[Path, str] | None = None) -> Config:
        return load_config(
            self.directory, self.worktree, overrides=self.overrides, home=self.home, env=self.env, texts=texts
        )

    def save(self, permission: str, pattern: str, action: str, keep_denies: bool) -> Path:
        if action not in ACTIONS:
            raise ToolError(f"{action!r} is not an action; use allow, deny or ask")
        if not permission or not pattern:
            raise ToolError("a rule needs a permission and a pattern; * matches anything")
        if _REFERENCE.search(permission + "\n" + pattern):
            raise ToolError(f"{pattern} can't be kept in a config file, which fills in {{env:...}} and {{file:...}}")
        if flag("OPENCODE_DISABLE_PROJECT_CONFIG", self.env):
            raise ToolError("OPENCODE_DISABLE_PROJECT_CONFIG is set, so the project's configuration is not read")
        with _lock:
            first, *others = self.targets()
            try:
                self.into(first, permission, pattern, action, keep_denies)
            except _InTheWayError as error:
                for path in others:
                    with contextlib.suppress(_InTheWayError):
                        self.into(path, permission, pattern, action, keep_denies)
                        return path
                raise ToolError(str(error)) from None
            return first

    def targets(self) -> list[Path]:
        """The files that may take a rule, the first first. The second is read later, so it can overrule more."""
        root = self.root
        later = root / FOLDER / NAME
        try:
            read(root / NAME)
        except NotStrictError:
            return [later]
        here = Path(os.path.realpath(self.directory))
        folders = [folder for folder in (here, *here.parents) if folder.is_relative_to(root)]
        others = [folder / sub / name for folder in folders for sub, name in _OTHERS]
        return [later] if any(path.exists() for path in others) else [root / NAME, later]

    def into(self, path: Path, permission: str, pattern: str, action: str, keep_denies: bool) -> None:
        """Write the rule into one file, in the first arrangement that changes nothing else."""
        root = self.root
        _stay_inside(path, root)
        for _ in range(_ATTEMPTS):
            try:
                file = read(path)
            except NotStrictError as error:
                raise ToolError(
                    f'{path} {error}, which would be lost; add "{permission}": {{"{pattern}": "{action}"}} to its '
                    '"permission" yourself'
                ) from error
            before = self.load()
            new = Rule(permission, expand(pattern, before.home), _ACTIONS[action])
            base = file or JsonText(b'{\n  "$schema": "%s"\n}\n' % SCHEMA.encode())
            problem = ""
            for section in self.arrangements(base, before, permission, pattern, action, keep_denies):
                changed = base.with_entry("permission", section)
                after = self.load({path: JsonText(changed).text})
                trouble = self.trouble(before, after, new, keep_denies)
                problem = problem or trouble
                if trouble:
                    continue
                if (
                    file is not None
                    and section == file.data.get("permission")
                    and _orders(section) == _orders(file.data["permission"])
                ):
                    return  # it is there already
                if _replace(path, file, changed):
                    return
                break
            else:
                shown = display(path, root, before.home)
                raise _InTheWayError(f"{permission} {pattern} {action} can't be saved in {shown}: {problem}")
        raise ToolError(f"{path} keeps changing on disk; nothing was written")

    def arrangements(
        self, file: JsonText, before: Config, permission: str, pattern: str, action: str, keep_denies: bool
    ) -> Iterator[dict[str, Any]]:
        """Ways to say the rule in the file's ``permission`` object, from the least change on."""
        section = file.data.get("permission", {})
        if isinstance(section, str):
            section = {"*": section}
        if not isinstance(section, dict):
            raise ToolError('its "permission" is neither an action nor an object; fix that first')
        inherited = before.get("permission", permission)
        # An object takes the place of an action that an earlier file has, so that action is said again.
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
        orders = list(_placed(entries, pattern, action, keep_denies))
        said = [action if short and list(order) == ["*"] else order for order in orders]
        if permission in section:
            yield from ({**section, permission: entry} for entry in said)
        yield from ({**rest, permission: entry} for entry in said)

    def trouble(self, before: Config, after: Config, new: Rule, keep_denies: bool) -> str:
        """Why a change must not be made; "" if it may."""
        old, rules = before.permission_rules, after.permission_rules
        if keep_denies and (rule := rule_changes.undone(old, rules, new)) is not None:
            return f"the rule {_said(rule)} denies a part of it"
        if (rule := rule_changes.not_decided(rules, new)) is not None:
            return f"the rule {_said(rule)} would still decide"
        if (rule := rule_changes.changed(old, rules, new)) is not None:
            return f"the rule {_said(rule)} would decide other cases than now"
        return ""


_OTHERS = (("", "opencode.jsonc"), (FOLDER, "opencode.jsonc"), (FOLDER, TOML_FILE))
_ACTIONS: dict[str, Any] = {action: action for action in ACTIONS}


def _placed(entries: dict[str, str], pattern: str, action: str, keep_denies: bool) -> Iterator[dict[str, str]]:
    """The patterns with the new one in its old place, at the end (the last that fits wins), before what denies."""
    if pattern in entries:
        yield {**entries, pattern: action}
    others = {key: entry for key, entry in entries.items() if key != pattern}
    yield {**others, pattern: action}
    if keep_denies:
        items = list(others.items())
        for place in reversed(range(len(items))):
            if items[place][1] == "deny":
                yield dict([*items[:place], (pattern, action), *items[place:]])


def _without(section: Any, permission: str, pattern: str) -> dict[str, Any] | None:
    """A ``permission`` entry without a rule; None if it has none such."""
    if isinstance(section, str):
        return {} if (permission, pattern) == ("*", "*") else None
    if not isinstance(section, dict) or permission not in section:
        return None
    value = section[permission]
    rest = {key: entry for key, entry in section.items() if key != permission}
    if not isinstance(value, dict):
        return rest if pattern == "*" else None
    found = pattern if pattern in value else next((key for key in value if expand(key) == pattern), None)
    if found is None:
        return None
    left = {key: entry for key, entry in value.items() if key != found}
    return {**section, permission: left} if left else rest


def _orders(section: Mapping[str, Any]) -> list[Any]:
    return [(key, list(value) if isinstance(value, dict) else None) for key, value in section.items()]


def _stay_inside(path: Path, root: Path) -> None:
    actual = Path(os.path.realpath(path))
    if not actual.is_relative_to(os.path.realpath(root)):
        raise ToolError(f"{path} leads to {actual}, outside the project; it is not changed from here. Edit it there")


def _replace(path: Path, seen: JsonText | None, data: bytes) -> bool:
    """Write, unless another program has written in the meantime."""
    try:
        now = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        now = None
    except OSError as error:
        raise ToolError(atomic.explain(error, str(path))) from error
    if now != (seen.raw if seen is not None else None):
        return False
    atomic.write(path, data)
    return True


def _said(rule: Rule) -> str:
    return f"{rule.permission} {rule.pattern} {rule.action}" + (f" ({rule.origin})" if rule.origin else "")
