"""A call whose arguments a model is still writing: pending, with what has come so far, until it is whole."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_core import from_json

from .state import Pending

if TYPE_CHECKING:
    from .state import State, ToolPart

ARRIVAL_INTERVAL = 0.1
"""Seconds between two looks at arguments that grow: each look parses all that has come so far."""
LONGEST_LOOK = 100_000
"""Characters; longer arguments are shown as far as they were seen by then, and whole when they are whole."""


class StreamedArguments:
    """The part of a `Call` that takes in its arguments piece by piece."""

    __slots__ = ()  # a class can have only one base with slots of its own; these are `Call`'s

    if TYPE_CHECKING:
        _pieces: list[str]
        _looked: float
        part: ToolPart

        def _become(self, state: State) -> None: ...

        def _tell(self) -> None: ...

    def receive(self, text: str) -> None:
        """More of the arguments, as JSON text. Who watches the call is told at most ten times a second."""
        self._pieces.append(text)
        now = asyncio.get_running_loop().time()
        if now - self._looked < ARRIVAL_INTERVAL:
            return
        self._looked = now  # type: ignore[misc]  # a slot of the class that has this for a base
        raw = "".join(self._pieces)
        if len(raw) > LONGEST_LOOK:
            return
        try:
            seen = from_json(raw, allow_partial="trailing-strings")
        except ValueError:
            seen = None
        state = self.part.state
        self._become(Pending(seen if isinstance(seen, dict) else state.input, raw))
        self._tell()

    @property
    def raw(self) -> str:
        """The arguments as far as they have come."""
        return "".join(self._pieces)
