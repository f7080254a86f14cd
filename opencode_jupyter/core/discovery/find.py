"""Where tool files are: ``{tool,tools}/*`` and the single files ``tool.*`` and ``tools.*`` of each config folder.

OpenCode takes the folders alone. An older form of it, which the specification keeps, has one file
``.opencode/tool.js`` or ``tools.js``; such a file has no name of its own to give to its tools: see `names`.
"""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, NamedTuple

from ..config.load import upwards
from .names import clean

if TYPE_CHECKING:
    from ..workspace import Workspace

PYTHON = ".py"
SUFFIXES = (PYTHON, ".ts", ".js", ".mjs", ".mts")
_DECLARATIONS = (".d.ts", ".d.mts")
FOLDERS = ("tool", "tools")

Stamp = tuple[int, int, int]
"""Time of the last change in ns, size in bytes, inode: another stamp means other content."""


class ToolFile(NamedTuple):
    """One file that may hold tools."""

    path: Path
    namespace: str
    """The id of its default export, and what the ids of the others begin with; "" for a single file."""
    own: bool
    """It stands in the user's own config folder: nobody has to be asked before it runs."""
    stamp: Stamp

    @property
    def python(self) -> bool:
        """True if it is a Python file."""
        return self.path.suffix == PYTHON


def stamp(path: str | os.PathLike[str]) -> Stamp | None:
    """What tells this state of a file or folder from another; None if it is not there. Links are followed."""
    try:
        return _stamp(os.stat(path))
    except (OSError, ValueError):
        return None


def config_folders(workspace: Workspace) -> list[tuple[Path, bool]]:
    """The config folders in their order, each with whether it is the user's own; also such as are not there yet.

    What the variable ``OPENCODE_CONFIG_DIR`` names is the user's own unless it lies in the project.
    """
    config = workspace.config
    top = Path(os.path.realpath(workspace.worktree))
    here = Path(os.path.realpath(workspace.directory))
    project: list[Path] = []
    if workspace.flags.project_config:
        project = [folder / ".opencode" for folder in upwards(here, top)]
    first, *others = config.directories
    own = {first, config.home / ".opencode"}
    base = here if top == Path(top.anchor) else top
    named = [folder for folder in others if folder not in own and folder not in project]
    own.update(folder for folder in named if not Path(os.path.realpath(folder)).is_relative_to(base))
    ordered = dict.fromkeys([first, *project, config.home / ".opencode", *others])
    return [(folder, folder in own) for folder in ordered]


def find(folder: Path, own: bool, watched: dict[Path, Stamp | None]) -> list[ToolFile]:
    """The tool files of one config folder, by name.

    Python files whose names begin with ``_`` are what others import, never tool files.

    Args:
        folder: the config folder.
        own: see `ToolFile`.
        watched: takes the stamps of the folders that were read: while they stay, no file came or went.
    """
    watched[folder] = stamp(folder)
    if watched[folder] is None:
        return []
    found: list[tuple[str, ToolFile]] = []
    names = [*(name + suffix for name in FOLDERS for suffix in SUFFIXES)]
    for relative in names:
        made = _tool_file(folder / relative, "", own)
        if made is not None:
            found.append((relative, made))
    for name in FOLDERS:
        inside = folder / name
        watched[inside] = stamp(inside)
        if watched[inside] is None:
            continue
        try:
            entries = os.listdir(inside)
        except OSError:
            continue
        for entry in entries:
            stem, suffix = os.path.splitext(entry)
            if suffix not in SUFFIXES or entry.endswith(_DECLARATIONS) or (suffix == PYTHON and stem.startswith("_")):
                continue
            made = _tool_file(inside / entry, clean(stem), own)
            if made is not None:
                found.append((f"{name}/{entry}", made))
    return [made for _, made in sorted(found, key=lambda pair: pair[0])]


def _tool_file(path: Path, namespace: str, own: bool) -> ToolFile | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return ToolFile(path, namespace, own, _stamp(found)) if S_ISREG(found.st_mode) else None


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino
