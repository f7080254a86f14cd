"""Async work for code that can't await."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import ToolError
from ..core.threads import run_elsewhere, wait_interruptibly

if TYPE_CHECKING:
    from ..core.host import ToolHost

T = TypeVar("T")


def run_blocking(work: Coroutine[Any, Any, T], limit: float, failure: str, workspace: ToolHost | None = None) -> T:
    """What a coroutine gives; blocks. It must not need the loop of the code that blocks.

    Args:
        work: run on a loop of its own, since the caller's may be busy with the caller.
        limit: seconds it may take.
        failure: the beginning of the error, if it takes longer.
        workspace: whose loop runs it, unless that is the caller's.

    Raises:
        ToolError: `failure`, and that it took longer than `limit` seconds.
    """
    future = run_elsewhere(None if workspace is None else workspace.loop, work)
    try:
        return wait_interruptibly(future, limit)
    except KeyboardInterrupt:
        future.cancel()
        raise
    except TimeoutError:
        if future.done():
            raise
        future.cancel()
        raise ToolError(f"{failure} within {limit:g} s") from None
