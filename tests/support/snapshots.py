"""Comparing and restoring files with the snapshots of a workspace, in one call each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opencode_jupyter.agent.snapshots import Snapshots
from opencode_jupyter.agent.snapshots.restore import write_entries
from opencode_jupyter.agent.snapshots.service import first_entries
from opencode_jupyter.agent.snapshots.shadow import Shadow


async def patch(snapshots: Snapshots, tree: str) -> list[str]:
    """The files that differ from a snapshot now; none where nothing can be recorded."""
    now = await snapshots.track()
    return [] if now is None else await snapshots.changed(tree, now)


async def diff(snapshots: Snapshots, tree: str) -> str:
    """The difference since a snapshot, as git writes it."""
    return await snapshots.run_exclusive(lambda shadow: shadow.diff_text(tree, shadow.track()))


async def restore(snapshots: Snapshots, tree: str) -> list[str]:
    """Make all files what they are in a snapshot, and return those that were changed."""

    def work(shadow: Shadow) -> list[str]:
        first_entries(shadow, [(tree, [str(shadow.worktree / "any")])])  # raises if the snapshot is gone
        differing = list(shadow.compare(shadow.track(), tree))
        entries = first_entries(shadow, [(tree, [str(shadow.worktree / path) for path in differing])])
        return [str(shadow.worktree / path) for path in write_entries(shadow, entries)]

    return await snapshots.run_exclusive(work)


async def revert(snapshots: Snapshots, patches: Iterable[Mapping[str, Any]]) -> list[str]:
    """Put back the files that patches name, and return those that were changed."""
    chosen = [(str(patch["hash"]), list(patch["files"])) for patch in patches]

    def work(shadow: Shadow) -> list[str]:
        shadow.track()
        return [str(shadow.worktree / path) for path in write_entries(shadow, first_entries(shadow, chosen))]

    return await snapshots.run_exclusive(work)
