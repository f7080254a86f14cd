"""Ids of the tools of a file (reference: core.md 4.1).

| in the file ``weather.py`` | id |
|---|---|
| the export ``default``; in Python also the one named like the file, ``weather`` | ``weather`` |
| another export, ``forecast`` | ``weather_forecast`` |
| in the single file ``tools.py``: ``forecast`` | ``forecast`` |
| in the single file ``tools.py``: ``default`` | ``tools`` |

The names of file and export alone make the id: what `@tool("id")` says does not count, as in OpenCode, where a
definition has no id. What is no letter of ASCII, no digit, ``_`` or ``-`` becomes ``_``: providers take nothing else.
"""

from __future__ import annotations

import re

DEFAULT = "default"
_OTHER = re.compile(r"[^A-Za-z0-9_-]")


def clean(name: str) -> str:
    """A name as it can stand in an id."""
    return _OTHER.sub("_", name)


def tool_id(namespace: str, stem: str, export: str, *, own_name: bool, has_default: bool) -> str:
    """The id of an export.

    Args:
        namespace: the cleaned name of the file; "" for a single file.
        stem: the file's name without its ending.
        export: the export's name.
        own_name: an export named like the file counts as the default one (Python).
        has_default: there is an export ``default``, which leaves no other the file's name.
    """
    if export == DEFAULT:
        return namespace or clean(stem)
    if not namespace:
        return clean(export)
    if own_name and not has_default and export == re.sub(r"\W", "_", stem):
        return namespace
    return f"{namespace}_{clean(export)}"
