"""OpenCode's environment switches that matter to tools (docs/opencode/core.md 0 and 4.4)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from .suggestions import near_names


def flag(name: str, env: Mapping[str, str] | None = None) -> bool:
    """Return whether a switch is on: ``true`` in any case, or ``1``."""
    return (os.environ if env is None else env).get(name, "").lower() in ("true", "1")


def number(name: str, env: Mapping[str, str] | None = None) -> int | None:
    """A positive whole number, or None for anything else."""
    text = (os.environ if env is None else env).get(name, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


SWITCHES: dict[str, tuple[Literal["switch", "value", "secret", "number"], str]] = {
    "OPENCODE_CLIENT": ("value", "which face this is; question is offered in app, cli and desktop (cli if not set)"),
    "OPENCODE_EXPERIMENTAL": ("switch", "switches on what is experimental: lsp, exa search, plan mode"),
    "OPENCODE_EXPERIMENTAL_LSP_TOOL": ("switch", "offers the tool lsp to models"),
    "OPENCODE_EXPERIMENTAL_PLAN_MODE": ("switch", "offers plan_enter and plan_exit (client cli alone)"),
    "OPENCODE_EXPERIMENTAL_EXA": ("switch", "as OPENCODE_ENABLE_EXA"),
    "OPENCODE_ENABLE_EXA": ("switch", "offers websearch and codesearch to models of every provider"),
    "OPENCODE_ENABLE_QUESTION_TOOL": ("switch", "offers question whatever the client is"),
    "OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS": (
        "number",
        "milliseconds a command may take if its call names no limit",
    ),
    "OPENCODE_EXPERIMENTAL_OXFMT": ("switch", "lets oxfmt format files"),
    "OPENCODE_JUPYTER_SCRIPT_SPEED": (
        "value",
        "milliseconds between two pieces of a scripted answer (0: at once)",
    ),
    "OPENCODE_CONFIG": ("value", "one more config file"),
    "OPENCODE_CONFIG_DIR": ("value", "one more config folder"),
    "OPENCODE_CONFIG_CONTENT": ("secret", "configuration, as a text"),
    "OPENCODE_PERMISSION": ("secret", "permissions, laid over those of every file"),
    "OPENCODE_DISABLE_PROJECT_CONFIG": ("switch", "the project's own config files and folders do not count"),
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": ("switch", "plugins of installed packages do not run by themselves"),
    "OPENCODE_DISABLE_EXTERNAL_SKILLS": ("switch", "skills of .claude and .agents do not count"),
    "OPENCODE_DISABLE_CLAUDE_CODE": ("switch", "neither skills nor instructions of .claude count"),
    "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS": ("switch", "skills of .claude and .agents do not count"),
    "OPENCODE_DISABLE_CLAUDE_CODE_PROMPT": ("switch", "CLAUDE.md is not read"),
    "OPENCODE_DISABLE_LSP": ("switch", "no language server is started"),
    "OPENCODE_DISABLE_FILETIME_CHECK": ("switch", "a file may be changed without having been read"),
    "OPENCODE_TEST_HOME": ("value", "stands for the home folder"),
    "OPENCODE_TEST_MANAGED_CONFIG_DIR": ("value", "stands for the administrator's config folder"),
    "OPENCODE_WEB_PROXY": ("secret", "the proxy through which web pages are fetched"),
    "OPENCODE_EXA_URL": ("secret", "where websearch and codesearch ask"),
    "OPENCODE_JUPYTER_STORE_SYNC": (
        "switch",
        "reported calls are on the disk and survive a power failure",
    ),
    "OPENCODE_JUPYTER_ON_ASK": ("value", "the reply to a permission request when nobody can answer: deny or allow"),
    "OPENCODE_JUPYTER_JAVASCRIPT": ("value", "the program that runs tools and plugins in JavaScript"),
    "OPENCODE_JUPYTER_MCP": ("secret", "set for programs that are started as MCP servers"),
    "OPENCODE_CALL_ID": ("value", "set for the programs of a call"),
}
"""OpenCode's environment variables that count here, and ours: the kind of each (a secret's value is not shown) and what
it does."""


def describe(env: Mapping[str, str] | None = None) -> list[tuple[str, str, str]]:
    """The variables that are set: name, what it is set to, and what that does or what is wrong with it.

    One of OpenCode's that has no meaning here is named too: it may be a slip.
    """
    source = os.environ if env is None else env
    rows: list[tuple[str, str, str]] = []
    for name, (kind, does) in SWITCHES.items():
        value = source.get(name)
        if not value:
            continue
        if kind == "value":
            rows.append((name, value, does))
        elif kind == "secret":
            rows.append((name, "set", does))
        elif kind == "number":
            good = number(name, source) is not None
            rows.append((name, value, does if good else "is no whole number above 0, so it does not count"))
        else:
            on = flag(name, source)
            rows.append((name, "on" if on else "off", does if on else "only true and 1 switch it on"))
    for name in sorted(source):
        if name.startswith("OPENCODE_") and name not in SWITCHES and source[name]:
            near = near_names(name, SWITCHES, 0.9)
            rows.append((name, "set", f"is not known here; did you mean {near[0]}?" if near else "has no effect here"))
    return rows


_NO_EXTERNAL_SKILLS = (
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS",
)


class Flags(NamedTuple):
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
