"""Puts one source of configuration over the other, and remembers who set what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .frontmatter import AGENT_FOLDERS, markdown_agents
from .merge import deep_merge, merge_config
from .merged import Config
from .parse import Parsed, display, parsed
from .reading import read_text, stamp
from .schema import incomplete, normalise, permission_key, tools_to_permission
from .warning import ConfigWarning, Keys

MOST_WARNINGS = 50
"""Of one file. Nobody reads more, and a file that is something else altogether has thousands."""


class Loader:
    """One configuration in the making."""

    def __init__(
        self, directory: Path, worktree: Path, home: Path, env: Mapping[str, str], texts: Mapping[Path, str]
    ) -> None:
        self.config = Config(home=home)
        self.texts = texts
        self.env = env
        self._read: dict[str, tuple[str, Parsed]] = {}
        # Without version control the worktree is the root; names relative to that would say nothing.
        self.project = worktree if worktree != Path(worktree.anchor) else directory

    def file(self, path: Path) -> bool:
        """Add a file; False if there is none."""
        if path in self.texts:
            text: str | None = self.texts[path]
        else:
            self.config.stamps[path] = stamp(path)
            text = read_text(path) if self.config.stamps[path] else None
        if text is None:
            return False
        self.text(text, str(path), path.parent, display(path, self.project, self.config.home))
        return True

    def text(self, text: str, path: str, folder: Path, label: str | None = None) -> None:
        """Add what a file or a variable holds."""
        found = parsed(text, path=path, folder=folder, env=self.env, home=self.config.home)
        if not isinstance(found.data, dict):
            kind = type(found.data).__name__
            raise ConfigError(f"must be an object ({{...}}), not {kind}", path=path, line=1)
        self.add(found.data, label or path, path, found)

    def add(self, data: Mapping[str, Any], label: str, path: str | None = None, text: Parsed | None = None) -> None:
        """Add a dict.

        Args:
            data: of any form; what does not fit is told and left out.
            label: the source's name for a person.
            path: its whole name; the label if left out.
            text: the text that it stands in, if it does.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(f"must be a dict, not {type(data).__name__}", path=label)
        where = path or label
        warnings = _Warnings(where, text)
        for keys, first, last in text.repeated if text else ():
            said = f"{'.'.join(keys)} is repeated here (first on line {first}); only the last one takes effect"
            warnings.add(keys, said, last)
        try:
            clean = normalise(data, warnings.add, text.show if text else None)
        except ConfigError as error:
            raise ConfigError(str(error), path=where) from None
        self.config.warnings += warnings.all()
        self.config.sources.append((where, clean))
        if text:
            self._read[label] = (where, text)
        self.config.data = merge_config(self.config.data, clean)
        self._remember(clean, (), label)

    def agents(self, folder: Path) -> None:
        """Add the agents written as Markdown files."""
        stamps = {path: stamp(path) for path in (folder / name for name in AGENT_FOLDERS)}
        self.config.stamps |= stamps
        if not any(stamps.values()):
            return
        for path, section, name, entry in markdown_agents(folder):
            self.config.stamps[path] = stamp(path)
            self.add({section: {name: entry}}, display(path, self.project, self.config.home), str(path))

    def warn(self, message: str, path: str) -> None:
        """Tell of something that is no entry's fault."""
        self.config.warnings.append(ConfigWarning(message, path))

    def _remember(self, value: Mapping[str, Any], keys: Keys, label: str) -> None:
        for key, entry in value.items():
            if isinstance(entry, Mapping):
                self._remember(entry, (*keys, key), label)
            else:
                self.config._origins[(*keys, key)] = label

    def finish(self) -> Config:
        """The configuration, once every source was added."""
        config = self.config
        self._modes_to_agents()
        forced = self.env.get("OPENCODE_PERMISSION")
        if forced:
            name = "OPENCODE_PERMISSION"
            found = parsed(forced, path=name, folder=self.project, env=self.env, home=config.home)
            self.add({"permission": found.data}, name, text=found)
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
            said = any(warning.key.startswith(f"mcp.{name}.") for warning in self.config.warnings)
            lacks = None if said else incomplete(server)
            if lacks:
                label = next((self.config.origin("mcp", name, key) for key in server), "")
                path, text = self._read.get(label, (label, None))
                line = text.line(("mcp", name)) if text else None
                message = f"mcp.{name} has no {lacks}, so this server is ignored"
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


class _Warnings:
    """What is wrong in one source."""

    def __init__(self, path: str, parsed: Parsed | None) -> None:
        self._path, self._parsed = path, parsed
        self._found: list[ConfigWarning] = []
        self._more = 0

    def add(self, keys: Keys, message: str, line: int | None = None) -> None:
        if len(self._found) >= MOST_WARNINGS:
            self._more += 1
            return
        key = ".".join(map(str, keys))
        if self._parsed is not None:
            line = line or self._parsed.line(keys)
            key, message = (str(self._parsed.filled.hidden(text)) for text in (key, message))
        self._found.append(ConfigWarning(message, self._path, line, key))

    def all(self) -> list[ConfigWarning]:
        more = f"{self._more} more mistakes; is this a config file of OpenCode's?"
        return [*self._found, *([ConfigWarning(more, self._path)] if self._more else [])]
