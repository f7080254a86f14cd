"""Which plugins installed packages offer: read once per process, on a thread of its own, since it takes long."""

from __future__ import annotations

import importlib.metadata
import logging
import re
import sys
import threading
from concurrent.futures import Future
from typing import NamedTuple

log = logging.getLogger(__name__)

GROUP = "opencode_jupyter.plugins"
"""Group of the entry points."""


class Installed(NamedTuple):
    """A plugin that a package offers."""

    name: str
    """The entry point's name."""
    package: str
    version: str
    entry: importlib.metadata.EntryPoint


_lock = threading.Lock()
_path: list[str] = []
_found: Future[tuple[Installed, ...]] | None = None


def installed() -> Future[tuple[Installed, ...]]:
    """The plugins of installed packages, ordered by package and name; begun at the first call.

    Any thread may call it. Another ``sys.path`` is looked through anew.
    """
    global _found, _path
    with _lock:
        if _found is None or _path != sys.path:
            _found, _path = Future(), list(sys.path)
            threading.Thread(target=_look, args=(_found,), name="opencode-plugins", daemon=True).start()
        return _found


def known() -> bool:
    """Return whether `installed` is up to date and done."""
    return _found is not None and _found.done() and _path == sys.path


def forget() -> None:
    """Look again at the next `installed`: a package was added or removed."""
    global _found
    with _lock:
        _found = None


def _look(future: Future[tuple[Installed, ...]]) -> None:
    found: list[Installed] = []
    try:
        texts = (dist.read_text("entry_points.txt") for dist in importlib.metadata.distributions())
        # To parse those of all packages takes three times as long as to read them, and few packages have plugins.
        offered = any(GROUP in text for text in texts if text)
        for entry in importlib.metadata.entry_points(group=GROUP) if offered else ():
            dist = entry.dist
            package, version = (dist.name, dist.version) if dist is not None else ("", "")
            found.append(Installed(entry.name, package, version, entry))
    except Exception:  # one broken package must not take every call away
        log.exception("the entry points of installed packages can't be read")
    found.sort(key=lambda one: (canonical(one.package), one.name))
    future.set_result(tuple(found))


def canonical(name: str) -> str:
    """A package's or plugin's name as names are compared."""
    return re.sub(r"[-_.]+", "-", name).strip("-").lower()
