"""Runs of one provider slow down together: when one is told to wait, the others wait with it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from ..errors import ModelError
from ..events import Event
from ..model import Model, ModelInfo, Request

if TYPE_CHECKING:
    from ...core.workspace import Workspace

UNSAID = 2.0
"""Seconds that all wait where the provider did not say how long."""
MOST = 120.0
"""Seconds that the others wait at most for what one was told."""


class Paces:
    """When each provider may be asked again; one for a workspace (`Workspace.service`)."""

    def __init__(self, workspace: Workspace | None = None) -> None:
        self._until: dict[str, float] = {}

    def hold(self, provider: str, seconds: float | None) -> None:
        """Let nobody ask this provider for so long."""
        wait = UNSAID if seconds is None else min(max(seconds, 0.0), MOST)
        self._until[provider] = max(self._until.get(provider, 0.0), time.monotonic() + wait)

    def left(self, provider: str) -> float:
        """Seconds until it may be asked; 0 if now."""
        return max(0.0, self._until.get(provider, 0.0) - time.monotonic())

    async def turn(self, provider: str) -> None:
        """Wait until it may be asked."""
        while (left := self.left(provider)) > 0:  # noqa: ASYNC110 - the clock is what it waits for
            await asyncio.sleep(left)


class Paced:
    """A model that keeps to the pace of its provider."""

    def __init__(self, model: Model, paces: Paces) -> None:
        self._model = model
        self._paces = paces

    @property
    def info(self) -> ModelInfo:
        """The model's own."""
        return self._model.info

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """The model's own, once its provider may be asked.

        Raises:
            ModelError: as the model itself; what says "too many" holds back the others too.
        """
        provider = self._model.info.provider
        await self._paces.turn(provider)
        try:
            async with contextlib.aclosing(self._model.stream(request)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            if error.kind in ("rate_limit", "overloaded"):
                self._paces.hold(provider, error.retry_after)
            raise

    async def aclose(self) -> None:
        """Nothing: whoever made the model closes it."""
