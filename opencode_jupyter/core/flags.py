"""OpenCode's environment switches that matter to tools (reference: core.md 0 and 4.4)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


def flag(name: str, env: Mapping[str, str] | None = None) -> bool:
    """Whether a switch is on: ``true`` in any case, or ``1``."""
    return (os.environ if env is None else env).get(name, "").lower() in ("true", "1")


def number(name: str, env: Mapping[str, str] | None = None) -> int | None:
    """A positive whole number, or None for anything else."""
    text = (os.environ if env is None else env).get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


_NO_EXTERNAL_SKILLS = (
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS",
)


@dataclass(frozen=True, slots=True)
class Flags:
    """The switches as they stood when the workspace was opened."""

    client: str
    enable_exa: bool
    question: bool
    lsp: bool
    plan_mode: bool
    project_config: bool
    """The project's own ``.opencode`` folders and config files count."""
    external_skills: bool
    """Skills of other programs (``.claude``, ``.agents``) count too."""
    default_plugins: bool
    """Plugins of installed packages run without being named in a config."""

    @classmethod
    def read(cls, env: Mapping[str, str] | None = None) -> Flags:
        """Read them from the environment."""
        source = os.environ if env is None else env
        experimental = flag("OPENCODE_EXPERIMENTAL", source)
        client = source.get("OPENCODE_CLIENT", "") or "cli"
        return cls(
            client=client,
            enable_exa=experimental or flag("OPENCODE_ENABLE_EXA", source) or flag("OPENCODE_EXPERIMENTAL_EXA", source),
            question=client in ("app", "cli", "desktop") or flag("OPENCODE_ENABLE_QUESTION_TOOL", source),
            lsp=experimental or flag("OPENCODE_EXPERIMENTAL_LSP_TOOL", source),
            project_config=not flag("OPENCODE_DISABLE_PROJECT_CONFIG", source),
            external_skills=not any(flag(name, source) for name in _NO_EXTERNAL_SKILLS),
            default_plugins=not flag("OPENCODE_DISABLE_DEFAULT_PLUGINS", source),
            plan_mode=(experimental or flag("OPENCODE_EXPERIMENTAL_PLAN_MODE", source)) and client == "cli",
        )
