"""Files that a pattern of the config's ``instructions`` means. Bounded: a careless one must not read a whole disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ...tools._search_fallback import glob_regex

MOST_FILES = 100
"""Files that one pattern can name."""
MOST_ENTRIES = 50_000
"""Entries of folders that one pattern looks at."""
PASSED_OVER = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache"})
"""Folders that are not entered, unless the pattern names them."""
_MAGIC = re.compile(r"[*?\[{]")


def is_pattern(text: str) -> bool:
    """Return whether a path has wildcards."""
    return _MAGIC.search(text) is not None


def find(pattern: str, folder: Path) -> list[Path]:
    """The files of a pattern, sorted.

    Args:
        pattern: with ``*`` and ``?`` within a name, ``**`` over folders, ``[abc]`` and ``{a,b}``. A relative one starts
            in `folder`.
        folder: where it starts.
    """
    parts = os.path.join(folder, pattern).replace(os.sep, "/").split("/")
    first = next((i for i, part in enumerate(parts) if is_pattern(part)), len(parts) - 1)
    top = Path("/".join(parts[:first]) or "/")
    rest = parts[first:]
    expression = _compiled("/".join(rest))
    depth = None if "**" in rest else len(rest)
    paths = (path for path in _walk(top, depth, set(rest)) if expression.fullmatch(path.relative_to(top).as_posix()))
    return sorted(path for _, path in zip(range(MOST_FILES), paths, strict=False))


def _walk(top: Path, depth: int | None, named: set[str]) -> Iterator[Path]:
    """The files below a folder, at most `depth` names away; links to folders are not followed."""
    left = MOST_ENTRIES
    folders = [(top, 1)]
    while folders:
        folder, level = folders.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            left -= 1
            if left < 0:
                return
            if entry.is_dir(follow_symlinks=False):
                if (depth is None or level < depth) and (entry.name not in PASSED_OVER or entry.name in named):
                    folders.append((Path(entry.path), level + 1))
            elif depth is None or level == depth:
                yield Path(entry.path)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return glob_regex("/" + pattern)
    except re.error:  # such as [z-a]
        return re.compile(re.escape(pattern))
