"""Instruction files (AGENTS.md and the like) near a file that is read (docs/opencode/tools.md 16).

Those above the project folder are in a model's system prompt; those in the folders between it and the file are
given once for each message, with the file.
"""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from ..core.context import ToolContext
from ..core.flags import flag
from ..core.host import ToolHost
from ..text.encoding import decode

LIMIT = 51_200
"""Bytes of an instruction file that are given."""
MESSAGES = 100
"""Messages whose claimed files are remembered."""

_claims: WeakKeyDictionary[ToolHost, OrderedDict[str, set[Path]]] = WeakKeyDictionary()


def instruction_names() -> list[str]:
    """File names looked for, the first that exists in a folder is taken."""
    without_claude = flag("OPENCODE_DISABLE_CLAUDE_CODE") or flag("OPENCODE_DISABLE_CLAUDE_CODE_PROMPT")
    return ["AGENTS.md", "CONTEXT.md"] if without_claude else ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"]


def find_instructions(ctx: ToolContext, path: Path) -> tuple[list[str], list[str]]:
    """Instruction files for `path` that this message has not had yet, the nearest first.

    Returns:
        Their paths, and the texts of those that have any.
    """
    if not path.is_relative_to(ctx.directory):
        return [], []
    claimed = _claimed(ctx)
    already_loaded = system_paths(ctx.workspace) | _loaded(ctx.messages)
    paths: list[str] = []
    texts: list[str] = []
    for folder in path.parents:
        if folder == ctx.directory:
            break
        file = next((folder / name for name in instruction_names() if (folder / name).is_file()), None)
        if (
            file is None
            or file == path
            or file in already_loaded
            or file in claimed
            or not ctx.workspace.contains(file)
        ):
            continue
        claimed.add(file)
        paths.append(str(file))
        text = _text(file)
        if text:
            texts.append(f"Instructions from: {file}\n{text}")
    return paths, texts


def system_paths(workspace: ToolHost) -> set[Path]:
    """Files that are in the system prompt already: of the first name that is found from the project folder upward."""
    stop = workspace.worktree if workspace.worktree != Path(workspace.worktree.anchor) else workspace.directory
    folders = [workspace.directory]
    while folders[-1] != stop and folders[-1] != folders[-1].parent:
        folders.append(folders[-1].parent)
    for name in instruction_names():
        files = {folder / name for folder in folders if (folder / name).is_file()}
        if files:
            break
    else:
        files = set()
    for entry in workspace.config.get("instructions", default=[]) or []:
        if isinstance(entry, str) and not entry.startswith(("http://", "https://")):
            file = Path(os.path.normpath(os.path.join(workspace.directory, os.path.expanduser(entry))))
            files.add(file)
    return files


def _claimed(ctx: ToolContext) -> set[Path]:
    of_workspace = _claims.setdefault(ctx.workspace, OrderedDict())
    claimed = of_workspace.setdefault(ctx.message_id, set())
    while len(of_workspace) > MESSAGES:
        of_workspace.popitem(last=False)
    return claimed


def _loaded(messages: list[dict[str, Any]]) -> set[Path]:
    """Files that earlier reads of the conversation have given."""
    out: set[Path] = set()
    for message in messages:
        for part in message.get("parts", ()):
            state = part.get("state", {})
            if part.get("type") != "tool" or part.get("tool") != "read" or state.get("status") != "completed":
                continue
            if not state.get("time", {}).get("compacted"):
                out.update(Path(path) for path in state.get("metadata", {}).get("loaded", ()))
    return out


def _text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""
        with path.open("rb") as file:
            return decode(file.read(LIMIT)).shown
    except OSError:
        return ""
