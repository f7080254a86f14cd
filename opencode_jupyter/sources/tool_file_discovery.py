"""Find the tool files of the config folders: ``{tool,tools}/*``, and the single files ``tool.*`` and ``tools.*``.

OpenCode uses the folders alone. The single file, ``.opencode/tool.js`` for example, is an older form; its tools are
called by the names of its exports (`tool_file_loader`).
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..core.config.files import display, upwards
from ..core.fingerprint import Fingerprint
from ..core.ids import clean_tool_id
from ..core.tool import Tool
from ..core.trust import Subject

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .source_code import SourceCode

PYTHON = ".py"
SUFFIXES = (PYTHON, ".ts", ".js", ".mjs", ".mts")
FOLDERS = ("tool", "tools")
NOT_TRUSTED = "not trusted yet; run %tools trust"
"""Why a file or a plugin has no tools."""
KIND = "tool file"
"""`Subject.kind` of these files."""
MAX_SHOWN = 200_000
"""Characters of a file's text in a request for trust."""
_DECLARATIONS = (".d.ts", ".d.mts")

FileState = Literal["new", "untrusted", "missing", "loaded", "failed"]
"""``missing``: the program that would run it is not on this machine."""


class ToolFileProblem(NamedTuple):
    """Something that is wrong with a tool file."""

    path: Path
    line: int | None
    """From 1; None if it is about the whole file."""
    message: str

    def __str__(self) -> str:
        position = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{position}: {self.message}"


@dataclass(slots=True, eq=False, weakref_slot=True)
class ToolFile:
    """A file that may hold tools, and its state."""

    path: Path
    namespace: str
    """The id of its default export, and what the ids of the others begin with; "" for a single file."""
    own: bool
    """It is in the user's own config folder: it runs without a person's trust."""
    label: str
    """The file as a person reads it."""
    fingerprint: Fingerprint
    """Of the file, and of what it imports from beside it once it was read."""
    state: FileState = "new"
    code: SourceCode | None = None
    """The code that was read; None before that."""
    scanned_ids: list[str] = field(default_factory=list)
    """Ids that it seems to export (`tool_file_loader`), once it was read."""
    tools: list[Tool] = field(default_factory=list)
    problems: list[ToolFileProblem] = field(default_factory=list)
    module: str = ""
    """The name of its module, while it is loaded (Python)."""
    failure: str = ""
    """Why it was not loaded."""
    refused: bool = False
    """A person denied trust in this content."""
    is_asking: bool = False
    _subject: Subject | None = None

    @property
    def python(self) -> bool:
        """True if it is a Python file."""
        return self.path.suffix == PYTHON

    @property
    def ids(self) -> list[str]:
        """The ids it exports, or seems to export; a pattern position its text does not show any."""
        if self.state == "loaded":
            return [tool.id for tool in self.tools]
        return self.scanned_ids or ([self.namespace, f"{self.namespace}_*"] if self.namespace else [])

    def seems_to_export(self, id: str) -> bool:
        """Return whether its text shows a tool of that id, whatever its case."""
        return any(id.lower() == scanned.lower() for scanned in self.scanned_ids)

    @property
    def subject(self) -> Subject:
        """The subject that a person would trust; the file must have been read."""
        assert self.code is not None
        if self._subject is None:
            shown = {
                "filepath": str(self.path),
                "content": self.code.text[:MAX_SHOWN],
                "ids": self.ids,
                "label": self.label,
                "size": sum(map(len, self.code.files.values())),
            }
            self._subject = Subject(KIND, str(self.path), self.code.digest, shown)
        return self._subject


def config_folders(workspace: ToolHost) -> list[tuple[Path, bool]]:
    """The config folders in their order, each with whether it is the user's own; also those that do not exist.

    The folder that the variable ``OPENCODE_CONFIG_DIR`` names is the user's own unless it lies in the project.
    """
    config = workspace.config
    top = Path(os.path.realpath(workspace.worktree))
    directory = Path(os.path.realpath(workspace.directory))
    project: list[Path] = []
    if workspace.flags.project_config:
        project = [folder / ".opencode" for folder in upwards(directory, top)]
    first, *others = config.directories
    own = {first, config.home / ".opencode"}
    base = directory if top == Path(top.anchor) else top
    extra = [folder for folder in others if folder not in own and folder not in project]
    own.update(folder for folder in extra if not Path(os.path.realpath(folder)).is_relative_to(base))
    ordered = dict.fromkeys([first, *project, config.home / ".opencode", *others])
    return [(folder, folder in own) for folder in ordered]


def find_tool_files(workspace: ToolHost, folder: Path, own: bool, folders: Fingerprint) -> list[ToolFile]:
    """The tool files of one config folder, by name.

    Python files whose names begin with ``_`` are helpers that others import.

    Args:
        workspace: whose config folder.
        folder: the config folder.
        own: see `ToolFile`.
        folders: the folders that were listed are added to it.
    """
    if folders.add(folder) is None:
        return []
    single = [name + suffix for name in FOLDERS for suffix in SUFFIXES]
    namespaces = dict.fromkeys((name for name in single if os.path.isfile(folder / name)), "")
    for name in FOLDERS:
        if folders.add(folder / name) is None:
            continue
        with contextlib.suppress(OSError), os.scandir(folder / name) as entries:
            for entry in entries:
                stem, suffix = os.path.splitext(entry.name)
                is_helper = suffix == PYTHON and stem.startswith("_")
                if suffix not in SUFFIXES or entry.name.endswith(_DECLARATIONS) or is_helper or not entry.is_file():
                    continue
                namespaces[f"{name}/{entry.name}"] = clean_tool_id(stem)
    labels: dict[Path, str] = {}
    """Of the folders: a label takes a resolved link, and hundreds of files may share a folder."""
    files = []
    for name in sorted(namespaces):
        path = folder / name
        if path.parent not in labels:
            labels[path.parent] = label_of(path, workspace).removesuffix(path.name)
        files.append(ToolFile(path, namespaces[name], own, labels[path.parent] + path.name, Fingerprint([path])))
    return files


def label_of(path: Path, workspace: ToolHost) -> str:
    """A file as a person reads it: relative to the project, else with ``~``, else absolute."""
    top = workspace.worktree
    project = workspace.directory if top == Path(top.anchor) else top
    return display(path, Path(os.path.realpath(project)), workspace.config.home)
