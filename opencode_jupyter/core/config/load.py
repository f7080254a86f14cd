"""Where configuration comes from, in which order, and which file said what."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..flags import flag
from ..permission import Rule, expand, from_config
from .frontmatter import markdown_agents
from .merge import deep_merge, merge_config
from .parse import display, locate, parse, read_text
from .schema import incomplete, normalise, permission_key, tools_to_permission
from .warning import ConfigWarning

Path_ = tuple[str, ...]

PROJECT_FILES = ("opencode.jsonc", "opencode.json")
"""In load order: the later overrides."""
TOML_FILE = "config.toml"
GLOBAL_FILES = ("config.json", "opencode.json", "opencode.jsonc", TOML_FILE)


@dataclass
class Config:
    """The merged configuration of one project.

    Attributes:
        data: everything, normalised (`schema.normalise`), keys in the order in which files brought them.
        sources: name and content of each file (or variable) that was read, in load order; later ones override.
        permission_rules: the user's rules; each rule's origin names its file.
        directories: folders that may hold agents, tools and skills: the global one, the project's ``.opencode`` folders
            from the nearest on, ``~/.opencode``, ``OPENCODE_CONFIG_DIR``.
        warnings: mistakes that were worked around.
        home: what ``~`` stands for.
    """

    data: dict[str, Any] = field(default_factory=dict)
    sources: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    permission_rules: list[Rule] = field(default_factory=list)
    directories: list[Path] = field(default_factory=list)
    warnings: list[ConfigWarning] = field(default_factory=list)
    home: Path = field(default_factory=Path.home)
    _origins: dict[Path_, str] = field(default_factory=dict, repr=False)

    def get(self, *keys: str, default: Any = None) -> Any:
        """The value under nested keys, or `default`."""
        value: Any = self.data
        for key in keys:
            if not isinstance(value, Mapping) or key not in value:
                return default
            value = value[key]
        return value

    def origin(self, *keys: str) -> str:
        """The file that set an entry, or "" if none did."""
        return self._origins.get(keys, "")

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON schema of a config file, for editors and other programs."""
        from .json_schema import json_schema

        return json_schema()

    def rules(self, *keys: str, origin: str = "") -> list[Rule]:
        """The rules of the ``permission`` object under nested keys; `origin` is said before the file's name."""
        rules: list[Rule] = []
        for permission, value in (self.get(*keys) or {}).items():
            entries = value if isinstance(value, Mapping) else {"*": value}
            for pattern, action in entries.items():
                leaf = (*keys, permission, pattern) if isinstance(value, Mapping) else (*keys, permission)
                said = ", ".join(part for part in (origin, self.origin(*leaf)) if part)
                rules += from_config({permission: {expand(pattern, self.home): action}}, said, home=self.home)
        return rules


def load_config(
    directory: str | os.PathLike[str],
    worktree: str | os.PathLike[str] | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    texts: Mapping[Path, str] | None = None,
) -> Config:
    """Read and merge every configuration that holds for a directory. No file is ever written.

    Args:
        directory: where the session runs.
        worktree: top of the project; the directory if left out, ``/`` for a project without version control.
        overrides: configuration given in code; overrides files and ``OPENCODE_CONFIG_CONTENT``, but neither the
            administrator's files nor ``OPENCODE_PERMISSION``.
        home: the user's home; ``OPENCODE_TEST_HOME``, else the real one, if left out.
        env: environment variables; the process's own if left out.
        texts: read in place of what these files hold, to see what a change would do.

    Raises:
        ConfigError: a file does not parse, can't be read, or names a file that is not there.
    """
    variables = os.environ if env is None else env
    here = Path(os.path.realpath(directory))
    top = Path(os.path.realpath(worktree)) if worktree is not None else here
    base = Path(os.path.realpath(home or variables.get("OPENCODE_TEST_HOME") or variables.get("HOME") or Path.home()))
    loader = _Loader(here, top, base, variables, texts or {})
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
    if use_project:
        for name in PROJECT_FILES:
            for folder in reversed(list(upwards(here, top))):
                loader.file(folder / name)
    own_folder = variables.get("OPENCODE_CONFIG_DIR")
    project = list(upwards(here, top)) if use_project else []
    loader.config.directories = _directories(global_folder, project, base, own_folder, loader.texts)
    for folder in loader.config.directories:
        if folder.name == ".opencode" or (own_folder and folder == Path(os.path.abspath(own_folder))):
            for name in (*PROJECT_FILES, TOML_FILE):
                loader.file(folder / name)
        loader.agents(folder)
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


class _Loader:
    """Merges one source after the other and remembers who set what."""

    def __init__(
        self, directory: Path, worktree: Path, home: Path, env: Mapping[str, str], texts: Mapping[Path, str]
    ) -> None:
        self.config = Config(home=home)
        self.texts = texts
        self.env = env
        self._read: dict[str, tuple[str, str]] = {}
        # Without version control the worktree is the root; names relative to that would say nothing.
        self.project = worktree if worktree != Path(worktree.anchor) else directory

    def file(self, path: Path) -> bool:
        """Add a file; False if there is none."""
        text = self.texts[path] if path in self.texts else read_text(path)
        if text is None:
            return False
        self.text(text, str(path), path.parent, display(path, self.project, self.config.home))
        return True

    def text(self, text: str, path: str, folder: Path, label: str | None = None) -> None:
        data = parse(text, path=path, folder=folder, env=self.env, home=self.config.home)
        self.add(data, label or path, path, text)

    def add(self, data: Mapping[str, Any], label: str, path: str | None = None, text: str = "") -> None:
        if not isinstance(data, Mapping):
            raise ConfigError(f"must be a dict, not {type(data).__name__}", path=label)
        toml = (path or "").endswith(".toml")

        def report(keys: Path_, message: str) -> None:
            line = locate(text, keys, toml=toml) if text else None
            self.config.warnings.append(ConfigWarning(message, path or label, line, ".".join(map(str, keys))))

        clean = normalise(data, report)
        self.config.sources.append((path or label, clean))
        self._read[label] = (path or label, text)
        self.config.data = merge_config(self.config.data, clean)
        self._remember(clean, (), label)

    def agents(self, folder: Path) -> None:
        """Add the agents written as Markdown files."""
        for path, section, name, entry in markdown_agents(folder):
            self.add({section: {name: entry}}, display(path, self.project, self.config.home), str(path))

    def warn(self, message: str, path: str) -> None:
        self.config.warnings.append(ConfigWarning(message, path))

    def _remember(self, value: Mapping[str, Any], keys: Path_, label: str) -> None:
        for key, entry in value.items():
            if isinstance(entry, Mapping):
                self._remember(entry, (*keys, key), label)
            else:
                self.config._origins[(*keys, key)] = label

    def finish(self) -> Config:
        config = self.config
        self._modes_to_agents()
        forced = self.env.get("OPENCODE_PERMISSION")
        if forced:
            value = parse(
                f'{{"permission": {forced}}}',
                path="OPENCODE_PERMISSION",
                folder=self.project,
                env=self.env,
                home=config.home,
            )
            self.add(value, "OPENCODE_PERMISSION")
        tools = config.data.get("tools")
        if tools:
            explicit = config.data.get("permission", {})
            config.data["permission"] = deep_merge(tools_to_permission(tools), explicit)
            for name in tools:
                key = permission_key(name)
                if key not in explicit:
                    config._origins[("permission", key)] = config.origin("tools", name)
        config.permission_rules = config.rules("permission")
        self._complete()
        return config

    def _complete(self) -> None:
        """Tell of MCP servers that no file describes whole; each may be spread over several."""
        for name, server in (self.config.data.get("mcp") or {}).items():
            lacks = incomplete(server)
            if lacks:
                label = next((self.config.origin("mcp", name, key) for key in server), "")
                path, text = self._read.get(label, (label, ""))
                line = locate(text, ("mcp", name), toml=path.endswith(".toml")) if text else None
                message = f"mcp.{name} has no {lacks}, so there is no such server"
                self.config.warnings.append(ConfigWarning(message, path, line, f"mcp.{name}"))

    def _modes_to_agents(self) -> None:
        modes = self.config.data.pop("mode", None)
        if not modes:
            return
        primary = {name: {**entry, "mode": "primary"} for name, entry in modes.items()}
        self.config.data["agent"] = deep_merge(self.config.data.get("agent", {}), primary)
        for keys, label in list(self.config._origins.items()):
            if keys[0] == "mode":
                self.config._origins[("agent", *keys[1:])] = label
