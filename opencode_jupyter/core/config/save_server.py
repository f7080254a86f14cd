"""Writes one MCP server into a config file, and takes it out again; the other bytes of the file stay.

As with rules (`save`), a file that has comments is never rewritten, and nothing is written before the configuration
has been read as it would be afterwards.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ToolError
from ..flags import flag
from .json_text import JsonText, NotStrictError, read
from .load import load_config
from .save import _ATTEMPTS, _OTHERS, FOLDER, NAME, SCHEMA, _lock, _replace, _stay_inside, project_root

if TYPE_CHECKING:
    from . import Config

Place = Literal["project", "user"]
_USER_FILES = ("opencode.jsonc", NAME, "config.json")
"""The user's own files, the one that is read last first."""


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The config files of one project and its user, as far as MCP servers go.

    Args:
        directory: where calls run.
        worktree: top of the project; ``/`` without version control.
        overrides: as for `load_config`.
        home: as for `load_config`.
        env: as for `load_config`.
    """

    directory: str | os.PathLike[str]
    worktree: str | os.PathLike[str] | None
    overrides: Mapping[str, Any] | None = None
    home: str | os.PathLike[str] | None = None
    env: Mapping[str, str] | None = None

    def save(self, name: str, entry: Mapping[str, Any], place: Place = "project") -> Path:
        """Put a server into the project's configuration, or the user's own, in place of one of that name.

        Args:
            name: its name.
            entry: what stands under ``mcp``; ``{env:NAME}`` in it stays as it is.
            place: whose configuration.

        Returns:
            The file that has it now.

        Raises:
            ToolError: no file can take it, or another one overrules it; nothing has changed then.
            ConfigError: the configuration can't be read as it is.
        """
        if place == "project" and flag("OPENCODE_DISABLE_PROJECT_CONFIG", self.env):
            raise ToolError("OPENCODE_DISABLE_PROJECT_CONFIG is set, so the project's configuration is not read")
        with _lock:
            path = self._target(name, entry, place)
            for _ in range(_ATTEMPTS):
                file = read(path)
                base = file or JsonText(b'{\n  "$schema": "%s"\n}\n' % SCHEMA.encode())
                changed = base.with_entry("mcp", {**_section(base, path), name: dict(entry)})
                self._check(path, JsonText(changed).text, name, entry)
                if _replace(path, file, changed):
                    return path
            raise ToolError(f"{path} keeps changing on disk; nothing was written")

    def remove(self, name: str, path: Path) -> bool:
        """Take a server out of a file; False if the file has none of that name.

        Raises:
            ToolError: the file can't be rewritten without losing something, or leads out of the project.
        """
        user = path.parent == self._load().directories[0]
        with _lock:
            if not user:
                _stay_inside(path, project_root(self.directory, self.worktree))
            for _ in range(_ATTEMPTS):
                try:
                    file = read(path)
                except NotStrictError as error:
                    raise ToolError(f"{path} {error}, which would be lost; remove {name} there yourself") from error
                if file is None or name not in _section(file, path):
                    return False
                rest = {key: value for key, value in _section(file, path).items() if key != name}
                if _replace(path, file, file.with_entry("mcp", rest)):
                    return True
            raise ToolError(f"{path} keeps changing on disk; nothing was written")

    # ------------------------------------------------------------------ which file

    def _load(self, texts: Mapping[Path, str] | None = None) -> Config:
        return load_config(
            self.directory, self.worktree, overrides=self.overrides, home=self.home, env=self.env, texts=texts
        )

    def _target(self, name: str, entry: Mapping[str, Any], place: Place) -> Path:
        """The file that can take it; of those that there are, the one that is read last."""
        refused = ""
        for path in self._user_files() if place == "user" else self._project_files():
            try:
                read(path)
            except NotStrictError as error:
                refused = refused or f"{path} {error}, which would be lost"
                continue
            if place == "project":
                _stay_inside(path, project_root(self.directory, self.worktree))
            return path
        raise ToolError(f'{refused}; add {json.dumps({name: dict(entry)})[1:-1]} to its "mcp" yourself')

    def _project_files(self) -> Iterator[Path]:
        root = project_root(self.directory, self.worktree)
        later = root / FOLDER / NAME
        here = Path(os.path.realpath(self.directory))
        folders = [folder for folder in (here, *here.parents) if folder.is_relative_to(root)]
        if not any((folder / sub / name).exists() for folder in folders for sub, name in _OTHERS):
            yield root / NAME
        yield later

    def _user_files(self) -> Iterator[Path]:
        folder = self._load().directories[0]
        there = [folder / name for name in _USER_FILES if (folder / name).exists()]
        yield from there or [folder / NAME]

    def _check(self, path: Path, text: str, name: str, entry: Mapping[str, Any]) -> None:
        """Refuse what would not come out of the whole configuration as it goes in."""
        after = self._load({path: text})
        merged = after.get("mcp", name)
        for key, value in entry.items():
            if not isinstance(merged, Mapping) or not _within(value, merged.get(key)):
                origin = after.origin("mcp", name, key) or "another file"
                raise ToolError(
                    f"{name} can't be saved in {path}: its {key} would have no effect, because {origin} overrides it"
                )


def _section(file: JsonText, path: Path) -> dict[str, Any]:
    section = file.data.get("mcp", {})
    if not isinstance(section, dict):
        raise ToolError(f'the "mcp" of {path} is not an object ({{...}}); fix that first')
    return section


def _within(value: Any, merged: Any) -> bool:
    """Return whether all that `value` says is in what the files add up to; references are filled in there."""
    if isinstance(value, Mapping):
        return isinstance(merged, Mapping) and all(_within(v, merged.get(k)) for k, v in value.items())
    return bool(value == merged) or "{env:" in str(value) or "{file:" in str(value)
