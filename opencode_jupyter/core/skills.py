"""Skills: instructions for special tasks, kept in ``SKILL.md`` files and found where OpenCode finds them.

See docs/opencode/core.md 18. The folders are read again when something in them has changed, so a new skill needs no
restart. Downloading skills (``skills.urls``) is not done here: `Skills.downloaded` lists what was downloaded.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from .config import ConfigWarning
from .config.files import upwards
from .config.frontmatter import split
from .errors import ConfigError, ToolError
from .fingerprint import Fingerprint
from .permission import Rule, evaluate, expand

if TYPE_CHECKING:
    from .host import ToolHost

log = logging.getLogger(__name__)

FILE = "SKILL.md"
EXTERNAL = (".claude", ".agents")
"""Folders of other programs that hold skills, under the home folder and from the working folder up to the worktree."""
HEAD_BYTES = 64 << 10
"""Bytes of a file in which its fields are looked for; the rest is read when the skill is used."""
BODY_BYTES = 16 << 20
"""A longer SKILL.md is no text for a model."""
MOST_FOLDERS = 20_000
"""Folders that are searched at most, so that ``skills.paths: ["/"]`` ends."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill.

    Attributes:
        name: its name; of equal names the last one counts.
        description: what it is for.
        location: its SKILL.md, absolute.
    """

    name: str
    description: str
    location: Path

    @property
    def directory(self) -> Path:
        """The folder that the paths in its text start from."""
        return self.location.parent

    def content(self) -> str:
        """Its text without the fields, read now.

        Raises:
            ToolError: it can't be read any more, or is far too long.
        """
        try:
            data = _read_start(self.location, BODY_BYTES + 1)
            if len(data) > BODY_BYTES:
                raise ToolError(f"{self.location} is too long for a skill (more than {BODY_BYTES >> 20} MiB)")
            return split(_text(data), path=str(self.location))[1]
        except (OSError, ConfigError) as error:
            raise ToolError(f"The skill {self.name} can't be read: {error}") from error


@dataclass(slots=True)
class _Scan:
    """The skills found in one scan of the folders, and a fingerprint of all that was looked at."""

    roots: list[Path]
    skills: dict[str, Skill] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    fingerprint: Fingerprint = field(default_factory=Fingerprint)

    def run(self) -> None:
        """Search every root."""
        for path in self._files():
            self.fingerprint.add(path)
            skill = read_skill(path, self.problems)
            if skill is None:
                continue
            if path.parent not in self.folders:
                self.folders.append(path.parent)
            before = self.skills.get(skill.name)
            if before is not None and before.location != path:
                self.duplicates.append(
                    f"the skill {skill.name} is in {before.location} and in {path}; the latter counts"
                )
            self.skills[skill.name] = skill

    def _files(self) -> Iterator[Path]:
        """Every SKILL.md, in the order of the roots, then of names.

        Links are followed; below each root a folder is entered once, so that links that lead in a circle end.
        """
        count = 0
        for root in self.roots:
            entered: set[tuple[int, int]] = set()
            pending = [root]
            while pending:
                folder = pending.pop()
                self.fingerprint.add(folder)
                try:
                    status = os.stat(folder)
                except (OSError, ValueError):
                    continue
                if (status.st_dev, status.st_ino) in entered:
                    continue
                count += 1
                if count > MOST_FOLDERS:
                    self.problems.append(f"Not every folder was searched for skills: {root} has too many folders")
                    return
                entered.add((status.st_dev, status.st_ino))
                try:
                    with os.scandir(folder) as scan:
                        entries = sorted(scan, key=lambda entry: entry.name)
                except NotADirectoryError:
                    continue
                except OSError as error:
                    self.problems.append(f"{folder} could not be searched for skills: {error.strerror or error}")
                    continue
                yield from (Path(entry.path) for entry in entries if entry.name == FILE)
                pending += [Path(entry.path) for entry in reversed(entries) if _is_folder(entry)]


class Skills:
    """The skills of one workspace; reach it with ``workspace.service(Skills)``.

    Attributes:
        downloaded: folders of skills that were fetched from ``skills.urls``.
        problems: what is wrong with files that could be skills.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._scan: _Scan | None = None
        self._reported: set[str] = set()
        self.downloaded: Sequence[Path] = ()
        self.problems: list[str] = []
        workspace.warning_lists.append(lambda: map(ConfigWarning, self.problems))

    def all(self) -> list[Skill]:
        """Every skill, in the order they were found; of equal names the one found last. Any thread may call it."""
        with self._lock:
            roots = list(dict.fromkeys(self._roots()))
            scan = self._scan
            if scan is None or scan.roots != roots or not scan.fingerprint.matches():
                scan = self._scan = _Scan(roots)
                scan.run()
                missing = [path for path in self._configured() if not path.exists()]
                self.problems = [*scan.problems, *(f"skills.paths names {path}, which is missing" for path in missing)]
                for message in scan.duplicates:
                    if self._is_new(message):
                        log.warning("%s", message)
            return list(scan.skills.values())

    async def discover(self) -> list[Skill]:
        """`all`, on a worker thread. Their folders become readable for every agent; problems are published once."""
        skills = await anyio.to_thread.run_sync(self.all)
        self._workspace.allow_skill_dirs(self.folders())
        for problem in self.problems:
            if self._is_new(problem):
                # a notebook shows the workspace's warnings itself
                log.log(logging.WARNING if self._workspace.present is None else logging.INFO, "%s", problem)
                error = {"name": "UnknownError", "data": {"message": problem}}
                self._workspace.publish("session.error", lambda error=error: {"error": error})  # type: ignore[misc]
        return skills

    def folders(self) -> list[Path]:
        """Folders that hold a SKILL.md, as they were at the last scan."""
        return list(self._scan.folders) if self._scan is not None else []

    def _is_new(self, message: str) -> bool:
        """Return whether a message was not reported before."""
        is_new = message not in self._reported
        self._reported.add(message)
        return is_new

    def _roots(self) -> Iterator[Path]:
        """The folders that may hold skills; later ones override earlier ones."""
        workspace, config = self._workspace, self._workspace.config
        if workspace.flags.external_skills:
            for base in (config.home, *upwards(workspace.directory, workspace.worktree)):
                yield from (base / name / "skills" for name in EXTERNAL)
        for folder in self._config_folders():
            yield from (folder / name for name in ("skill", "skills"))
        yield from self._configured()
        yield from self.downloaded

    def _config_folders(self) -> list[Path]:
        """The configuration's folders in their order; ``.opencode`` folders also where there is none yet."""
        workspace, config = self._workspace, self._workspace.config
        first, *others = config.directories
        project: list[Path] = []
        if workspace.flags.project_config:
            here, top = (Path(os.path.realpath(path)) for path in (workspace.directory, workspace.worktree))
            project = [folder / ".opencode" for folder in upwards(here, top)]
        return list(dict.fromkeys([first, *project, config.home / ".opencode", *others]))

    def _configured(self) -> list[Path]:
        """The folders that the configuration names."""
        directory, config = self._workspace.directory, self._workspace.config
        names = [expand(path, config.home) for path in config.get("skills", "paths", default=())]
        return [Path(os.path.normpath(os.path.join(directory, path))) for path in names]


def available(skills: Sequence[Skill], rules: Sequence[Rule]) -> list[Skill]:
    """The skills that no rule denies."""
    return [skill for skill in skills if evaluate("skill", skill.name, rules).action != "deny"]


def read_skill(path: Path, problems: list[str]) -> Skill | None:
    """The skill in a SKILL.md; None if there is none in it. What is wrong with it is added to `problems`."""
    try:
        fields, _ = split(_text(_read_start(path, HEAD_BYTES)))
    except OSError as error:
        problems.append(f"Failed to parse skill {path}: {error.strerror or error}")
        return None
    except ConfigError as error:
        problems.append(f"Failed to parse skill {path}: {error}" + (f" (line {error.line})" if error.line else ""))
        return None
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not isinstance(description, str):
        log.debug("%s is no skill: its name and description must be texts", path)
        return None
    if not name.strip() or not name.isprintable():
        problems.append(f"Failed to parse skill {path}: its name must be one line of text, not {name!r}")
        return None
    return Skill(name, description, path)


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


def _read_start(path: Path, limit: int) -> bytes:
    """At most the first `limit` bytes of a regular file."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe of that name must not block
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        return file.read(limit)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
