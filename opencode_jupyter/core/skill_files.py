"""The files that skills are made of: finding them below a folder, reading them, noticing that they changed."""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .config.frontmatter import split
from .errors import ConfigError, ToolError

log = logging.getLogger(__name__)

FILE = "SKILL.md"
HEAD_BYTES = 64 << 10
"""As far into a file its fields are looked for; the rest is read when the skill is used."""
BODY_BYTES = 16 << 20
"""A SKILL.md beyond this is no text that a model could be given."""
MOST_FOLDERS = 20_000
"""Folders that are looked through at most, so that ``skills.paths: ["/"]`` ends."""


class Stamp(NamedTuple):
    """What changes when a file or folder changes."""

    device: int
    inode: int
    modified: int
    size: int

    def is_fresh(self, seconds: float) -> bool:
        """Return whether it changed less than `seconds` ago (or in the future, by another machine's clock)."""
        return self.modified > time.time_ns() - seconds * 1e9


def stamp(path: str | os.PathLike[str]) -> Stamp | None:
    """A file's or folder's stamp, links followed; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return Stamp(found.st_dev, found.st_ino, found.st_mtime_ns, 0 if stat.S_ISDIR(found.st_mode) else found.st_size)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill.

    Attributes:
        name: what it is called by; of equal names the last one counts.
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
            data = _beginning(self.location, BODY_BYTES + 1)
            if len(data) > BODY_BYTES:
                raise ToolError(f"{self.location} is too long for a skill (more than {BODY_BYTES >> 20} MiB)")
            return split(_text(data), path=str(self.location))[1]
        except (OSError, ConfigError) as error:
            raise ToolError(f"The skill {self.name} can't be read: {error}") from error


def walk(places: Iterable[Path], stamps: dict[Path, Stamp | None], problems: list[str]) -> Iterator[Path]:
    """Every SKILL.md below some folders, in the order of the folders, then of names.

    Links are followed; below each place a folder is entered once, so that links that lead in a circle end.

    Args:
        places: where to begin; one that is not there is left out.
        stamps: filled in with what tells whether a later look would find something else.
        problems: added to.
    """
    count = 0
    for place in places:
        entered: set[tuple[int, int]] = set()
        waiting = [place]
        while waiting:
            folder = waiting.pop()
            found = stamps[folder] = stamp(folder)
            if found is None or found[:2] in entered:
                continue
            count += 1
            if count > MOST_FOLDERS:
                problems.append(f"Not every folder was looked through for skills: {place} has too many folders")
                return
            entered.add(found[:2])
            try:
                with os.scandir(folder) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except NotADirectoryError:
                continue
            except OSError as error:
                problems.append(f"{folder} could not be looked through for skills: {error.strerror or error}")
                continue
            for entry in entries:
                if entry.name == FILE:
                    stamps[Path(entry.path)] = stamp(entry.path)
                    yield Path(entry.path)
            waiting += [Path(entry.path) for entry in reversed(entries) if _is_folder(entry)]


def read_skill(path: Path, problems: list[str]) -> Skill | None:
    """The skill in a SKILL.md; None if there is none in it. What is wrong with it is added to `problems`."""
    try:
        fields, _ = split(_text(_beginning(path, HEAD_BYTES)), path=str(path))
    except (OSError, ConfigError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        problems.append(f"Failed to parse skill {path}: {reason}")
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


def _beginning(path: Path, limit: int) -> bytes:
    """At most the first `limit` bytes of a regular file."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe of that name must not hold us up
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is not a regular file")
        return file.read(limit)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
