"""Cancel scopes for the pipeline, made without looking for the event loop's kind each time."""

from __future__ import annotations

import functools

import anyio


def cancel_scope() -> anyio.CancelScope:
    """An `anyio.CancelScope`; call it on an event loop.

    `anyio.CancelScope()` finds out each time which event loop runs before it makes the scope that fits, and that takes
    as long as all else a scope does. Here the loop is asyncio's, always.
    """
    return _kind()()


@functools.cache
def _kind() -> type[anyio.CancelScope]:
    return type(anyio.CancelScope())
