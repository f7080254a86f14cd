"""How two configurations add up. The order of keys is kept: among permission rules the last that fits wins."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

CONCATENATED = ("plugin", "instructions")
"""Top-level lists that grow instead of being replaced."""


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A new dict: `over` laid over `base`, object by object.

    A key that both have stays where `base` has it; new keys come last. Anything but two objects: `over`'s value.
    """
    out = dict(base)
    for key, value in over.items():
        mine = out.get(key)
        if isinstance(mine, Mapping) and isinstance(value, Mapping):
            out[key] = deep_merge(mine, value)
        else:
            out[key] = copy.deepcopy(value)
    return out


def merge_config(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`deep_merge` for whole configurations: the lists in `CONCATENATED` are joined, each entry kept once."""
    out = deep_merge(base, over)
    for key in CONCATENATED:
        mine, theirs = base.get(key), over.get(key)
        if isinstance(mine, list) and isinstance(theirs, list):
            out[key] = list(dict.fromkeys([*mine, *theirs]))
    return out
