"""A configuration that was changed in memory (by a plugin), brought into the form that the files' one has."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .merge import deep_merge
from .merged import Config, Origin
from .schema import ConfigWarning, normalise, tools_to_permission

Keys = tuple[str, ...]


def amended(config: Config, data: Mapping[str, Any], label: str) -> Config:
    """A configuration with other data, its rules made anew; `config` stays as it is.

    Args:
        config: before the change.
        data: all of it, after the change; what does not fit is reported and left out, as in a file.
        label: who changed it: the origin of the rules and entries that are other than before.
    """
    warnings = list(config.warnings)

    def report(keys: Keys, message: str) -> None:
        warnings.append(ConfigWarning(message, label, None, ".".join(map(str, keys))))

    before = config.data
    known = {key: value for key, value in data.items() if key not in before or before[key] != value}
    clean = {**before, **normalise(known, report)}
    clean = copy.deepcopy({key: clean[key] for key in data if key in clean})
    switched = {k: v for k, v in (clean.get("tools") or {}).items() if (before.get("tools") or {}).get(k) != v}
    if switched:
        clean["permission"] = deep_merge(clean.get("permission") or {}, tools_to_permission(switched))
    origins = dict(config._origins)
    for keys in _changed(before, clean, ()):
        origins[keys] = Origin(label)
    out = replace(config, data=clean, warnings=warnings, _origins=origins)
    out.permission_rules = out.rules("permission")
    return out


def _changed(before: Any, after: Mapping[str, Any], keys: Keys) -> list[Keys]:
    """The leaves of `after` that `before` does not have."""
    out: list[Keys] = []
    for key, value in after.items():
        old = before.get(key) if isinstance(before, Mapping) else None
        if isinstance(value, Mapping):
            out += _changed(old, value, (*keys, key))
        elif old != value:
            out.append((*keys, key))
    return out
