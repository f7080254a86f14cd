"""The configuration's ``experimental.sandbox``, from all files; a project's own can only make it stricter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ...core.project_rules import is_of_project
from .policy import Limits, Profile, stricter

if TYPE_CHECKING:
    from ...core.host import ToolHost

OUTPUT = 1 << 30
"""Bytes of output after which a command is ended."""


@dataclass(slots=True)
class SandboxSettings:
    """The settings; `docs/sandbox.md` says what each does."""

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


def read_settings(workspace: ToolHost) -> SandboxSettings:
    """The settings of a workspace."""
    settings = SandboxSettings()
    for source, data in workspace.config.sources:
        entry = (data.get("experimental") or {}).get("sandbox")
        if isinstance(entry, Mapping):
            settings.add(entry, restrict=is_of_project(workspace, source))
    return settings
