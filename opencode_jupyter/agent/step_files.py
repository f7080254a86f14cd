"""Files changed by a step: snapshots before and after, taken beside the model's work (docs/opencode/core.md 8, 9)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..core.tool import CHANGES_NO_FILES
from .snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ..core.host import ToolHost
    from ..core.tool import Tool


class StepFiles:
    """The snapshots of one run. One is only taken where files may have changed since the last."""

    def __init__(self, workspace: ToolHost) -> None:
        self._snapshots = workspace.service(Snapshots)
        self._last: str | None = None
        self._is_current = False
        self._tracking: asyncio.Task[str | None] | None = None
        self._changed = False
        self.first: str | None = None
        """The files as they were when the run began."""

    def track_before(self) -> None:
        """A step begins: look at the files, in the background, if they may have changed since the last look."""
        self._changed = False
        if not self._is_current and self._tracking is None:
            self._tracking = asyncio.create_task(self._snapshots.track())

    def before_call(self, tool: Tool | None) -> Awaitable[None] | None:
        """What a call has to wait for: the look at the files before it may change them; None for nothing."""
        if tool is not None and tool.builtin and tool.effect in CHANGES_NO_FILES:
            return None
        if not self._changed and self._is_current and self._tracking is None:
            # Since the last look a person may have changed something, which is not to be taken for the model's doing.
            self._tracking = asyncio.create_task(self._snapshots.track())
        self._changed = True
        return None if self._tracking is None else self._wait()

    async def _wait(self) -> None:
        taking = self._tracking
        if taking is not None:
            await asyncio.shield(taking)

    async def snapshot_before(self) -> str | None:
        """The snapshot from before the step."""
        if self._tracking is not None:
            self._last = await asyncio.shield(self._tracking)
            self._tracking, self._is_current = None, True
            self.first = self.first or self._last
        return self._last

    async def snapshot_after(self) -> tuple[str | None, list[str]]:
        """The snapshot after the step, and the files that it changed (absolute)."""
        before = await self.snapshot_before()
        if not self._changed or before is None:
            return before, []
        self._last = await self._snapshots.track()
        if self._last is None or self._last == before:
            return self._last, []
        return self._last, await self._snapshots.changed(before, self._last)

    async def diffs(self) -> list[dict[str, Any]]:
        """What the run did to each file so far, in OpenCode's form."""
        if self.first is None or self._last is None or self.first == self._last:
            return []
        return await self._snapshots.diffs(self.first, self._last)

    async def close(self) -> None:
        """Let a look that is still going on end."""
        if self._tracking is not None:
            self._tracking.cancel()
            await asyncio.gather(self._tracking, return_exceptions=True)
            self._tracking = None
