"""Puts one source of configuration over the other, and remembers who set what."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from .merge import deep_merge, merge_config
from .merged import UNKNOWN, Config, Origin
from .reading import AGENT_FOLDERS, display, read_text, stamp
from .schema import incomplete, normalise, permission_key, tools_to_permission
from .warning import UNTRUSTED, ConfigWarning, Keys

if TYPE_CHECKING:
    from .parse import Parsed
    from .restrict import Restricted

MOST_WARNINGS = 50
"""Of one file. Nobody reads more, and a file that is something else altogether has thousands."""


class Loader:
    """One configuration in the making."""

    def __init__(
        self,
        directory: Path,
        worktree: Path,
        home: Path,
        env: Mapping[str, str],
        texts: Mapping[Path, str],
        restricted: bool,
    ) -> None:
        self.config = Config(home=home)
        self.texts = texts
        self.restricted = restricted
        self.parts: list[tuple[str, Restricted]] = []
        """What the project's files say, taken apart."""
        self._agents: set[str] = set()
        """Agents that other sources brought."""
        self.env = env
        self._read: dict[str, tuple[str, Parsed]] = {}
        # Without version control the worktree is the root; names relative to that would say nothing.
        self.project = worktree if worktree != Path(worktree.anchor) else directory

    def file(self, path: Path, *, project: bool = False) -> bool:
        """Add a file, of the project or the user's own; False if there is none."""
        if path in self.texts:
            text: str | None = self.texts[path]
        else:
            self.config.stamps[path] = stamp(path)
            text = read_text(path) if self.config.stamps[path] else None
        if text is None:
            return False
        self.text(text, str(path), path.parent, display(path, self.project, self.config.home), project)
        return True

    def text(self, text: str, path: str, folder: Path, label: str | None = None, project: bool = False) -> None:
        """Add what a file or a variable holds."""
        from .parse import Parsed, parsed  # here, as below: many have no config files

        found = parsed(text, path=path, folder=folder, env=self.env, home=self.config.home)
        if not isinstance(found.data, dict):
            kind = type(found.data).__name__
            raise ConfigError(f"must be an object ({{...}}), not {kind}", path=path, line=1)
        self.config.brought |= found.filled.brought.keys()
        if project:
            written = found
            if found.filled.brought:
                try:
                    written = parsed(
                        text, path=path, folder=folder, env=self.env, home=self.config.home, within=self.project
                    )
                except ConfigError:  # a reference stands where only its value makes sense
                    written = Parsed(dict.fromkeys(found.data, found.filled.written), found.filled)
            self.add(found.data, label or path, path, found, written.data)
            return
        self.add(found.data, label or path, path, found)

    def add(
        self,
        data: Mapping[str, Any],
        label: str,
        path: str | None = None,
        text: Parsed | None = None,
        written: Any = None,
    ) -> None:
        """Add a dict.

        Args:
            data: of any form; what does not fit is told and left out.
            label: the source's name for a person.
            path: its whole name; the label if left out.
            text: the text that it stands in, if it does.
            written: of a file of the project: the data with the references that reach out of it as they are written.
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
        whole = clean
        if written is not None:
            origin = Origin(label, where, project=True)
            clean, whole = self._of_project(origin, clean, written)
        else:
            self._agents |= {*clean.get("agent", ()), *clean.get("mode", ())}
            file = path if path and os.path.isabs(path) else ""
            project = bool(file) and Path(file).is_relative_to(self.project)
            origin = Origin(label, file, project, later=bool(self.parts))
        self.config.sources.append((where, whole))
        if text:
            self._read[label] = (where, text)
        self.config.data = merge_config(self.config.data, clean)
        self._remember(clean, (), origin)

    def _of_project(self, origin: Origin, clean: dict[str, Any], written: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a file of the project adds, and that with its rules, which are kept apart."""
        from .restrict import restrict

        label, part = origin.label, restrict(written, clean, self._agents)
        self.parts.append((label, part))
        if not self.restricted:
            return clean, clean
        self.config.removed += [(label, keys, value) for keys, value in part.removed]
        self.config._restrictions += [(keys, rules, origin) for keys, rules in part.rules.items()]
        for keys, entries in part.rules.items():
            self._remember(entries, keys, origin, known=True)
        rules = part.rules.get(("permission",))
        return part.data, {**part.data, "permission": rules} if rules else part.data

    def agents(self, folder: Path, *, project: bool = False) -> None:
        """Add the agents written as Markdown files."""
        stamps = {path: stamp(path) for path in (folder / name for name in AGENT_FOLDERS)}
        self.config.stamps |= stamps
        if not any(stamps.values()):
            return
        from .frontmatter import markdown_agents

        for path, section, name, entry in markdown_agents(folder):
            self.config.stamps[path] = stamp(path)
            data = {section: {name: entry}}
            shown = display(path, self.project, self.config.home)
            self.add(data, shown, str(path), written=data if project else None)

    def warn(self, message: str, path: str) -> None:
        """Tell of something that is no entry's fault."""
        self.config.warnings.append(ConfigWarning(message, path))

    def _remember(self, value: Mapping[str, Any], keys: Keys, origin: Origin, *, known: bool = False) -> None:
        """Keep who set each entry; `known`: unless somebody did already."""
        for key, entry in value.items():
            if isinstance(entry, Mapping):
                self._remember(entry, (*keys, key), origin, known=known)
            elif not known or (*keys, key) not in self.config._origins:
                self.config._origins[(*keys, key)] = origin

    def finish(self) -> Config:
        """The configuration, once every source was added."""
        config = self.config
        self._modes_to_agents()
        forced = self.env.get("OPENCODE_PERMISSION")
        if forced:
            from .parse import parsed

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
                    config._origins[("permission", key)] = config._origins.get(("tools", name), UNKNOWN)
        if self.parts:
            from .restrict import subject, summary

            config.wants = subject(self.project, config.home, self.parts)
            if config.removed:
                message = (
                    f"Not in effect until you trust this project: {summary(keys for _, keys, _ in config.removed)}"
                    ". See it with %tools trust; trust it with %tools trust --project (in Python: ws.trust_project())"
                )
                config.warnings.append(ConfigWarning(message, str(self.project), key=UNTRUSTED))
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
        for keys, origin in list(self.config._origins.items()):
            if keys[0] == "mode":
                self.config._origins[("agent", *keys[1:])] = origin


class _Warnings:
    """The problems of one source."""

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
