"""A Python package or module by the name that a config gives it: found without running anything of it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ..trust import digest

MOST_FILES = 2000
"""Files of a project's package that its digest covers; one with more can't be trusted as a whole."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where a module is.

    Attributes:
        name: to import it by.
        path: its file.
        digest: of its code: every file of a package that lies in the project, else of the module's own file.
        shown: its own file's text, for a person who is asked.
    """

    name: str
    path: Path
    digest: str
    shown: str


def locate(name: str, project: Path) -> Located | None:
    """Find a module on ``sys.path``; None if there is none.

    Args:
        name: dotted, or a package's name with hyphens.
        project: what lies below it is the project's own code.
    """
    written = name.replace("-", "_")
    parts = written.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    top = spec = _top(parts[0])
    for i in range(1, len(parts)):
        if spec is None:
            return None
        # importlib's own `find_spec` would import the parents of a dotted name
        places = list(spec.submodule_search_locations or ())
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[: i + 1]), places)
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    path = Path(os.path.realpath(spec.origin))
    try:
        own = path.read_bytes()
        content = own
        if path.is_relative_to(project) and not _installed(path):
            content = _whole(Path(os.path.realpath(top.origin)), own) if top and top.origin else own
    except OSError:
        return None
    return Located(written, path, digest(content), own.decode("utf-8", "replace"))


def _top(name: str) -> importlib.machinery.ModuleSpec | None:
    """Also a package that is installed for editing, which no folder of ``sys.path`` holds."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None


def _installed(path: Path) -> bool:
    """Return whether it lies where packages are installed: an environment often is a folder of the project."""
    return path.is_relative_to(os.path.realpath(sys.prefix)) and "site-packages" in path.parts


def _whole(top: Path, own: bytes) -> bytes:
    """The code of every file of a package, so that a change of any asks again."""
    if top.name != "__init__.py":
        return own
    files = sorted(top.parent.rglob("*.py"))
    if len(files) > MOST_FILES:
        raise OSError(f"{top.parent} has more than {MOST_FILES} files")
    return b"".join(os.fsencode(f.relative_to(top.parent)) + b"\0" + f.read_bytes() + b"\0" for f in files)
