"""What may change while the server runs: the configuration's files, and which tools there are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.config.load import GLOBAL_FILES, PROJECT_FILES, upwards
from ..core.errors import ToolError

if TYPE_CHECKING:
    from ..core.workspace import Workspace
    from .offer import Offer

log = logging.getLogger(__name__)

INTERVAL = 1.0
"""Seconds between two looks at files."""
OFTEN = 0.25
"""Seconds between two looks at which tools there are: that asks no file, and a client should hear of it at once."""

Stamp = tuple[tuple[str, int, int], ...]


async def watch(workspace: Workspace, offer: Offer, changed: Callable[[], Awaitable[None]]) -> None:
    """Look again and again, until cancelled. A rule that a person writes down holds for the next call.

    Args:
        workspace: its configuration is read again when a file of it changes.
        offer: what is offered.
        changed: called when that is not what it was.
    """
    stamp, seen = _stamp(workspace), offer.fingerprint()
    while True:
        if not workspace.registry.settled():
            await workspace.registry.prepare()
        for _ in range(max(1, round(INTERVAL / OFTEN))):
            found = offer.fingerprint()
            if found != seen:
                seen = found
                await changed()
            await asyncio.sleep(min(OFTEN, INTERVAL))
        now = _stamp(workspace)
        if now != stamp:
            stamp = now
            try:
                workspace.reload_config()
                log.info("the configuration was read again")
            except ToolError as error:
                log.warning("the configuration stays as it was: %s", error)


def _stamp(workspace: Workspace) -> Stamp:
    """Changes when a configuration file of this workspace does."""
    folders = [*upwards(workspace.directory, workspace.worktree), *workspace.config.directories]
    names = dict.fromkeys((*PROJECT_FILES, *GLOBAL_FILES))
    return tuple(found for folder in dict.fromkeys(folders) for name in names if (found := _seen(folder / name)))


def _seen(path: Path) -> tuple[str, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return str(path), status.st_mtime_ns, status.st_size
