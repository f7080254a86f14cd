"""Ask before a tool touches something outside the project (docs/opencode/tools.md 1).

What counts is where a path leads: a link inside the project to something outside asks as external.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from ..core.context import ToolContext

Kind = Literal["file", "directory"]


async def assert_external(ctx: ToolContext, path: Path | None, kind: Kind = "file", bypass: bool = False) -> None:
    """Go on only if `path` is inside the project or a rule or a person allows its folder.

    Args:
        ctx: the call.
        path: absolute; it need not exist. None is inside.
        kind: ``directory`` asks for what is in it, ``file`` for what is beside it.
        bypass: do not ask (the user attached the file).

    Raises:
        PermissionDeniedError: and the other errors of `ToolContext.ask`.
    """
    if path is None or bypass:
        return
    places = outside(ctx, path)
    if not places:
        return
    folders = list(dict.fromkeys(place if kind == "directory" else place.parent for place in places))
    globs = [(folder / "*").as_posix() for folder in folders]
    metadata = {"filepath": str(path), "parentDir": str(folders[0])}
    if places[0] != path:
        metadata["target"] = str(places[0])
    await ctx.ask("external_directory", globs, globs, metadata)


def outside(ctx: ToolContext, path: Path) -> list[Path]:
    """Where `path` is outside the project: as written, and with links followed; empty if it is inside."""
    if ctx.workspace.contains(path):
        return []
    tops = [ctx.directory]
    if ctx.worktree != Path(ctx.worktree.anchor):
        tops.append(ctx.worktree)
    actual = Path(os.path.realpath(path))
    places = []
    if not any(path.is_relative_to(top) for top in tops):
        places.append(path)
    if not any(actual.is_relative_to(os.path.realpath(top)) for top in tops):
        places.append(actual)
    return list(dict.fromkeys(places))
