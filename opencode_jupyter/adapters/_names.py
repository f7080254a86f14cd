"""Names of tools in the form that providers take: letters, digits, ``_`` and ``-``, at most 64."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 64
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def wire_names(ids: Iterable[str]) -> dict[str, str]:
    """For each id its name; two never share one. The same ids get the same names, so nothing has to be remembered."""
    known = list(dict.fromkeys(ids))
    plain = {id: _OTHER.sub("_", id)[:LONGEST] or "_" for id in known}
    counts: dict[str, int] = {}
    for name in plain.values():
        counts[name] = counts.get(name, 0) + 1
    return {
        id: name if name == id or (counts[name] == 1 and len(id) <= LONGEST) else _marked(name, id)
        for id, name in plain.items()
    }


def _marked(name: str, id: str) -> str:
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: LONGEST - 9]}_{digest}"
