"""Where a model works: a few lines of facts."""

from __future__ import annotations

import datetime
import platform
from functools import cache
from typing import TYPE_CHECKING

from ..model import ModelInfo

if TYPE_CHECKING:
    from ...core.host import ToolHost


def environment(workspace: ToolHost, info: ModelInfo, today: datetime.date | None = None) -> str:
    """The folder, the project, the platform, the date and the model's name.

    Args:
        workspace: where.
        info: the model that will read it.
        today: the day it is; the local one if left out.
    """
    day = today or datetime.datetime.now().astimezone().date()
    versioned = str(workspace.worktree) != workspace.worktree.anchor
    project = f"a git repository with its top in {workspace.worktree}" if versioned else "not under git"
    name = f"{info.name} ({info.full})" if info.name and info.name != info.model else info.full
    return "\n".join(
        [
            "Where you are:",
            f"- Working folder: {workspace.directory} ({project}); relative paths start there",
            f"- Platform: {_platform()}",
            f"- Date: {day:%Y-%m-%d}, {day:%A}",
            f"- Model: {name}",
        ]
    )


@cache
def _platform() -> str:
    return f"{platform.system() or 'unknown'} {platform.machine()}, Python {platform.python_version()}"
