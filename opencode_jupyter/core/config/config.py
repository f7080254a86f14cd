"""The merged configuration of one project: what is in effect, which file set it, and what is wrong with it."""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..fingerprint import Stamp, stamp
from ..permission import Rule, expand, from_config
from ..trust import Subject

UNTRUSTED = "project configuration"
"""Kind of the trust that a project's configuration needs; key of the warning about one that is not trusted."""

Keys = tuple[str, ...]
Report = Callable[[Keys, str], None]
"""Called for a mistake: where (the keys down to it) and what is wrong, with what to write instead."""


class ConfigWarning(NamedTuple):
    """A mistake in a config, or another file of a config folder, that was worked around.

    Attributes:
        message: what is wrong and what to do.
        path: the file (or ``OPENCODE_PERMISSION`` and the like).
        line: 1-based, if known.
        key: the entry, such as ``permission.bash``.
    """

    message: str
    path: str = ""
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        """In one text, with characters escaped that would change how a terminal shows it."""
        where = f"{self.path}:{self.line}" if self.line else self.path
        text = f"{where}: {self.message}" if where else self.message
        return "".join(char if char == "\n" or _is_shown(char) else ascii(char)[1:-1] for char in text)


def _is_shown(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"  # a space of another width changes nothing


@dataclass(frozen=True, slots=True)
class Origin:
    """The source that set an entry.

    Attributes:
        label: its name for a person.
        path: of a file, its path.
        project: it is a file in the project.
        later: it overrides the project's files.
    """

    label: str = ""
    path: str = ""
    project: bool = False
    later: bool = False


UNKNOWN = Origin()


@dataclass(repr=False)
class Config:
    """The merged configuration of one project.

    Attributes:
        data: everything, normalised (`validation.normalise`), keys in the order in which files brought them.
        sources: name and content of each file (or variable) that was read, in load order; later ones override.
        permission_rules: the user's rules; each rule's origin names its file.
        directories: folders that may hold agents, tools and skills: the global one, the project's ``.opencode`` folders
            from the nearest on, ``~/.opencode``, ``OPENCODE_CONFIG_DIR``.
        warnings: mistakes that were worked around.
        home: what ``~`` stands for.
        trust_subject: what a person trusts by trusting the project's configuration; None if nothing in it needs trust.
        withheld: source, keys and value of each entry that is not in effect until then.
        reference_values: the values of ``{env:...}`` and ``{file:...}``; each may be a secret.
        stamps: the files that were looked for, with their state (None: missing).
        project_sources: names of the sources that came with the project; the others are the user's own.
    """

    data: dict[str, Any] = field(default_factory=dict)
    sources: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    permission_rules: list[Rule] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    warnings: list[ConfigWarning] = field(default_factory=list)
    home: Path = field(default_factory=Path.home)
    stamps: dict[Path, Stamp | None] = field(default_factory=dict)
    project_sources: set[str] = field(default_factory=set)
    trust_subject: Subject | None = None
    withheld: list[tuple[str, Keys, Any]] = field(default_factory=list)
    reference_values: set[str] = field(default_factory=set)
    _origins: dict[Keys, Origin] = field(default_factory=dict)
    _restrictions: list[tuple[Keys, dict[str, Any], Origin]] = field(default_factory=list)
    """Rules of a project that nobody trusts: the keys down to them, their ``permission`` object, their file."""

    def __repr__(self) -> str:
        # None of its values: they may come from {env:...} and {file:...}.
        return f"Config({len(self.sources)} sources, {len(self.permission_rules)} rules, {len(self.warnings)} warnings)"

    def changed(self) -> list[Path]:
        """The files that were written, created or deleted since; cheap enough for every call."""
        return [path for path, before in self.stamps.items() if stamp(path) != before]

    def get(self, *keys: str, default: Any = None) -> Any:
        """The value under nested keys, or `default`."""
        value: Any = self.data
        for key in keys:
            if not isinstance(value, Mapping) or key not in value:
                return default
            value = value[key]
        return value

    @property
    def masks_secrets(self) -> bool:
        """Whether known secrets are masked; only the user's own configuration switches it off."""
        keys = ("experimental", "mask_secrets")
        off = (self.data.get(keys[0]) or {}).get(keys[1]) is False
        return not off or self._origins.get(keys, UNKNOWN).project

    def origin(self, *keys: str) -> str:
        """The file that set an entry, or "" if none did."""
        return self._origins.get(keys, UNKNOWN).label

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON schema of a config file, for editors and other programs."""
        from .json_schema import json_schema

        return json_schema()

    def rules(self, *keys: str, origin: str = "") -> list[Rule]:
        """The rules of the ``permission`` object under nested keys; `origin` comes before the file's name."""
        rules: list[Rule] = []
        for permission, value in (self.get(*keys) or {}).items():
            entries = value if isinstance(value, Mapping) else {"*": value}
            for pattern, action in entries.items():
                leaf = (*keys, permission, pattern) if isinstance(value, Mapping) else (*keys, permission)
                source = self._origins.get(leaf, UNKNOWN)
                entry_rules = self._rules({permission: {expand(pattern, self.home): action}}, keys, origin, source)
                overrides = self._restrictions and source.later
                rules += [replace(rule, overrides=True) for rule in entry_rules] if overrides else entry_rules
        for where, entries, source in self._restrictions:
            if where == keys:
                rules += [replace(rule, stricter=True) for rule in self._rules(entries, keys, origin, source)]
        return rules

    def _rules(self, entries: Mapping[str, Any], keys: Keys, origin: str, source: Origin) -> list[Rule]:
        label = ", ".join(part for part in (origin, source.label) if part)
        rules = from_config(entries, label, home=self.home, source="project" if source.project else "config")
        return [replace(rule, source_name=source.path) for rule in rules] if keys == ("permission",) else rules


# ---------------------------------------------------------------------- merging

CONCATENATED = ("plugin", "instructions")
"""Top-level lists that grow instead of being replaced."""


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A new dict: `over` laid over `base`, object by object.

    A key that both have stays where `base` has it; new keys come last. Anything but two objects: `over`'s value.
    """
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = deep_merge(old, value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def merge_config(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`deep_merge` for whole configurations: the lists in `CONCATENATED` are joined, each entry kept once."""
    merged = deep_merge(base, over)
    for key in CONCATENATED:
        old, new = base.get(key), over.get(key)
        if isinstance(old, list) and isinstance(new, list):
            merged[key] = list(dict.fromkeys([*old, *new]))
    return merged
