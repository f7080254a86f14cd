"""Skills: instructions for special tasks, kept in ``SKILL.md`` files and found where OpenCode finds them.

See docs/opencode/core.md 18. The folders are read again when something in them has changed, so a new skill needs no
restart. Downloading skills (``skills.urls``) is not done here: what was downloaded is given in `Skills.downloaded`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from .config.files import upwards
from .permission import Rule, evaluate, expand
from .skill_files import Skill, Stamp, read_skill, stamp, walk

if TYPE_CHECKING:
    from .host import ToolHost

log = logging.getLogger(__name__)

EXTERNAL = (".claude", ".agents")
"""Folders of other programs that hold skills, under the home folder and from the working folder up to the worktree."""
SETTLED = 2.0
"""Seconds. A change of a file may not show in its time stamp if it comes this soon after another: so coarse are some
file systems' clocks. What changed this shortly before a scan is looked at again."""


@dataclass(slots=True)
class _Scan:
    """The skills found in one scan of the folders."""

    places: list[Path]
    skills: dict[str, Skill] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)
    stamps: dict[Path, Stamp | None] = field(default_factory=dict)
    settled: bool = True


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
        self._told: set[str] = set()
        self.downloaded: Sequence[Path] = ()
        self.problems: list[str] = []

    def all(self) -> list[Skill]:
        """Every skill, in the order they were found; of equal names the one found last. Any thread may call it."""
        with self._lock:
            places = list(self._places())
            if self._scan is None or self._changed(self._scan, places):
                self._scan = _look(places)
                gone = [path for path in self._named() if self._scan.stamps.get(path) is None]
                self._scan.problems += [f"skills.paths names {path}, which is missing" for path in gone]
                self.problems = self._scan.problems
                for double in self._scan.doubles:
                    if double not in self._told:
                        self._told.add(double)
                        log.warning("%s", double)
            return list(self._scan.skills.values())

    async def found(self) -> list[Skill]:
        """`all`, on a worker thread. Their folders become readable for every agent; problems are published once."""
        skills = await anyio.to_thread.run_sync(self.all)
        self._workspace.allow_skill_dirs(self.folders())
        for problem in self.problems:
            if problem not in self._told:
                self._told.add(problem)
                log.warning("%s", problem)
                error = {"name": "UnknownError", "data": {"message": problem}}
                self._workspace.publish("session.error", lambda error=error: {"error": error})  # type: ignore[misc]
        return skills

    def folders(self) -> list[Path]:
        """Folders that hold a SKILL.md, as they were at the last look."""
        return list(self._scan.folders) if self._scan is not None else []

    def _places(self) -> Iterator[Path]:
        """Where skills may be; later ones override earlier ones."""
        workspace, config = self._workspace, self._workspace.config
        if workspace.flags.external_skills:
            for base in (config.home, *upwards(workspace.directory, workspace.worktree)):
                yield from (base / name / "skills" for name in EXTERNAL)
        for folder in self._config_folders():
            yield from (folder / name for name in ("skill", "skills"))
        yield from self._named()
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

    def _named(self) -> list[Path]:
        """The folders that the configuration names."""
        directory, config = self._workspace.directory, self._workspace.config
        named = [expand(path, config.home) for path in config.get("skills", "paths", default=())]
        return [Path(os.path.normpath(os.path.join(directory, path))) for path in named]

    def _changed(self, scan: _Scan, places: list[Path]) -> bool:
        return places != scan.places or not scan.settled or any(stamp(path) != old for path, old in scan.stamps.items())


def available(skills: Sequence[Skill], rules: Sequence[Rule]) -> list[Skill]:
    """The skills that no rule denies."""
    return [skill for skill in skills if evaluate("skill", skill.name, rules).action != "deny"]


def _look(places: list[Path]) -> _Scan:
    scan = _Scan(places)
    for path in walk(dict.fromkeys(places), scan.stamps, scan.problems):
        skill = read_skill(path, scan.problems)
        if skill is None:
            continue
        scan.folders.append(path.parent)
        before = scan.skills.get(skill.name)
        if before is not None and before.location != path:
            scan.doubles.append(f"the skill {skill.name} is in {before.location} and in {path}; the latter counts")
        scan.skills[skill.name] = skill
    scan.folders = list(dict.fromkeys(scan.folders))
    scan.settled = not any(one is not None and one.is_fresh(SETTLED) for one in scan.stamps.values())
    return scan
