"""The sandbox of a workspace: settings, the profile for each caller, and the policy of a profile."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import ids
from ..core.permission import Rule, evaluate
from ..core.permission.rules import NOT_ANALYSED
from ..core.wildcard import match
from .confine import backend
from .policy import (
    Limits,
    Profile,
    SandboxPolicy,
    is_within,
    real_paths,
    secrets,
    startup_files,
    stricter,
    worktree_folders,
)

if TYPE_CHECKING:
    from ..core.host import ToolHost
    from .startup_files import StartupFiles

UNAVAILABLE = "this machine has no sandbox"
"""Origin of the rules that take the place of one."""
_CACHES = ("~/.cache", "~/.npm", "~/.bun", "~/.local/share/uv", "~/Library/Caches")
"""Where programs that are installed at their start (``uvx``, ``npx``) keep themselves."""


OUTPUT = 1 << 30
"""Bytes of output after which a command is ended."""


@dataclass(slots=True)
class EffectiveSandboxSettings:
    """The settings of ``experimental.sandbox``, from all files; see `docs/sandbox.md`."""

    profile: Profile = "workspace-write"
    user: Profile = "off"
    agents: dict[str, Profile] = field(default_factory=lambda: {"plan": "read-only"})
    rules: dict[str, Profile] = field(default_factory=dict)
    programs: dict[str, Profile] = field(default_factory=dict)
    network: bool = False
    writable: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    backend: str = "auto"
    limits: dict[str, int] = field(default_factory=dict)

    @property
    def output(self) -> int:
        """Bytes of output after which a command is ended."""
        return self.limits.get("output", OUTPUT)

    def make_limits(self) -> Limits:
        """The limits of one command."""
        return Limits(**{name: value for name, value in self.limits.items() if name != "output"})

    def program(self, kind: str, name: str = "") -> Profile:
        """The profile of a program that is not a command: ``formatter``, ``lsp``, ``tools``, ``mcp``."""
        usual: Profile = "off" if self.profile == "off" else "read-only" if kind == "lsp" else "workspace-write"
        return self.programs.get(f"{kind}.{name}") or self.programs.get(kind) or usual

    def add(self, entry: Mapping[str, Any], *, restrict: bool = False) -> None:
        """Lay an entry over these settings.

        Args:
            entry: what a file has under ``experimental.sandbox``.
            restrict: take only what makes the sandbox stricter.
        """
        for name in (setting.name for setting in fields(self)):
            value = entry.get(name)
            if value is None:
                continue
            now = getattr(self, name)
            if isinstance(now, list):
                if name == "hidden" or not restrict:
                    now.extend(value)
            elif name == "limits":
                now.update(
                    {key: min(value[key], now.get(key, value[key])) if restrict else value[key] for key in value}
                )
            elif isinstance(now, dict):
                for key, profile in value.items():
                    now.pop(key, None)  # the last rule that fits decides
                    now[key] = stricter(profile, self._usual(name, key)) if restrict else profile
            elif not restrict or name not in ("profile", "user", "network", "backend"):
                setattr(self, name, value)
            elif name == "network":
                self.network = self.network and value
            elif name != "backend":
                setattr(self, name, stricter(value, now))

    def _usual(self, name: str, key: str) -> Profile:
        if name == "programs":
            kind, _, program = key.partition(".")
            return self.program(kind, program)
        return self.agents.get(key, self.profile) if name == "agents" else stricter(self.profile, "workspace-write")


def read_settings(workspace: ToolHost) -> EffectiveSandboxSettings:
    """The settings of a workspace."""
    settings = EffectiveSandboxSettings()
    for source, data in workspace.config.sources:
        entry = (data.get("experimental") or {}).get("sandbox")
        if isinstance(entry, Mapping):
            settings.add(entry, restrict=source in workspace.config.project_sources)
    return settings


class Sandbox:
    """A service of the workspace.

    Attributes:
        model_profile: the profile for what a model runs, set while the workspace is open; None for the configuration's.
        user: the same for what a person types.
        network: whether commands may use the network; None for the configuration's.
    """

    def __init__(self, workspace: ToolHost) -> None:
        self._workspace = workspace
        self._config: object = None
        self._settings = EffectiveSandboxSettings()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._restricted: object = None
        self.model_profile: Profile | None = None
        self.user: Profile | None = None
        self.network: bool | None = None

    @property
    def settings(self) -> EffectiveSandboxSettings:
        """The configuration's."""
        if self._config is not self._workspace.config:
            self._config = self._workspace.config
            self._settings = read_settings(self._workspace)
        return self._settings

    @property
    def backend(self) -> str | None:
        """What makes the sandbox on this machine; None where nothing can."""
        return backend(self.settings.backend)

    def profile(self, by: str, agent: str, rules: Sequence[Rule] = (), commands: Sequence[str] = ()) -> Profile:
        """The profile for a command.

        Args:
            by: who runs it, as `Workspace.call` has it.
            agent: for whom.
            rules: the rules of the call; an agent that must not edit anything must not change anything either.
            commands: the sub-commands; the strictest of them decides.
        """
        settings = self.settings
        if by != "model":
            return self.user or settings.user
        usual = self.model_profile or settings.agents.get(agent) or settings.profile
        profiles = [self._of_command(command, usual) for command in commands] or [usual]
        strictest = profiles[0]
        for profile in profiles:
            strictest = stricter(strictest, profile)
        if rules and evaluate("edit", "*", rules).action == "deny":
            return stricter(strictest, "read-only")
        return strictest

    def policy(self, profile: Profile) -> SandboxPolicy | None:
        """What a command may do under a profile; None for everything (`off`, or no sandbox on this machine)."""
        return self._policy(profile, self.settings.network if self.network is None else self.network)

    def program(self, kind: str, name: str = "") -> SandboxPolicy | None:
        """The policy of a program that the configuration or the project names: not a command, but run for tools.

        Args:
            kind: ``formatter``, ``lsp``, ``tools`` or ``mcp``. They may write the caches of package managers (of those
                that must not change the project, only servers), and all but formatters may use the network: many of
                them could not start otherwise. The configuration's ``writable`` is for those that may change the
                project, and for language servers.
            name: its name in the configuration.
        """
        network = self.settings.network or kind != "formatter"
        profile = self.settings.program(kind, name)
        caches = _CACHES if profile != "read-only" or kind in ("lsp", "mcp") else ()
        writable = self.settings.writable if profile != "read-only" or kind == "lsp" else ()
        return self._policy(profile, network, [*caches, *writable])

    @contextlib.contextmanager
    def startup_files_kept(self, policy: SandboxPolicy | None, name: str = "") -> Iterator[StartupFiles]:
        """Undo in the end what a sandboxed program does to start-up files meanwhile.

        Args:
            policy: the program's; None if it may do everything.
            name: of the folder for what is moved out of the project; a new one if left out.
        """
        from .startup_files import StartupFiles  # here: a first call that runs no program needs none

        files = StartupFiles(policy, self._workspace.data_dir / "blocked" / (name or ids.create("tool")))
        try:
            yield files
        finally:
            files.move()

    def restrict_rules(self) -> None:
        """Without a sandbox, require approval for a model's commands that only a rule for everything allows.

        A rule that names the command still allows it, and so does the profile ``off`` in the configuration.
        """
        agents = self._workspace.agents
        if self._restricted is agents:
            return
        self._restricted = agents
        if self.backend is not None or self.settings.profile == "off":
            return
        for agent in agents.values():
            rules: list[Rule] = []
            for rule in agent.model_permission:
                rules.append(rule)
                if (rule.pattern, rule.action) == ("*", "allow") and rule.permission in ("*", "bash"):
                    rules.append(Rule("bash", "*", "ask", UNAVAILABLE, source="default"))
            agent.model_permission = rules

    @property
    def temporary(self) -> str:
        """The private temporary folder of sandboxed programs; removed with the workspace, or when Python ends."""
        if self._temporary is None or not os.path.isdir(self._temporary.name):
            parent = os.path.realpath(tempfile.gettempdir())
            self._temporary = tempfile.TemporaryDirectory(prefix="opencode-", dir=parent, ignore_cleanup_errors=True)
        return self._temporary.name

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def _of_command(self, command: str, usual: Profile) -> Profile:
        if command.startswith(NOT_ANALYSED):
            return usual
        return next((p for pattern, p in reversed(self.settings.rules.items()) if match(command, pattern)), usual)

    def _policy(self, profile: Profile, network: bool, more: Sequence[str] = ()) -> SandboxPolicy | None:
        if profile == "off" or self.backend is None:
            return None
        workspace, settings = self._workspace, self.settings
        folders = [workspace.directory]
        if str(workspace.worktree) != workspace.worktree.anchor:
            folders += [workspace.worktree, *map(Path, worktree_folders(workspace.worktree))]
        project = real_paths(folders)
        writable = real_paths(more if profile == "read-only" else [*folders, *settings.writable, *more])
        hidden = real_paths([*secrets(str(Path.home())), workspace.data_dir, *settings.hidden])
        protected = () if self.backend == "Landlock" else real_paths(startup_files(writable))
        return SandboxPolicy(
            profile,
            self.temporary,
            writable,
            tuple(path for path in hidden if not any(is_within(own, path) for own in project)),
            real_paths([workspace.truncation.directory]),
            protected,
            network,
            settings.make_limits(),
            settings.backend,
        )
