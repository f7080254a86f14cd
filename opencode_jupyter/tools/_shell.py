"""Which shell runs commands, and with which environment (docs/opencode/tools.md 18.5, docs/opencode/agents.md 6.2)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..core.context import ToolContext
from .process.environment import clean_environment

_NOT_POSIX = ("fish", "nu")


@cache
def shell() -> str:
    """``$SHELL`` unless it is fish or nu, which read another language; else zsh on macOS, bash, sh."""
    chosen = os.environ.get("SHELL", "")
    if os.path.isabs(chosen) and os.access(chosen, os.X_OK) and Path(chosen).name not in _NOT_POSIX:
        return chosen
    if sys.platform == "darwin":
        return "/bin/zsh"
    return shutil.which("bash") or "/bin/sh"


async def environment(ctx: ToolContext, cwd: Path) -> dict[str, str]:
    """The environment of a command, with what the hook ``shell.env`` adds.

    A person's own command gets the kernel's, as with ``!``; a model's only what programs need, and what the config's
    ``experimental.shell_env_keep`` (names with wildcards, or true) names.
    """
    config: Mapping[str, Any] = ctx.workspace.config.data.get("experimental") or {}
    added: dict[str, str] = {}
    if ctx.workspace.hooks.has_hooks("shell.env"):
        given = {"cwd": str(cwd), "sessionID": ctx.session_id, "callID": ctx.call_id}
        added = (await ctx.workspace.hooks.trigger("shell.env", given, {"env": {}}))["env"]
    keep = config.get("shell_env_keep", ()) if ctx._current_call._by == "model" else True
    if not isinstance(keep, bool):
        keep = [keep] if isinstance(keep, str) else [name for name in keep if isinstance(name, str)]
    tags = {"PWD": str(cwd), "OPENCODE_CALL_ID": ctx.call_id}
    extra = {**tags, **{str(name): str(value) for name, value in added.items()}}
    made = clean_environment(os.environ, keep=keep, extra=extra)
    # A folder of the project that is a repository by itself could name programs in its settings.
    count = int(made["GIT_CONFIG_COUNT"]) if made.get("GIT_CONFIG_COUNT", "").isdigit() else 0
    named = {f"GIT_CONFIG_KEY_{count}": "safe.bareRepository", f"GIT_CONFIG_VALUE_{count}": "explicit"}
    return {**made, **named, "GIT_CONFIG_COUNT": str(count + 1)}
