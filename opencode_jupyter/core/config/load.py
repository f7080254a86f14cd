"""Find, read and merge a project's configuration files, and remember which one set each entry."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..fingerprint import stamp
from ..flags import flag
from ..permission import expand, permission_key
from ..trust import Subject
from .config import UNKNOWN, UNTRUSTED, Config, ConfigWarning, Keys, Origin, deep_merge, merge_config
from .files import AGENT_FOLDERS, display, read_text, upwards
from .validation import missing_field, normalise, tools_to_permission

if TYPE_CHECKING:
    from .parse import Parsed
    from .restrictions import RestrictedSource

PROJECT_FILES = ("opencode.jsonc", "opencode.json")
"""In load order: the later overrides."""
TOML_FILE = "config.toml"
CONFIG_FOLDER = ".opencode"
"""Of a project, and in the home folder."""
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
        trusted: returns whether a person trusts the project's files; without it, they count as trusted.

    Raises:
        ConfigError: a file does not parse, can't be read, or names a file that is not there.
    """
    variables = os.environ if env is None else env

    def read(restricted: bool) -> Config:
        return _load(directory, worktree, overrides, home, variables, texts or {}, restricted)

    if trusted is None:
        return read(restricted=False)
    config = read(restricted=True)
    if config.trust_subject is not None and trusted(config.trust_subject):
        complete = read(restricted=False)
        if complete.trust_subject == config.trust_subject:  # else a file was written in between
            return complete
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
    xdg = None if home is not None else variables.get("XDG_CONFIG_HOME")
    global_folder = (Path(xdg) if xdg else base / ".config") / "opencode"
    user_folders = [Path(os.path.realpath(path)) for path in (global_folder, base / CONFIG_FOLDER)]
    loader = ConfigLoader(here, top, base, variables, texts, restricted, user_folders)

    for name in GLOBAL_FILES:
        loader.file(global_folder / name, Owner.USER)
    extra_file = variables.get("OPENCODE_CONFIG")
    if extra_file:
        path = Path(os.path.abspath(expand(extra_file, base)))
        if not loader.file(path):
            loader.warn(f"OPENCODE_CONFIG names {path}, which does not exist", "OPENCODE_CONFIG")
    use_project = not flag("OPENCODE_DISABLE_PROJECT_CONFIG", variables)
    project = list(upwards(here, top)) if use_project else []
    for name in PROJECT_FILES:
        for folder in reversed(project):
            loader.file(folder / name, Owner.PROJECT)
    extra_folder = variables.get("OPENCODE_CONFIG_DIR")
    loader.config.directories = _directories(global_folder, project, base, extra_folder, loader.texts)
    not_of_project = [*user_folders, *([Path(os.path.realpath(extra_folder))] if extra_folder else [])]
    for folder in loader.config.directories:
        owner = Owner.USER if folder == base / CONFIG_FOLDER else Owner.BY_LOCATION
        if folder.parent in project and Path(os.path.realpath(folder)) not in not_of_project:
            owner = Owner.PROJECT
        if folder.name == CONFIG_FOLDER or (extra_folder and folder == Path(os.path.abspath(extra_folder))):
            for name in (*PROJECT_FILES, TOML_FILE):
                loader.file(folder / name, owner)
        loader.agents(folder, owner)
    content = variables.get("OPENCODE_CONFIG_CONTENT")
    if content:
        loader.text(content, "OPENCODE_CONFIG_CONTENT", here)
    if overrides:
        loader.add(overrides, "the workspace's config")
    managed = Path(variables.get("OPENCODE_TEST_MANAGED_CONFIG_DIR") or _managed_folder(variables))
    for name in PROJECT_FILES:
        loader.file(managed / name, Owner.USER)
    return loader.finish()


def _directories(
    global_folder: Path, project: list[Path], home: Path, extra: str | None, texts: Mapping[Path, str]
) -> list[Path]:
    directories = [global_folder]
    folders_of_texts = {path.parent for path in texts}
    project_folders = [folder / CONFIG_FOLDER for folder in project]
    directories += [folder for folder in project_folders if folder.is_dir() or folder in folders_of_texts]
    if (home / CONFIG_FOLDER).is_dir():
        directories.append(home / CONFIG_FOLDER)
    if extra:
        directories.append(Path(os.path.abspath(extra)))
    return list(dict.fromkeys(directories))


def _managed_folder(env: Mapping[str, str]) -> str:
    """The administrator's folder."""
    if sys.platform == "darwin":
        return "/Library/Application Support/opencode"
    if sys.platform == "win32":
        return os.path.join(env.get("ProgramData", r"C:\ProgramData"), "opencode")
    return "/etc/opencode"


MOST_WARNINGS = 50
"""Of one file; a file that is no configuration at all has thousands."""


class Owner(Enum):
    """Whose file it is."""

    PROJECT = auto()
    """It came with the project."""
    USER = auto()
    """The user's own or the administrator's, wherever it lies."""
    BY_LOCATION = auto()
    """A file that the user names: the project's if it lies in the project, but used as it is."""


class ConfigLoader:
    """Collects the sources of one configuration.

    Args:
        directory: where the session runs.
        worktree: top of the project; the root without version control.
        home: what ``~`` stands for.
        env: environment variables.
        texts: read in place of what these files hold.
        restricted: use of the project's files only what makes rules stricter.
        user_folders: folders whose files are the user's, even where the project is the home folder.
    """

    def __init__(
        self,
        directory: Path,
        worktree: Path,
        home: Path,
        env: Mapping[str, str],
        texts: Mapping[Path, str],
        restricted: bool,
        user_folders: list[Path],
    ) -> None:
        self.config = Config(home=home)
        self.texts = texts
        self.restricted = restricted
        self.project_sources: list[tuple[str, RestrictedSource]] = []
        """The project's files, by name."""
        self._agents: set[str] = set()
        """Agents of other sources."""
        self.env = env
        self.user_folders = user_folders
        self._read: dict[str, tuple[str, Parsed]] = {}
        # Without version control the worktree is the root; names relative to that would be absolute.
        self.project = worktree if worktree != Path(worktree.anchor) else directory
        self._above = frozenset(upwards(directory, worktree))
        """The folders whose files are the project's too."""

    def file(self, path: Path, owner: Owner = Owner.BY_LOCATION) -> bool:
        """Add a file; returns False if there is none."""
        if path in self.texts:
            text: str | None = self.texts[path]
        else:
            self.config.stamps[path] = stamp(path)
            text = read_text(path) if self.config.stamps[path] else None
        if text is None:
            return False
        self.text(text, str(path), path.parent, display(path, self.project, self.config.home), owner)
        return True

    def text(
        self, text: str, path: str, folder: Path, label: str | None = None, owner: Owner = Owner.BY_LOCATION
    ) -> None:
        """Add what a file or a variable holds."""
        from .parse import Parsed, parse  # here, as below: many have no config files

        parsed = parse(text, path=path, folder=folder, env=self.env, home=self.config.home)
        if not isinstance(parsed.data, dict):
            kind = type(parsed.data).__name__
            raise ConfigError(f"must be an object ({{...}}), not {kind}", path=path, line=1)
        self.config.reference_values |= parsed.filled.values.keys()
        if owner is Owner.PROJECT:
            written = parsed
            if parsed.filled.values:
                try:
                    written = parse(
                        text, path=path, folder=folder, env=self.env, home=self.config.home, within=self.project
                    )
                except ConfigError:  # a reference is where only its value is valid
                    written = Parsed(dict.fromkeys(parsed.data, parsed.filled.written), parsed.filled)
            self.add(parsed.data, label or path, path, parsed, written.data)
            return
        self.add(parsed.data, label or path, path, parsed, is_users=owner is Owner.USER)

    def add(
        self,
        data: Mapping[str, Any],
        label: str,
        path: str | None = None,
        text: Parsed | None = None,
        written: Any = None,
        is_users: bool = False,
    ) -> None:
        """Add a dict.

        Args:
            data: of any form; what does not fit is reported and left out.
            label: the source's name for a person.
            path: its whole name; the label if left out.
            text: the text that it comes from, if any.
            written: of a file of the project: the data with the references that reach out of it as they are written.
            is_users: it is the user's own file, wherever it lies.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(f"must be a dict, not {type(data).__name__}", path=label)
        where = path or label
        warnings = _Warnings(where, text)
        for keys, first, last in text.repeated_keys() if text else ():
            message = f"{'.'.join(keys)} is repeated here (first on line {first}); only the last one takes effect"
            warnings.add(keys, message, last)
        try:
            clean = normalise(data, warnings.add, text.show if text else None)
        except ConfigError as error:
            raise ConfigError(str(error), path=where) from None
        self.config.warnings += warnings.all()
        source = clean
        if written is not None:
            origin = Origin(label, where, project=True)
            clean, source = self._of_project(origin, clean, written)
        else:
            self._agents |= {*clean.get("agent", ()), *clean.get("mode", ())}
            file = path if path and os.path.isabs(path) else ""
            of_project = bool(file) and not is_users and self._is_in_project(file)
            origin = Origin(label, file, of_project, later=bool(self.project_sources))
        if origin.project:
            self.config.project_sources.add(where)
        self.config.sources.append((where, source))
        if text:
            self._read[label] = (where, text)
        self.config.data = merge_config(self.config.data, clean)
        self._set_origins(clean, (), origin)

    def _is_in_project(self, file: str) -> bool:
        """Return whether a file that ``OPENCODE_CONFIG`` names, or its target, is in the project."""
        users = [folder for folder in self.user_folders if not self.project.is_relative_to(folder)]
        for path in (Path(os.path.abspath(file)), Path(os.path.realpath(file))):
            folder = path.parent.parent if path.parent.name == CONFIG_FOLDER else path.parent
            if any(map(path.is_relative_to, users)):
                continue
            if path.is_relative_to(self.project) or folder in self._above:
                return True
        return False

    def _of_project(self, origin: Origin, clean: dict[str, Any], written: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a file of the project adds, without and with its rules, which are kept apart."""
        from .restrictions import restrict

        label, part = origin.label, restrict(written, clean, self._agents)
        self.project_sources.append((label, part))
        if not self.restricted:
            return clean, clean
        self.config.withheld += [(label, keys, value) for keys, value in part.withheld]
        self.config._restrictions += [(keys, rules, origin) for keys, rules in part.rules.items()]
        for keys, entries in part.rules.items():
            self._set_origins(entries, keys, origin, keep=True)
        rules = part.rules.get(("permission",))
        return part.data, {**part.data, "permission": rules} if rules else part.data

    def agents(self, folder: Path, owner: Owner) -> None:
        """Add the agents written as Markdown files.

        Raises:
            ConfigError: a file is broken; without it the rules it sets would get lost.
        """
        stamps = {path: stamp(path) for path in (folder / name for name in AGENT_FOLDERS)}
        self.config.stamps |= stamps
        if not any(stamps.values()):
            return
        from .frontmatter import markdown_agents

        for path, section, name, entry in markdown_agents(folder):
            self.config.stamps[path] = stamp(path)
            data = {section: {name: entry}}
            label = display(path, self.project, self.config.home)
            self.add(data, label, str(path), written=data if owner is Owner.PROJECT else None)

    def warn(self, message: str, path: str) -> None:
        """Report a problem that is no entry's."""
        self.config.warnings.append(ConfigWarning(message, path))

    def _set_origins(self, value: Mapping[str, Any], keys: Keys, origin: Origin, *, keep: bool = False) -> None:
        """Note the source of each entry; with `keep` only of entries that have none."""
        for key, entry in value.items():
            if isinstance(entry, Mapping):
                self._set_origins(entry, (*keys, key), origin, keep=keep)
            elif not keep or (*keys, key) not in self.config._origins:
                self.config._origins[(*keys, key)] = origin

    def finish(self) -> Config:
        """The configuration, once every source was added."""
        config = self.config
        self._modes_to_agents()
        forced = self.env.get("OPENCODE_PERMISSION")
        if forced:
            from .parse import parse

            name = "OPENCODE_PERMISSION"
            parsed = parse(forced, path=name, folder=self.project, env=self.env, home=config.home)
            self.add({"permission": parsed.data}, name, text=parsed)
        tools = config.data.get("tools")
        if tools:
            explicit = config.data.get("permission", {})
            config.data["permission"] = deep_merge(tools_to_permission(tools), explicit)
            for name in tools:
                key = permission_key(name)
                if key not in explicit:
                    config._origins[("permission", key)] = config._origins.get(("tools", name), UNKNOWN)
        if self.project_sources:
            from .restrictions import subject, summary

            config.trust_subject = subject(self.project, config.home, self.project_sources)
            if config.withheld:
                message = (
                    f"Not in effect until you trust this project: {summary(keys for _, keys, _ in config.withheld)}"
                    ". See it with %tools trust; trust it with %tools trust --project (in Python: ws.trust_project())"
                )
                config.warnings.append(ConfigWarning(message, str(self.project), key=UNTRUSTED))
        config.permission_rules = config.rules("permission")
        self._report_incomplete_servers()
        return config

    def _report_incomplete_servers(self) -> None:
        """Report MCP servers that lack a field; each may be spread over several files."""
        for name, server in (self.config.data.get("mcp") or {}).items():
            reported = any(warning.key.startswith(f"mcp.{name}.") for warning in self.config.warnings)
            missing = None if reported else missing_field(server)
            if missing:
                label = next((self.config.origin("mcp", name, key) for key in server), "")
                path, text = self._read.get(label, (label, None))
                line = text.line(("mcp", name)) if text else None
                message = f"mcp.{name} has no {missing}, so this server is ignored"
                self.config.warnings.append(ConfigWarning(message, path, line, f"mcp.{name}"))

    def _modes_to_agents(self) -> None:
        modes = self.config.data.pop("mode", None)
        if not modes:
            return
        primary = {name: {**entry, "mode": "primary"} for name, entry in modes.items()}
        self.config.data["agent"] = deep_merge(self.config.data.get("agent", {}), primary)
        for keys, origin in list(self.config._origins.items()):
            if keys[0] == "mode":
                self.config._origins[("agent", *keys[1:])] = origin


class _Warnings:
    """The problems of one source."""

    def __init__(self, path: str, parsed: Parsed | None) -> None:
        self._path, self._parsed = path, parsed
        self._warnings: list[ConfigWarning] = []
        self._more = 0

    def add(self, keys: Keys, message: str, line: int | None = None) -> None:
        if len(self._warnings) >= MOST_WARNINGS:
            self._more += 1
            return
        key = ".".join(map(str, keys))
        if self._parsed is not None:
            line = line or self._parsed.line(keys)
            key, message = (str(self._parsed.filled.hide(text)) for text in (key, message))
        self._warnings.append(ConfigWarning(message, self._path, line, key))

    def all(self) -> list[ConfigWarning]:
        more = f"{self._more} more mistakes; is this a config file of OpenCode's?"
        return [*self._warnings, *([ConfigWarning(more, self._path)] if self._more else [])]


def amended(config: Config, data: Mapping[str, Any], label: str) -> Config:
    """A configuration with other data and the rules of these; `config` stays as it is.

    Args:
        config: before the change.
        data: all of it, after the change; what does not fit is reported and left out, as in a file.
        label: who changed it: the origin of the rules and entries that are other than before.
    """
    warnings = list(config.warnings)

    def report(keys: Keys, message: str) -> None:
        warnings.append(ConfigWarning(message, label, None, ".".join(map(str, keys))))

    before = config.data
    changed = {key: value for key, value in data.items() if key not in before or before[key] != value}
    clean = {**before, **normalise(changed, report)}
    clean = copy.deepcopy({key: clean[key] for key in data if key in clean})
    switched = {k: v for k, v in (clean.get("tools") or {}).items() if (before.get("tools") or {}).get(k) != v}
    if switched:
        clean["permission"] = deep_merge(clean.get("permission") or {}, tools_to_permission(switched))
    origins = dict(config._origins)
    for keys in _changed_leaves(before, clean, ()):
        origins[keys] = Origin(label)
    amended_config = replace(config, data=clean, warnings=warnings, _origins=origins)
    amended_config.permission_rules = amended_config.rules("permission")
    return amended_config


def _changed_leaves(before: Any, after: Mapping[str, Any], keys: Keys) -> list[Keys]:
    """The leaves of `after` that `before` does not have."""
    leaves: list[Keys] = []
    for key, value in after.items():
        old = before.get(key) if isinstance(before, Mapping) else None
        if isinstance(value, Mapping):
            leaves += _changed_leaves(old, value, (*keys, key))
        elif old != value:
            leaves.append((*keys, key))
    return leaves
