"""Where configuration comes from, in which order, and which file said what."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..flags import flag
from ..permission import expand
from ..trust import Subject
from .loader import Loader
from .merged import Config

PROJECT_FILES = ("opencode.jsonc", "opencode.json")
"""In load order: the later overrides."""
TOML_FILE = "config.toml"
GLOBAL_FILES = ("config.json", "opencode.json", "opencode.jsonc", TOML_FILE)


def load_config(
    directory: str | os.PathLike[str],
    worktree: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    texts: Mapping[Path, str] | None = None,
    trusted: Callable[[Subject], bool] | None = None,
) -> Config:
    """Read and merge every configuration that holds for a directory. No file is ever written.

    A project's files that are not trusted can only make rules stricter (`restrict`).

    Args:
        directory: where the session runs.
        worktree: top of the project; the directory if left out, ``/`` for a project without version control.
        overrides: configuration given in code; overrides files and ``OPENCODE_CONFIG_CONTENT``, but neither the
            administrator's files nor ``OPENCODE_PERMISSION``.
        home: the user's home; ``OPENCODE_TEST_HOME``, else the real one, if left out.
        env: environment variables; the process's own if left out.
        texts: read in place of what these files hold, to see what a change would do.
        trusted: says whether a person trusts what the project's files want; without it, they count as trusted.

    Raises:
        ConfigError: a file does not parse, can't be read, or names a file that is not there.
    """
    variables = os.environ if env is None else env

    def read(restricted: bool) -> Config:
        return _load(directory, worktree, overrides, home, variables, texts or {}, restricted)

    if trusted is None:
        return read(restricted=False)
    config = read(restricted=True)
    if config.wants is not None and trusted(config.wants):
        whole = read(restricted=False)
        if whole.wants == config.wants:  # else it was written in between
            return whole
    return config


def _load(
    directory: str | os.PathLike[str],
    worktree: str | os.PathLike[str] | None,
    overrides: Mapping[str, Any] | None,
    home: str | os.PathLike[str] | None,
    variables: Mapping[str, str],
    texts: Mapping[Path, str],
    restricted: bool,
) -> Config:
    here = Path(os.path.realpath(directory))
    top = Path(os.path.realpath(worktree)) if worktree is not None else here
    base = Path(os.path.realpath(home or variables.get("OPENCODE_TEST_HOME") or variables.get("HOME") or Path.home()))
    loader = Loader(here, top, base, variables, texts, restricted)
    xdg = None if home is not None else variables.get("XDG_CONFIG_HOME")
    global_folder = (Path(xdg) if xdg else base / ".config") / "opencode"

    for name in GLOBAL_FILES:
        loader.file(global_folder / name)
    named = variables.get("OPENCODE_CONFIG")
    if named:
        path = Path(os.path.abspath(expand(named, base)))
        if not loader.file(path):
            loader.warn(f"OPENCODE_CONFIG names {path}, which does not exist", "OPENCODE_CONFIG")
    use_project = not flag("OPENCODE_DISABLE_PROJECT_CONFIG", variables)
    project = list(upwards(here, top)) if use_project else []
    for name in PROJECT_FILES:
        for folder in reversed(project):
            loader.file(folder / name, project=True)
    own_folder = variables.get("OPENCODE_CONFIG_DIR")
    loader.config.directories = _directories(global_folder, project, base, own_folder, loader.texts)
    mine = {os.path.realpath(folder) for folder in (global_folder, base / ".opencode")}
    mine |= {os.path.realpath(own_folder)} if own_folder else set()
    for folder in loader.config.directories:
        of_project = folder.parent in project and os.path.realpath(folder) not in mine
        if folder.name == ".opencode" or (own_folder and folder == Path(os.path.abspath(own_folder))):
            for name in (*PROJECT_FILES, TOML_FILE):
                loader.file(folder / name, project=of_project)
        loader.agents(folder, project=of_project)
    content = variables.get("OPENCODE_CONFIG_CONTENT")
    if content:
        loader.text(content, "OPENCODE_CONFIG_CONTENT", here)
    if overrides:
        loader.add(overrides, "the workspace's config")
    managed = Path(variables.get("OPENCODE_TEST_MANAGED_CONFIG_DIR") or _managed_folder(variables))
    for name in PROJECT_FILES:
        loader.file(managed / name)
    return loader.finish()


def upwards(start: Path, stop: Path) -> Iterator[Path]:
    """`start` and its parents up to `stop`; `start` alone if `stop` is not above it."""
    if not start.is_relative_to(stop):
        yield start
        return
    for folder in (start, *start.parents):
        yield folder
        if folder == stop:
            return


def _directories(
    global_folder: Path, project: list[Path], home: Path, own: str | None, texts: Mapping[Path, str]
) -> list[Path]:
    found = [global_folder]
    to_be = {path.parent for path in texts}
    own_folders = [folder / ".opencode" for folder in project]
    found += [folder for folder in own_folders if folder.is_dir() or folder in to_be]
    if (home / ".opencode").is_dir():
        found.append(home / ".opencode")
    if own:
        found.append(Path(os.path.abspath(own)))
    return list(dict.fromkeys(found))


def _managed_folder(env: Mapping[str, str]) -> str:
    """The administrator's folder."""
    if sys.platform == "darwin":
        return "/Library/Application Support/opencode"
    if sys.platform == "win32":
        return os.path.join(env.get("ProgramData", r"C:\ProgramData"), "opencode")
    return "/etc/opencode"


__all__ = ["GLOBAL_FILES", "PROJECT_FILES", "TOML_FILE", "Config", "load_config", "upwards"]
